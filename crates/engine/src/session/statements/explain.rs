//! EXPLAIN and DESCRIBE, and statements about a running engine: REFRESH, START and CHECKPOINT.

use std::time::Duration;

use alluvium_sql::catalog::Catalog;
use alluvium_sql::error::Position;
use alluvium_sql::planner::bind;
use alluvium_sql::statement::{ExplainFormat, FileName};
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast;

use super::describe::{describe, describe_file, show_sinks, show_sources, show_tables};
use super::done;
use crate::error::Result;
use crate::query::{FileScope, explain_view, relations};
use crate::session::{Outcome, Session};

impl Session {
    pub(super) fn explain_query(
        &self,
        query: &ast::Query,
        parameters: &[ScalarValue],
        format: ExplainFormat,
    ) -> Result<Outcome> {
        let planner = &self.instance().definitions.planner;
        let entries = self.catalog_entries();
        let files = self.files(query)?;
        let scope = FileScope { entries: &entries, files: &files };
        let plan = |scope: &dyn Catalog| planner.query(query, scope);
        let planned = self.planned_for(&scope, (parameters, false), plan, |plan| plan)?;
        let plan = bind(planned.planned, parameters)?;
        let explained = self.instance().reader.explain(plan, self.reading(&entries, &files))?;
        Ok(Outcome::Text(explained.written(format)))
    }

    /// Runs a query, and tells what its operators have done instead of its rows.
    pub(super) fn explain_run(
        &self,
        query: &ast::Query,
        parameters: &[ScalarValue],
        format: ExplainFormat,
    ) -> Result<Outcome> {
        let planner = &self.instance().definitions.planner;
        let explained = self.over_what_is_there(|| {
            let entries = self.catalog_entries();
            let files = self.files(query)?;
            let scope = FileScope { entries: &entries, files: &files };
            let plan = |scope: &dyn Catalog| planner.query(query, scope);
            let planned = self.planned_for(&scope, (parameters, false), plan, |plan| plan)?;
            let plan = bind(planned.planned, parameters)?;
            let read = relations(&plan)?;
            self.before_reading(read.iter().any(|name| !files.contains_key(name)))?;
            let reading = self.reading_of_query(&entries, &files)?;
            self.instance().reader.explain_run(plan.into(), reading)
        })?;
        Ok(Outcome::Text(explained.written(format)))
    }

    pub(super) fn explain_view(
        &self,
        name: &str,
        position: Position,
        format: ExplainFormat,
    ) -> Result<Outcome> {
        let entry = self.relation(name).map_err(|error| error.at(position))?;
        entry.as_view().map_err(|error| error.at(position))?;
        Ok(Outcome::Text(explain_view(&entry)?.written(format)))
    }

    pub(super) fn explain_state(
        &self,
        name: &str,
        position: Position,
        format: ExplainFormat,
    ) -> Result<Outcome> {
        let entry = self.relation(name).map_err(|error| error.at(position))?;
        entry.as_view().map_err(|error| error.at(position))?;
        let entries = self.catalog_entries();
        let explained = self.instance().reader.explain_state(&entry, &entries)?;
        Ok(Outcome::Text(explained.written(format)))
    }

    pub(super) fn explain_analyze(
        &self,
        name: &str,
        position: Position,
        time: Option<Duration>,
        format: ExplainFormat,
    ) -> Result<Outcome> {
        let entry = self.relation(name).map_err(|error| error.at(position))?;
        entry.check_materialized().map_err(|error| error.at(position))?;
        let entries = self.catalog_entries();
        let reader = &self.instance().reader;
        let explained =
            reader.explain_analyze(&entry, &entries, &|name: &str| self.shows(name), time)?;
        Ok(Outcome::Text(explained.written(format)))
    }

    pub(super) fn show_tables(&self) -> Result<Outcome> {
        show_tables(&self.catalog_entries(), self.rights.as_deref())
    }

    pub(super) fn show_sources(&self) -> Result<Outcome> {
        let mut sources = self.instance().connectors.inputs.progress();
        sources.retain(|source| self.shows(&source.table));
        show_sources(sources)
    }

    pub(super) fn show_sinks(&self) -> Result<Outcome> {
        let mut sinks = self.instance().connectors.outputs.shown();
        sinks.retain(|sink| self.shows(&sink.relation));
        show_sinks(sinks)
    }

    /// Whether the session is told how the rows of a relation come and go.
    fn shows(&self, relation: &str) -> bool {
        self.rights.as_ref().is_none_or(|rights| rights.shows(relation))
    }

    pub(super) fn describe_relation(&self, name: &str, position: Position) -> Result<Outcome> {
        let entry = self.relation(name).map_err(|error| error.at(position))?;
        describe(&entry)
    }

    /// The columns of a file, as a query would read them.
    pub(in crate::session) fn describe_file(&self, file: &FileName) -> Result<Outcome> {
        describe_file(&self.paths().found(self.instance(), file)?)
    }

    /// A materialized view is always up to date.
    pub(super) fn refresh(&self, name: &str, position: Position) -> Result<Outcome> {
        done(self.relation(name).and_then(|entry| entry.check_materialized()), position)
    }

    pub(super) fn start(&self) -> Result<Outcome> {
        self.outside("START")?;
        self.engine.start()?;
        Ok(Outcome::Done)
    }

    pub(super) fn checkpoint(&self) -> Result<Outcome> {
        self.engine.checkpoint()?;
        Ok(Outcome::Done)
    }
}
