//! Ad-hoc queries: DataFusion over what relations held as of one epoch.
//!
//! A planned query scans relations by name. [`Instance::evaluate`] pins them all as of one epoch, puts a
//! [`RelationTable`](table::RelationTable) in the place of each scan, and runs the plan to its end on the
//! caller's thread. Arithmetic is checked as in views ([`checked`]), and `NOW()` is the time of the epoch that is
//! read or, inside a transaction, the transaction's.

mod arrangements;
mod checked;
mod clock;
mod conditions;
mod defaults;
mod distinct_rows;
mod engine;
mod errors;
mod file;
mod grouping_sets;
mod sequence;
mod strict;
mod sum;
mod table;
mod values;

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium_sql::planner::{CLOCK, RelationSource, at};
use alluvium_sql::statement::StatementKind;
use alluvium_trace::Epoch;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::datasource::{TableProvider, provider_as_source};
use datafusion::logical_expr::{LogicalPlan, TableScan};

pub(crate) use engine::QueryEngine;
pub(crate) use file::{File, Files};
pub(crate) use values::allow_nulls;

use crate::catalog::{ARRANGEMENTS, ERRORS, Entries, Entry, Scope};
use crate::clock::Moment;
use crate::error::{Error, Result};
use crate::instance::Instance;
use crate::transaction::Transaction;
use crate::worker::DataflowId;

/// What a query puts out.
pub(crate) struct Answer {
    pub(crate) schema: SchemaRef,
    pub(crate) batches: Vec<RecordBatch>,
}

/// What a query reads.
#[derive(Clone, Copy)]
pub(crate) struct Reading<'a> {
    /// The relations there were when it was planned.
    pub(crate) entries: &'a Entries,
    /// The files it reads.
    pub(crate) files: &'a Files,
    /// The epoch that must be complete.
    pub(crate) at_least: Epoch,
    /// The transaction it is part of, whose own writes it sees.
    pub(crate) transaction: Option<&'a Transaction>,
}

type Providers = BTreeMap<String, Arc<dyn TableProvider>>;

impl Instance {
    /// Runs a planned query.
    pub(crate) fn evaluate(&self, plan: LogicalPlan, reading: Reading<'_>) -> Result<Answer> {
        self.query.run(self.attach(plan, reading)?)
    }

    /// Runs a planned query, and gives what it answers to `take`, batch by batch. Ends at the first error of
    /// either.
    pub(crate) fn evaluate_each(
        &self,
        plan: LogicalPlan,
        reading: Reading<'_>,
        take: &mut (dyn FnMut(RecordBatch) -> Result<()> + Send),
    ) -> Result<()> {
        self.query.run_each(self.attach(plan, reading)?, take)
    }

    /// Tells how a planned query would be run.
    pub(crate) fn explain(&self, plan: LogicalPlan, reading: Reading<'_>) -> Result<String> {
        self.query.explain(self.attach(plan, reading)?)
    }

    /// All rows of a table or a materialized view.
    pub(crate) fn contents(&self, name: &str) -> Result<Answer> {
        self.select(&format!("SELECT * FROM \"{}\"", name.replace('"', "\"\"")))
    }

    /// What a query of the engine's own answers as of the last committed epoch.
    pub(crate) fn select(&self, sql: &str) -> Result<Answer> {
        let statement = alluvium_sql::statement::parse(sql).next().transpose()?;
        let Some(StatementKind::Query(query)) = statement.map(|statement| statement.kind) else {
            return Err(Error::sql(format!("\"{sql}\" is no query")));
        };
        let entries = self.catalog.entries();
        let plan = self.planner.query(&query, &Scope(&entries))?;
        let files = Files::new();
        let at_least = self.sequencer.last();
        self.evaluate(
            plan,
            Reading { entries: &entries, files: &files, at_least, transaction: None },
        )
    }

