//! CREATE TABLE … AS.

use std::sync::Arc;

use alluvium_sql::error::Position;
use alluvium_sql::planner::{as_written, bind};
use alluvium_sql::statement::{IfTaken, TableDefinition};
use arrow::compute::cast;
use arrow::datatypes::{Schema, SchemaRef};
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast;

use super::{Outcome, Session};
use crate::catalog::{Entry, FileScope};
use crate::definitions::Taken;
use crate::error::Result;
use crate::instance::Instance;
use crate::query::relations;

impl Session {
    /// Creates a table of the columns that a query has, and inserts its rows, in one transaction. If that fails, there is no
    /// table.
    pub(super) fn create_table_as(
        &mut self,
        name: &str,
        position: Position,
        if_taken: IfTaken,
        query: &ast::Query,
        parameters: &[ScalarValue],
    ) -> Result<Outcome> {
        let taken = self.instance().definitions.taken(name, if_taken, Entry::is_table);
        match taken.map_err(|error| error.at(position))? {
            Taken::Free => {}
            Taken::Keep | Taken::Replace(_) => return Ok(Outcome::Done),
        }
        let entries = self.instance().definitions.catalog.entries();
        let files = self.files(query)?;
        let scope = FileScope { entries: &entries, files: &files };
        let plan = bind(self.instance().definitions.planner.query(query, &scope)?, parameters)?;
        let read = relations(&plan)?;
        self.before_reading(read.iter().any(|name| !files.contains_key(name)))?;
        let reading = self.reading(&entries, &files);
        let selected = self.instance().reader.columns(plan.clone(), reading)?;
        let selected = as_written(&selected).unwrap_or(selected);
        let definition = TableDefinition::with_columns(name, position, &nullable(&selected))?;
        let Instance { definitions, writer, connectors, .. } = self.instance();
        definitions.create_table(&definition, &self.base, writer, connectors)?;
        let created = definitions.catalog.get(name)?;
        let loaded = self.in_one_transaction(|session| {
            let Some(transaction) = &session.transaction else { return Ok(0) };
            let mut staging = transaction.begin_staging(&created);
            let reading = session.reading(&entries, &files);
            session.instance().reader.evaluate_each(plan.into(), reading, &mut |rows| {
                let columns = rows.columns().iter().zip(created.schema.fields());
                let columns = columns.map(|(values, field)| cast(values, field.data_type()));
                let columns = columns.collect::<std::result::Result<Vec<_>, _>>()?;
                staging.insert(&columns).map(drop)
            })?;
            session.finish_staging(staging)
        });
        if loaded.is_err() {
            let Instance { definitions, writer, connectors, .. } = self.instance();
            definitions.undo(name, writer, connectors)?;
        }
        loaded.map(|(rows, epoch)| Outcome::Changed { rows, epoch })
    }
}

/// The columns of a query, which may all be NULL in a table.
fn nullable(selected: &SchemaRef) -> Schema {
    let fields = selected.fields().iter();
    let fields = fields.map(|field| Arc::new(field.as_ref().clone().with_nullable(true)));
    Schema::new(fields.collect::<Vec<_>>())
}
