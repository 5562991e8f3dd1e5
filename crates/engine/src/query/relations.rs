//! `alluvium.relations`: all tables, views and indexes, and how each of them is.
//!
//! It is for those who want to know why something waits, so reading it waits for no relation: it shows what the workers have
//! published last, of each relation as of an epoch of its own.

use std::sync::Arc;

use alluvium_dataflow::movement::import::ScannedRows;
use alluvium_sql::name::split;
use arrow::array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray, UInt64Array,
};
use datafusion::datasource::{MemTable, TableProvider};

use crate::catalog::{Definition, Entries, Entry, NamedIndex, RELATIONS_SCHEMA, Uses};
use crate::error::Result;
use crate::sequencer::Comments;
use crate::worker::{Condition, DataflowId, Progress, Published};

/// It answers, or will as soon as it is asked.
const RUNNING: &str = "running";
/// It takes in the rows that were there when it was created.
const FILLING: &str = "filling";
/// It has failed, or what it reads.
const FAILED: &str = "failed";
/// It is declared, and waits for the views that it recurs over.
const DECLARED: &str = "declared";

/// The subject of a row.
struct Subject<'a> {
    name: &'a str,
    relation: &'a Entry,
    /// The index, if it is one.
    index: Option<&'a NamedIndex>,
    kind: &'static str,
    dataflow: Option<DataflowId>,
    /// The indexes that it is filled from.
    uses: Option<&'a Uses>,
    keeps_rows: bool,
    /// Its state, and the reason, if it has no dataflow.
    without: (&'static str, Option<&'a str>),
}

/// The rows of these relations and their indexes.
pub(super) fn table(
    progress: &Progress,
    entries: &Entries,
    comments: &Comments,
) -> Result<Arc<dyn TableProvider>> {
    let mut subjects = Vec::new();
    for entry in entries.values() {
        subjects.push(Subject::of_relation(entry));
        subjects.extend(entry.indexes.iter().map(|index| Subject::of_index(entry, index)));
    }
    let ids: Vec<DataflowId> = subjects.iter().filter_map(|subject| subject.dataflow).collect();
    let mut conditions = progress.conditions(&ids)?.into_iter();
    let (mut names, mut kinds, mut states, mut reasons) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut rows, mut filled) = (Vec::new(), Vec::new());
    let (mut schemas, mut own_names, mut definitions) = (Vec::new(), Vec::new(), Vec::new());
    let (mut counts, mut temporary) = (Vec::new(), Vec::new());
    for subject in &subjects {
        let condition = subject.dataflow.and_then(|_| conditions.next());
        let (state, reason, kept, share) = match condition {
            None => {
                let (state, reason) = subject.without;
                (state, reason.map(str::to_owned), None, None)
            }
            Some(Condition::Runs(parts)) => {
                (RUNNING, None, subject.keeps_rows.then(|| updates(&parts)), None)
            }
            Some(Condition::Fills(workers)) => {
                (FILLING, None, None, subject.share(workers, progress)?)
            }
            Some(Condition::Failed(reason)) => (FAILED, Some(reason.to_string()), None, None),
            // It has been dropped or replaced since the query began.
            Some(Condition::Gone) => continue,
        };
        names.push(subject.name);
        let (schema, own) = split(subject.name);
        schemas.push(schema);
        own_names.push(own);
        definitions.push(subject.definition());
        counts.push(subject.counts());
        temporary.push(subject.relation.temporary().is_some());
        kinds.push(subject.kind);
        states.push(state);
        reasons.push(reason);
        rows.push(kept);
        filled.push(share);
    }
    let said = names.iter().map(|name| comments.get(name, None));
    let said = said.collect::<StringArray>();
    let count = |of: &dyn Fn(&Counts) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(counts.iter().map(of)))
    };
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from(names)),
        Arc::new(StringArray::from(kinds)),
        Arc::new(StringArray::from(states)),
        Arc::new(StringArray::from(reasons)),
        Arc::new(UInt64Array::from(rows)),
        Arc::new(Float64Array::from(filled)),
        Arc::new(said),
        Arc::new(StringArray::from(schemas)),
        Arc::new(StringArray::from(own_names)),
        Arc::new(StringArray::from(definitions)),
        Arc::new(BooleanArray::from(temporary)),
        count(&|counts| counts.columns),
        count(&|counts| counts.indexes),
        count(&|counts| counts.checks),
    ];
    let batch = RecordBatch::try_new(RELATIONS_SCHEMA.clone(), columns)?;
    Ok(Arc::new(MemTable::try_new(RELATIONS_SCHEMA.clone(), vec![vec![batch]])?))
}

