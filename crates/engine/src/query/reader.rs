//! The reader: ad-hoc queries over the relations of an engine.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use alluvium_sql::functions::sequence::Sequences;
use alluvium_sql::name;
use alluvium_sql::planner::{BindSequences, LiteralRows, Planner, SeriesSource, WorkTable, at};
use alluvium_sql::statement::StatementKind;
use alluvium_trace::Epoch;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::datasource::cte_worktable::CteWorkTable;
use datafusion::datasource::{MemTable, provider_as_source};
use datafusion::logical_expr::{LogicalPlan, TableScan};

use super::explain::measured::Measures;
use super::metrics::Observed;
use super::providers::Providers;
use super::table::relation;
use super::{Explanation, Files, Held, Plan, Plans, QueryEngine, Running, explain, series};
use crate::authorizer::Rights;
use crate::catalog::{Catalog, Definition, Entries, Entry, RelationInfo, Scope, Table};
use crate::clock::Moment;
use crate::error::{Error, Result};
use crate::sequencer::Sequencer;
use crate::sequences::{BoundSequences, Taker};
use crate::source::{Refusals, Registry};
use crate::transaction::Transaction;
use crate::view::KeyedRelations;
use crate::worker::{Durable, Progress};

/// The result of a query.
pub(crate) struct Answer {
    pub(crate) schema: SchemaRef,
    pub(crate) batches: Vec<RecordBatch>,
}

/// The inputs of a query.
#[derive(Clone, Copy)]
pub(crate) struct Reading<'a> {
    /// The relations that existed when it was planned.
    pub(crate) entries: &'a Arc<Entries>,
    /// The files it reads.
    pub(crate) files: &'a Files,
    /// The epoch that must be complete.
    pub(crate) at_least: Epoch,
    /// The transaction it is part of, whose own writes it sees.
    pub(crate) transaction: Option<&'a Transaction>,
    /// Whether the reads of a transaction have to be durable: they do if others see them before the transaction is.
    pub(crate) durable: Durable,
    /// Whether the transaction depends on the rows that are read.
    pub(crate) counts: bool,
    /// Whose rights say which relations system relations tell of; `None` if they tell of all.
    pub(crate) rights: Option<&'a Rights>,
    /// Who takes values of sequences; `None` if it is no session.
    pub(crate) taker: Option<Taker<'a>>,
    /// Where to note how long the relations were waited for, if that is asked for.
    pub(crate) waited: Option<&'a Cell<Duration>>,
}

/// The part of an engine that queries read through.
pub(crate) struct Reader {
    pub(crate) progress: Arc<Progress>,
    pub(crate) refusals: Arc<Refusals>,
    pub(crate) formats: Arc<Registry>,
    /// Whether an error of a view is an error of the engine.
    pub(crate) strict: bool,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) planner: Arc<Planner>,
    pub(crate) query: Arc<QueryEngine>,
    pub(crate) plans: Plans,
    pub(crate) keyed: KeyedRelations,
    pub(crate) sequencer: Arc<Sequencer>,
    pub(crate) observed: Observed,
}

impl Reader {
    /// Runs a planned query.
    pub(crate) fn evaluate(&self, plan: Plan, reading: Reading<'_>) -> Result<Answer> {
        self.query.run(self.pinned(plan, reading)?)
    }

    /// Runs a planned query, and passes its result to `take`, batch by batch. Ends at the first error of either.
    pub(crate) fn evaluate_each(
        &self,
        plan: Plan,
        reading: Reading<'_>,
        take: &mut dyn FnMut(RecordBatch) -> Result<()>,
    ) -> Result<()> {
        let mut running = self.start(plan, reading)?;
        while let Some(rows) = running.pull()? {
            take(rows)?;
        }
        Ok(())
    }

    /// Begins to run a planned query, whose rows are computed as they are pulled.
    pub(crate) fn start(&self, plan: Plan, reading: Reading<'_>) -> Result<Running> {
        let plan = self.pinned(plan, reading)?;
        match reading.files.is_empty() {
            true => self.query.start_in_turns(plan),
            // It may wait for who writes them.
            false => self.query.start(plan),
        }
    }

    /// The columns of the result of a planned query.
    pub(crate) fn columns(&self, plan: LogicalPlan, reading: Reading<'_>) -> Result<SchemaRef> {
        self.query.columns(self.attach(plan, reading)?)
    }

