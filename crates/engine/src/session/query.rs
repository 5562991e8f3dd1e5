//! Queries: their plans, and their rows.

use std::sync::Arc;

use alluvium_sql::catalog::Catalog;
use alluvium_sql::planner::{PlannedFor, bind, plan_for};
use alluvium_sql::statement::Statement;
use datafusion::logical_expr::LogicalPlan;
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast;

use super::culprit::located;
use super::paths::Paths;
use super::rights::told;
use super::{Session, depth};
use crate::catalog::Entries;
use crate::definitions::Definitions;
use crate::error::{Error, Result};
use crate::instance::Instance;
use crate::interrupt;
use crate::query::{Execution, FileScope, Files, KeptPlan, Reading, Rows, Running, relations};
use crate::transaction::Isolation;

impl Session {
    /// The rows of a query, once inputs have started or, if the session awaits them, come to their ends.
    pub(super) fn answer(&self, execution: Execution<'_>, query: &ast::Query) -> Result<Rows> {
        self.over_what_is_there(|| self.answer_once(execution, query))
    }

    /// Plans and runs a query, again if a relation that it reads was replaced since it was planned.
    pub(super) fn over_what_is_there<R>(&self, run: impl Fn() -> Result<R>) -> Result<R> {
        loop {
            match run() {
                Err(Error::Conflict { .. })
                    if self.transaction.is_none() && self.authorized.is_none() =>
                {
                    interrupt::check()?;
                }
                answer => return answer,
            }
        }
    }

    pub(super) fn answer_once(&self, execution: Execution<'_>, query: &ast::Query) -> Result<Rows> {
        let Instance { definitions: Definitions { catalog, planner, .. }, reader, .. } =
            self.instance();
        let Execution { statement, values, own } = execution;
        let entries = self.entries(execution)?;
        let located = || Some(statement.clone());
        if let Some(own) = own
            && let Some(kept) = own.get(values, &entries)
        {
            return self.answer_kept(&kept, values, &entries, values, located);
        }
        let files = self.files(query)?;
        let scope = FileScope { entries: &entries, files: &files };
        let plan = |scope: &dyn Catalog| planner.query(query, scope);
        let PlannedFor { planned: plan, is_typed } =
            self.planned_for(&scope, (values, false), plan, |plan| plan)?;
        let read = relations(&plan)?;
        self.before_reading(read.iter().any(|name| !files.contains_key(name)))?;
        let reading = self.reading_of_query(&entries, &files)?;
        let plan = match is_typed {
            true => bind(plan, values)?.into(),
            false => reader.plan(execution, plan, None, reading)?,
        };
        self.rows(reader.start(plan, reading)?, depth(catalog, statement), values, located)
    }

    /// Plans a statement for the values of its parameters; `are_assigned` and `rows` are as for [`plan_for`].
    pub(super) fn planned_for<P>(
        &self,
        scope: &dyn Catalog,
        (values, are_assigned): (&[ScalarValue], bool),
        plan: impl Fn(&dyn Catalog) -> alluvium_sql::error::Result<P>,
        rows: impl Fn(&P) -> &LogicalPlan,
    ) -> Result<PlannedFor<P>> {
        if !self.types_parameters || values.is_empty() {
            return Ok(PlannedFor { planned: plan(scope)?, is_typed: false });
        }
        Ok(plan_for(scope, values, are_assigned, plan, rows)?)
    }

    /// The rows of a query with a kept plan, which takes these values; `statement` and `parameters` are as for [`Session::rows`].
    pub(super) fn answer_kept(
        &self,
        kept: &KeptPlan,
        values: &[ScalarValue],
        entries: &Arc<Entries>,
        parameters: &[ScalarValue],
        statement: impl FnOnce() -> Option<Statement>,
    ) -> Result<Rows> {
        let reader = &self.instance().reader;
        self.before_reading(kept.reads())?;
        let files = Files::new();
        let reading = self.reading_of_query(entries, &files)?;
        if let Some(rows) = reader.look_up(kept, values, reading)? {
            return Ok(rows.with_written_names());
        }
        // Plans are kept of shallow statements only.
        self.rows(reader.start_kept(kept, values, reading)?, 0, parameters, statement)
    }

    /// The rows of a query that runs, of a statement with so many levels. The first ones are computed here; errors of the others
    /// have positions as those of the statement have, which is made only if there are such.
    pub(super) fn rows(
        &self,
        running: Running,
        depth: usize,
        parameters: &[ScalarValue],
        statement: impl FnOnce() -> Option<Statement>,
    ) -> Result<Rows> {
        let rows = Rows::of(running, &self.instance().poison, depth)?.with_written_names();
        let rows = rows.aborting(self.aborter());
        Ok(rows.located(|| {
            let (engine, base) = (self.engine.clone(), self.base.clone());
            let (access, replacement) = (self.file_access.clone(), self.replacement.clone());
            let (statement, parameters) = (statement(), parameters.to_vec());
            let own = (!self.temporary.are_none()).then(|| self.catalog_entries());
            let asked = self.rights.clone().map(|rights| (rights, self.asked.clone()));
            move |error| {
                let entries = own.clone();
                let entries =
                    entries.unwrap_or_else(|| engine.instance.definitions.catalog.entries());
                let told = |error| match &asked {
                    None => error,
                    Some((rights, uses)) => told(error, rights, uses, &entries),
                };
                let Some(statement) = &statement else { return access.worded(told(error), &base) };
                let replacement = replacement.as_ref();
                let paths = Paths { base: &base, reads: &access, writes: &access, replacement };
                let ran = (statement, &parameters[..]);
                let over = (paths, entries.clone());
                let error = located(&engine.instance, over, (None, None), ran, error);
                access.worded(told(error), &base).at(statement.position)
            }
        }))
    }

    /// As [`Session::reading`], for a query, which may read an older epoch. A transaction that is not serializable does not depend on
    /// it, and reads the last version if it is to see what was committed.
    pub(super) fn reading_of_query<'a>(
        &'a self,
        entries: &'a Arc<Entries>,
        files: &'a Files,
    ) -> Result<Reading<'a>> {
        let mut reading = self.reading(entries, files);
        let Some(transaction) = &self.transaction else {
            if self.reads_stale || self.settings.reads_stale() {
                reading.at_least = 0;
            }
            return Ok(reading);
        };
        let isolation = self.settings.isolation();
        reading.counts = isolation == Isolation::Serializable;
        if isolation == Isolation::ReadCommitted {
            match transaction.go_on(&transaction.read_before()) {
                // It stays at the version that what it has written depends on.
                Ok(()) | Err(Error::Conflict { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(reading)
    }
}
