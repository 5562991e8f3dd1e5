//! The tables whose sources pause.

use std::collections::BTreeSet;

use alluvium_sql::statement::SourceChange;

use super::{Persisted, SavePoint, Saving};
use crate::durable::checkpoint::Checkpoint;
use crate::durable::record::Record;
use crate::error::Result;

/// The tables whose sources pause.
#[derive(Default)]
pub(in crate::sequencer) struct PausedSources(BTreeSet<String>);

impl PausedSources {
    pub(in crate::sequencer) fn set(&mut self, table: &str, pauses: bool) {
        match pauses {
            true => self.0.insert(table.to_owned()),
            false => self.0.remove(table),
        };
    }
}

impl Persisted for PausedSources {
    /// As statements after those that create the tables.
    fn save(&self, _: &SavePoint<'_>) -> Box<dyn Saving> {
        let paused = self.0.clone();
        Box::new(|checkpoint: &mut Checkpoint| {
            let statement = |table: String| {
                let text = SourceChange::statement(&table, true);
                (table, Record::of_source(text))
            };
            checkpoint.definitions.extend(paused.into_iter().map(statement));
        })
    }

    /// They are executed again.
    fn restore(&mut self, _: &mut Checkpoint) -> Result<()> {
        Ok(())
    }
}
