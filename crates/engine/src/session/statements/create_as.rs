//! CREATE TABLE … AS.

use std::sync::Arc;

use alluvium_sql::catalog::Catalog;
use alluvium_sql::error::Position;
use alluvium_sql::planner::{as_written, bind};
use alluvium_sql::statement::{IfTaken, OnCommit, TableDefinition};
use alluvium_trace::Epoch;
use arrow::compute::cast;
use arrow::datatypes::{Schema, SchemaRef};
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast;

use crate::catalog::Entry;
use crate::definitions::{Taken, taken};
use crate::error::Result;
use crate::instance::Instance;
use crate::query::{FileScope, relations};
use crate::session::{Outcome, Session};

impl Session {
    /// Creates a table of the columns that a query has, and inserts its rows, in one transaction. If that fails, there is no
    /// table.
    pub(in crate::session) fn create_table_as(
        &mut self,
        (name, position): (&str, Position),
        (if_taken, temporary): (IfTaken, Option<OnCommit>),
        query: &ast::Query,
        parameters: &[ScalarValue],
    ) -> Result<Outcome> {
        if let Some(epoch) = self.is_committed()? {
            return Ok(Outcome::Changed { rows: 0, epoch: Some(epoch) });
        }
        let is_free = match temporary {
            Some(_) => self.is_temporary_free(name, if_taken),
            None => taken(&self.catalog_entries(), name, if_taken, Entry::is_table)
                .map(|taken| matches!(taken, Taken::Free)),
        };
        if !is_free.map_err(|error| error.at(position))? {
            return Ok(Outcome::Done);
        }
        let entries = self.catalog_entries();
        let files = self.files(query)?;
        let scope = FileScope { entries: &entries, files: &files };
        let planner = &self.instance().definitions.planner;
        let plan = |scope: &dyn Catalog| planner.query(query, scope);
        let planned = self.planned_for(&scope, (parameters, false), plan, |plan| plan)?;
        let plan = bind(planned.planned, parameters)?;
        let read = relations(&plan)?;
        self.before_reading(read.iter().any(|name| !files.contains_key(name)))?;
        let reading = self.reading(&entries, &files);
        let selected = self.instance().reader.columns(plan.clone(), reading)?;
        let selected = as_written(&selected).unwrap_or(selected);
        let definition = TableDefinition::with_columns(name, position, &nullable(&selected))?;
        let insert = |session: &mut Self, created: &Entry| {
            let Some(transaction) = &session.transaction else { return Ok(0) };
            let mut staging = transaction.begin_staging(created)?;
            let reading = session.reading(&entries, &files);
            session.instance().reader.evaluate_each(plan.clone().into(), reading, &mut |rows| {
                let columns = rows.columns().iter().zip(created.schema.fields());
                let columns = columns.map(|(values, field)| cast(values, field.data_type()));
                let columns = columns.collect::<std::result::Result<Vec<_>, _>>()?;
                staging.insert(&columns).map(drop)
            })?;
            session.finish_staging(staging)
        };
        let (rows, epoch) = match temporary {
            Some(on_commit) => self.create_temporary_with_rows(&definition, on_commit, insert)?,
            None => self.create_with_rows(&definition, insert)?,
        };
        Ok(Outcome::Changed { rows, epoch })
    }

    /// Creates a table, and commits what `insert` inserts into it within a transaction. If that fails, or the engine ends
    /// before, there is no table.
    pub(in crate::session) fn create_with_rows<R>(
        &mut self,
        definition: &TableDefinition,
        mut insert: impl FnMut(&mut Self, &Entry) -> Result<R>,
    ) -> Result<(R, Option<Epoch>)> {
        if self.transaction.is_some() {
            return self.stage_with_rows(definition, insert).map(|inserted| (inserted, None));
        }
        let Instance { definitions, writer, connectors, .. } = self.instance();
        definitions.create_table(definition, &self.base, writer, connectors)?;
        let created = definitions.catalog.get(&definition.name)?;
        let loaded = self.in_one_transaction(|session| {
            if let Some(transaction) = &mut session.transaction {
                transaction.completes(&definition.name);
            }
            insert(session, &created)
        });
        if loaded.is_err() {
            let Instance { definitions, writer, connectors, .. } = self.instance();
            definitions.undo(&definition.name, writer, connectors)?;
        }
        loaded
    }

    /// The epoch of the transaction that was committed with the key of the next one, if there is one.
    pub(in crate::session) fn is_committed(&mut self) -> Result<Option<Epoch>> {
        let committed = self.key.as_ref().map(|key| self.engine.committed(key));
        let committed = committed.transpose()?.flatten();
        if committed.is_some() {
            self.key = None;
        }
        Ok(committed)
    }
}

/// The columns of a query, which may all be NULL in a table.
fn nullable(selected: &SchemaRef) -> Schema {
    let fields = selected.fields().iter();
    let fields = fields.map(|field| Arc::new(field.as_ref().clone().with_nullable(true)));
    Schema::new(fields.collect::<Vec<_>>())
}