    /// As [`Reader::columns`], of relations that are not read. The plan may have open parameters with types.
    pub(crate) fn described(
        &self,
        plan: LogicalPlan,
        entries: &Arc<Entries>,
        files: &Files,
    ) -> Result<SchemaRef> {
        let providers = self.without_rows(&relations(&plan)?, entries, files)?;
        self.query.described(attached(plan, &providers, Some(0), None)?)
    }

    /// Counts rows of a result among those that queries hold.
    pub(crate) fn hold(&self) -> Held {
        self.query.hold()
    }

    /// The physical plan of a planned query.
    pub(crate) fn explain(&self, plan: LogicalPlan, reading: Reading<'_>) -> Result<Explanation> {
        self.query.explain(self.attach(plan, reading)?)
    }

    /// Runs a planned query, and tells what its operators have done.
    pub(crate) fn explain_run(&self, plan: Plan, reading: Reading<'_>) -> Result<Explanation> {
        let waited = Cell::default();
        let plan = self.pinned(plan, Reading { waited: Some(&waited), ..reading })?;
        let measures = Measures::default();
        // As for a query that is not measured.
        let takes_turns = reading.files.is_empty();
        let mut running = self.query.start_measured(plan, takes_turns, &measures)?;
        let mut rows = 0;
        while let Some(batch) = running.pull()? {
            rows += batch.num_rows() as u64;
        }
        Ok(explain::query::explain_run(&measures.get(), waited.get(), rows))
    }

    /// All rows of a table or a materialized view, read as they are pulled.
    pub(crate) fn contents(&self, name: &str) -> Result<Running> {
        self.query.start(self.planned(&format!("SELECT * FROM {}", name::written(name)))?)
    }

    /// The result of a query of the engine's own as of the last committed epoch.
    pub(crate) fn select(&self, sql: &str) -> Result<Answer> {
        self.query.run_all(self.planned(sql)?)
    }

    /// The plan of a query of the engine's own.
    pub(crate) fn plan_of(&self, sql: &str, entries: &Entries) -> Result<LogicalPlan> {
        let statement = alluvium_sql::statement::parse(sql).next().transpose()?;
        let Some(StatementKind::Query(query)) = statement.map(|statement| statement.kind) else {
            return Err(Error::sql(format!("\"{sql}\" is no query")));
        };
        Ok(self.planner.query(&query, &Scope(entries))?)
    }

    fn planned(&self, sql: &str) -> Result<Plan> {
        let entries = self.catalog.entries();
        let plan = self.plan_of(sql, &entries)?;
        let files = Files::new();
        let at_least = self.last();
        let (entries, files) = (&entries, &files);
        let (durable, counts) = (Durable::Yes, true);
        let (transaction, rights, taker, waited) = (None, None, None, None);
        let reading = Reading {
            entries,
            files,
            at_least,
            transaction,
            durable,
            counts,
            rights,
            taker,
            waited,
        };
        Ok(self.attach(plan, reading)?.into())
    }

    /// The epoch that a read has to see, as [`Sequencer::reported`] says.
    pub(crate) fn reported(&self) -> Epoch {
        self.sequencer.reported()
    }

    /// The last committed epoch.
    pub(crate) fn last(&self) -> Epoch {
        self.sequencer.last()
    }

    /// The table or view of a name.
    pub(crate) fn relation(&self, name: &str) -> Result<RelationInfo> {
        let entry = self.catalog.get(name)?;
        self.relation_info(&entry)
    }

    /// All tables and views, by name.
    pub(crate) fn relations(&self) -> Result<Vec<RelationInfo>> {
        let entries = self.catalog.entries();
        entries.values().map(|entry| self.relation_info(entry)).collect()
    }

    fn relation_info(&self, entry: &Entry) -> Result<RelationInfo> {
        let mut primary_key = Vec::new();
        if let Ok(table) = entry.as_table() {
            primary_key.clone_from(&table.primary_key);
        }
        let counts = self.counts(entry)?;
        let (name, kind, schema) = (entry.name.clone(), entry.kind(), entry.schema.clone());
        let definition = self.sequencer.definition(&name);
        let has_passed = match &entry.definition {
            Definition::Table(Table { id, kept: false, .. }) => self.sequencer.has_passed(*id),
            _ => false,
        };
        let reads = entry.depends.clone();
        // Those of constraints are part of the table's definition.
        let created = entry.indexes.iter().filter(|index| index.unique.is_none());
        let info = RelationInfo {
            name,
            kind,
            schema,
            definition,
            sql: entry.sql(),
            reads,
            calls: entry.calls().to_vec(),
            has_passed,
            primary_key,
            indexes: created.map(|index| index.info()).collect(),
            comments: self.sequencer.comments().statements(&entry.name),
            failed: self.why_failed(entry),
            refused: counts.refused,
            late: counts.late,
        };
        Ok(info)
    }

