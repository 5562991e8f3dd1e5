//! `alluvium.relations`: all tables, views and indexes, and how each of them is.
//!
//! It is for those who want to know why something waits, so reading it waits for no relation: it shows what the workers have
//! published last, of each relation as of an epoch of its own.

use std::sync::Arc;

use alluvium_dataflow::movement::import::ScannedRows;
use arrow::array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};
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
        kinds.push(subject.kind);
        states.push(state);
        reasons.push(reason);
        rows.push(kept);
        filled.push(share);
    }
    let said = names.iter().map(|name| comments.get(name, None));
    let said = said.collect::<StringArray>();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from(names)),
        Arc::new(StringArray::from(kinds)),
        Arc::new(StringArray::from(states)),
        Arc::new(StringArray::from(reasons)),
        Arc::new(UInt64Array::from(rows)),
        Arc::new(Float64Array::from(filled)),
        Arc::new(said),
    ];
    let batch = RecordBatch::try_new(RELATIONS_SCHEMA.clone(), columns)?;
    Ok(Arc::new(MemTable::try_new(RELATIONS_SCHEMA.clone(), vec![vec![batch]])?))
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
        Self { name: &entry.name, kind, dataflow, uses, keeps_rows, without }
    }

    fn of_index(entry: &'a Entry, index: &'a NamedIndex) -> Self {
        let (name, dataflow, uses) = (index.name.as_str(), index.id, Some(&index.uses));
        let without = (FAILED, entry.failed.as_deref());
        Self { name, kind: "index", dataflow, uses, keeps_rows: true, without }
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