/// How many parts of a kind the definition of a relation or an index has.
struct Counts {
    columns: i64,
    /// Those of constraints included, and the order of a table's rows by its primary key.
    indexes: i64,
    checks: i64,
}

impl<'a> Subject<'a> {
    fn of_relation(entry: &'a Entry) -> Self {
        let (kind, dataflow) = (entry.kind().noun(), entry.dataflow());
        let uses = entry.as_view().ok().map(|view| &view.uses);
        let without = match (&entry.failed, &entry.definition) {
            (Some(reason), _) => (FAILED, Some(&**reason)),
            (None, Definition::Declared(_)) => (DECLARED, None),
            (None, _) => (RUNNING, None),
        };
        // Relations that an open transaction has created have no state.
        let keeps_rows = entry.keeps_rows() && !entry.is_staged;
        let (relation, index) = (entry, None);
        Self { name: &entry.name, relation, index, kind, dataflow, uses, keeps_rows, without }
    }

    fn of_index(entry: &'a Entry, index: &'a NamedIndex) -> Self {
        let (name, dataflow, uses) = (index.name.as_str(), index.id, Some(&index.uses));
        let without = (FAILED, entry.failed.as_deref());
        let relation = entry;
        Self {
            name,
            relation,
            index: Some(index),
            kind: "index",
            dataflow,
            uses,
            keeps_rows: true,
            without,
        }
    }

    fn counts(&self) -> Counts {
        let number = |length: usize| i64::try_from(length).unwrap_or(i64::MAX);
        if let Some(index) = self.index {
            return Counts { columns: number(index.columns.len()), indexes: 0, checks: 0 };
        }
        let table = self.relation.as_table().ok();
        let has_key = table.is_some_and(|table| !table.primary_key.is_empty());
        Counts {
            columns: number(self.relation.schema.fields().len()),
            indexes: number(self.relation.indexes.len() + usize::from(has_key)),
            checks: number(table.map_or(0, |table| table.defined.checks.len())),
        }
    }

    /// SQL that defines it; that of a constraint's index defines its table.
    fn definition(&self) -> String {
        match self.index {
            Some(index) if !index.text.is_empty() => index.text.clone(),
            _ => self.relation.sql(),
        }
    }

    /// The share of rows that it and the indexes that it uses have read of those that they read; `None` if there are none, and before a
    /// worker has begun.
    fn share(&self, workers: Vec<Arc<ScannedRows>>, progress: &Progress) -> Result<Option<f64>> {
        if workers.is_empty() {
            return Ok(None);
        }
        let (mut scanned, mut there) = (workers, 0);
        if let Some(uses) = self.uses {
            let others = uses.all.values().filter(|id| Some(**id) != self.dataflow);
            let others: Vec<DataflowId> = others.copied().collect();
            for condition in progress.conditions(&others)? {
                match condition {
                    Condition::Fills(workers) => scanned.extend(workers),
                    Condition::Runs(parts) => there += updates(&parts),
                    Condition::Failed(_) | Condition::Gone => {}
                }
            }
        }
        let sum = |count: fn(&ScannedRows) -> u64| -> u64 {
            scanned.iter().map(|rows| count(rows)).sum()
        };
        let (read, total) = (there + sum(ScannedRows::read), there + sum(ScannedRows::total));
        Ok((total > 0).then(|| (read as f64 / total as f64).min(1.0)))
    }
}

/// How many updates are kept: at least as many as there are rows.
fn updates(parts: &[Published]) -> u64 {
    let contents = parts.iter().filter_map(|part| part.contents.as_ref());
    contents.map(|contents| contents.updates() as u64).sum()
}
