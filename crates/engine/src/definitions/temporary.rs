//! Temporary tables, whose dataflows sessions have.

use std::sync::Arc;

use alluvium_sql::statement::{OnCommit, TableDefinition};

use super::{Definitions, relations};
use crate::catalog::{Entries, Entry, Temporary};
use crate::error::{Error, Result, SqlState};
use crate::interrupt;
use crate::sequencer::{OwnedDataflow, Role};

impl Definitions {
    /// A temporary table, for a session that sees these relations. It is in no catalog, no journal and no checkpoint.
    pub(crate) fn temporary_table(
        &self,
        definition: &TableDefinition,
        on_commit: OnCommit,
        entries: &Entries,
    ) -> Result<Entry> {
        check(definition).map_err(|error| error.at(definition.position))?;
        let table = Arc::new(relations::table_of(definition)?);
        self.planner.checks(definition)?;
        self.check_sequences(definition, entries)?;
        interrupt::deferred(|| {
            let id = {
                let _lock = self.lock();
                self.install_table(&definition.name, &table, true, None, Role::Temporary)?
            };
            let dataflow = OwnedDataflow::new(id, &self.sequencer);
            self.progress.wait_filled(id)?;
            let mut entry = Entry::of_table(definition, id)?.since(self.sequencer.last());
            if let crate::catalog::Definition::Table(table) = &mut entry.definition {
                table.temporary =
                    Some(Arc::new(Temporary { on_commit, _dataflow: Box::new(dataflow) }));
            }
            Ok(entry)
        })
    }
}

/// Fails for what a table cannot have that ends with its session.
fn check(definition: &TableDefinition) -> Result<()> {
    let what = if !definition.connectors.is_empty() {
        "connectors"
    } else if !definition.lateness.is_empty() {
        "LATENESS"
    } else if !definition.is_kept() {
        "'materialized' = 'false'"
    } else if !definition.uniques.is_empty() {
        "UNIQUE (write PRIMARY KEY)"
    } else if definition.sequences().next().is_some() {
        "generated columns"
    } else {
        return Ok(());
    };
    let message = format!(
        "a temporary table with {what} is not supported: create it without, or without TEMPORARY"
    );
    Err(Error::sql(message).with_sqlstate(SqlState::NOT_SUPPORTED))
}