    /// Why a relation has failed, if it has.
    fn why_failed(&self, entry: &Entry) -> Option<String> {
        let failed = entry.dataflow().and_then(|id| self.progress.failures().get(id));
        let reason = entry.failed.clone().or(failed.map(|failed| failed.reason));
        reason.map(|reason| reason.to_string())
    }

    /// Fails if a view has failed.
    pub(crate) fn check_none_failed(&self) -> Result<()> {
        let entries = self.catalog.entries();
        let failed = entries.values().find_map(|entry| Some((entry, self.why_failed(entry)?)));
        match failed {
            None => Ok(()),
            Some((entry, reason)) => Err(Error::Failed { view: entry.name.clone(), reason }),
        }
    }

    /// How many updates the errors of all views have, as they were last published. Does not block.
    pub(crate) fn error_updates(&self) -> Result<u64> {
        let entries = self.catalog.entries();
        let views = entries.values().filter(|entry| !entry.is_table());
        let ids = views.filter_map(|view| view.dataflow());
        let ids: Vec<_> = ids.filter(|id| self.progress.failures().get(*id).is_none()).collect();
        let parts = self.progress.published(&ids)?.into_iter();
        Ok(parts.filter_map(|part| part.errors).map(|errors| errors.updates() as u64).sum())
    }

    fn pinned(&self, plan: Plan, reading: Reading<'_>) -> Result<Plan> {
        Ok(Plan { logical: self.attach(plan.logical, reading)?, ..plan })
    }

    /// The plan with its relations pinned.
    fn attach(&self, plan: LogicalPlan, reading: Reading<'_>) -> Result<LogicalPlan> {
        let names = relations(&plan)?;
        let (providers, time) = self.providers(&names, reading)?;
        self.over(plan, &providers, Some(time), reading)
    }

    /// As [`Reader::attach`], of a plan that is kept: it has no time yet.
    pub(super) fn attach_kept(
        &self,
        plan: LogicalPlan,
        reading: Reading<'_>,
    ) -> Result<LogicalPlan> {
        let (providers, _) = self.providers(&relations(&plan)?, reading)?;
        self.over(plan, &providers, None, reading)
    }

    fn over(
        &self,
        plan: LogicalPlan,
        providers: &Providers,
        time: Option<Moment>,
        reading: Reading<'_>,
    ) -> Result<LogicalPlan> {
        let bind = || -> Arc<dyn Sequences> {
            Arc::new(BoundSequences::of_reading(reading, self.sequencer.clone()))
        };
        attached(plan, providers, time, Some(&bind))
    }
}

/// The plan over these relations, at a time if there is one, with these sequences.
fn attached(
    plan: LogicalPlan,
    providers: &Providers,
    time: Option<Moment>,
    sequences: Option<BindSequences<'_>>,
) -> Result<LogicalPlan> {
    let plan = at(plan, time, sequences)?;
    let attached = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::TableScan(scan) => {
            let source = scan.source.as_ref();
            let provider = if let Some(series) = source.downcast_ref::<SeriesSource>() {
                Some(series::table(series))
            } else if let Some(literals) = source.downcast_ref::<LiteralRows>() {
                let rows = literals.rows().clone();
                Some(Arc::new(MemTable::try_new(rows.schema(), vec![vec![rows]])?) as _)
            } else if let Some(table) = source.downcast_ref::<WorkTable>() {
                let rows = CteWorkTable::new(table.name(), table.columns().clone());
                Some(Arc::new(rows) as _)
            } else {
                relation(&scan).and_then(|name| providers.get(name)).cloned()
            };
            let Some(provider) = provider else {
                return Ok(Transformed::no(LogicalPlan::TableScan(scan)));
            };
            let source = provider_as_source(provider);
            Ok(Transformed::yes(LogicalPlan::TableScan(TableScan { source, ..scan })))
        }
        node => Ok(Transformed::no(node)),
    })?;
    Ok(attached.data)
}

/// The names of the relations and files that a plan scans, each once.
pub(crate) fn relations(plan: &LogicalPlan) -> Result<Vec<String>> {
    let mut names = Vec::new();
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            names.extend(relation(scan).map(str::to_owned));
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    names.sort();
    names.dedup();
    Ok(names)
}
