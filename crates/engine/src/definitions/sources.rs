//! ALTER SOURCE.

use alluvium_sql::statement::SourceChange;

use super::Definitions;
use crate::durable::record::Record;
use crate::error::{Error, Result, SqlState};
use crate::source::Inputs;

impl Definitions {
    /// Has the source of a table pause, or go on, durably. Rows that come in afterwards were read before.
    pub(crate) fn alter_source(&self, change: &SourceChange, inputs: &Inputs) -> Result<()> {
        let SourceChange { name, if_exists, pauses, .. } = change;
        let lock = self.lock();
        if *if_exists && !self.catalog.contains(name) {
            return Ok(());
        }
        let entry = self.catalog.get(name)?;
        let has_source = entry.as_table().is_ok_and(|table| !table.defined.connectors.is_empty());
        if !has_source {
            let message = format!("\"{name}\" is no table with a connector: it has no source");
            return Err(Error::sql(message).with_sqlstate(SqlState::WRONG_KIND));
        }
        if inputs.pauses(name) != *pauses {
            let record = Record::of_source(SourceChange::statement(name, *pauses));
            self.sequencer.pause_source(&record, name, *pauses)?;
            inputs.pause(name, *pauses);
        }
        drop(lock);
        self.sequencer.durable().sync_all()
    }
}