    /// The plan with the relations it scans pinned in it.
    fn attach(&self, plan: LogicalPlan, reading: Reading<'_>) -> Result<LogicalPlan> {
        let names = relations(&plan)?;
        let (providers, time) = self.providers(&names, reading)?;
        let plan = at(plan, time)?;
        let attached = plan.transform_up_with_subqueries(|node| match node {
            LogicalPlan::TableScan(scan) => {
                let Some(provider) = relation(&scan).and_then(|name| providers.get(name)) else {
                    return Ok(Transformed::no(LogicalPlan::TableScan(scan)));
                };
                let source = provider_as_source(provider.clone());
                Ok(Transformed::yes(LogicalPlan::TableScan(TableScan { source, ..scan })))
            }
            node => Ok(Transformed::no(node)),
        })?;
        Ok(attached.data)
    }

    /// The relations of these names, all as of one epoch, and what `NOW()` is for whoever reads them.
    fn providers(&self, names: &[String], reading: Reading<'_>) -> Result<(Providers, Moment)> {
        let entry = |name: &String| match reading.files.contains_key(name) {
            true => None,
            false => reading.entries.get(name).map(|entry| &**entry),
        };
        let kept: Vec<&Entry> = names.iter().filter_map(entry).collect();
        let views: Vec<&Entry> = match names.iter().any(|name| name == ERRORS) {
            true => reading
                .entries
                .values()
                .map(|entry| &**entry)
                .filter(|entry| entry.as_view().is_ok())
                .collect(),
            false => Vec::new(),
        };
        // What tells the errors of a view: its own dataflow, and the indexes it is made of.
        let mut reporters: Vec<(&Entry, DataflowId)> = Vec::new();
        for entry in views {
            let own = entry.dataflow().into_iter();
            let indexes = entry.as_view().into_iter().flat_map(|view| &view.uses.reported);
            reporters.extend(own.chain(indexes.copied()).map(|id| (entry, id)));
        }
        let ids: Vec<DataflowId> = kept
            .iter()
            .filter_map(|entry| entry.dataflow())
            .chain(reporters.iter().map(|(_, id)| *id))
            .collect();
        self.progress.wait(reading.at_least)?;
        let Some(mut pinned) = self.progress.pin(&ids)? else {
            return Err(Error::sql("a relation that the query reads has been dropped meanwhile"));
        };
        let time = reading.transaction.map_or(pinned.time, Transaction::time);
        let view_parts = pinned.dataflows.split_off(kept.len());
        let mut providers = Providers::new();
        for (entry, parts) in kept.iter().zip(pinned.dataflows) {
            let overlay = match (entry.as_table(), reading.transaction) {
                (Ok(table), Some(transaction)) => transaction.overlay(table)?,
                _ => None,
            };
            let snapshots = parts.into_iter().filter_map(|part| part.contents).collect();
            let table =
                table::RelationTable::new(entry.schema.clone(), pinned.epoch, snapshots, overlay);
            providers.insert(entry.name.clone(), Arc::new(table));
        }
        if names.iter().any(|name| name == ERRORS) {
            let views: Vec<&Entry> = reporters.iter().map(|(view, _)| *view).collect();
            let refused = self.refusals.rows(pinned.epoch);
            let table = errors::table(&views, view_parts, pinned.epoch, refused)?;
            providers.insert(ERRORS.to_owned(), table);
        }
        if names.iter().any(|name| name == ARRANGEMENTS) {
            let table = arrangements::table(self.progress.metrics())?;
            providers.insert(ARRANGEMENTS.to_owned(), table);
        }
        if names.iter().any(|name| name == CLOCK) {
            providers.insert(CLOCK.to_owned(), clock::table(time)?);
        }
        for name in names {
            if let Some(file) = reading.files.get(name) {
                let (file, formats) = (file.clone(), self.formats.clone());
                providers.insert(name.clone(), Arc::new(file::FileTable { file, formats }));
            }
        }
        Ok((providers, time))
    }
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

/// The name of the relation that a scan reads.
fn relation(scan: &TableScan) -> Option<&str> {
    scan.source.downcast_ref::<RelationSource>().map(RelationSource::name)
}
