//! Which tables have been changed.

use std::collections::{BTreeMap, BTreeSet};

use super::{Applied, Effects, Persisted, SavePoint, Saving};
use crate::durable::checkpoint::{Checkpoint, DataflowName};
use crate::error::Result;
use crate::sequencer::Kept;
use crate::worker::DataflowId;

/// The tables that have been changed since they were made.
#[derive(Default)]
pub(in crate::sequencer) struct ChangedTables {
    tables: BTreeSet<DataflowId>,
    /// The names of those that are not there again yet.
    saved: BTreeSet<String>,
}

impl ChangedTables {
    /// Whether rows have entered a table.
    pub(in crate::sequencer) fn has(&self, table: DataflowId) -> bool {
        self.tables.contains(&table)
    }

    /// Whether rows had entered a table of this name at the checkpoint that is being restored.
    pub(in crate::sequencer) fn had(&self, name: &str) -> bool {
        self.saved.contains(name)
    }

    pub(in crate::sequencer) fn insert(&mut self, table: DataflowId) {
        self.tables.insert(table);
    }

    pub(in crate::sequencer) fn remove(&mut self, table: DataflowId) {
        self.tables.remove(&table);
    }

    /// All tables of the checkpoint are there again, among these dataflows.
    pub(in crate::sequencer) fn finish_restoring(
        &mut self,
        dataflows: &BTreeMap<DataflowId, Kept>,
    ) {
        let saved = std::mem::take(&mut self.saved);
        let changed = dataflows
            .iter()
            .filter(|(_, kept)| relation(kept).is_some_and(|name| saved.contains(name)));
        self.tables.extend(changed.map(|(id, _)| *id));
    }
}

/// The name of the relation whose dataflow this is.
fn relation(kept: &Kept) -> Option<&str> {
    match &kept.key.name {
        DataflowName::Relation(name) => Some(name),
        DataflowName::Index(_) | DataflowName::Output(_) => None,
    }
}

impl Persisted for ChangedTables {
    fn save(&self, at: &SavePoint<'_>) -> Box<dyn Saving> {
        let name = |id: &DataflowId| relation(at.dataflows.get(id)?).map(str::to_owned);
        let changed = self.tables.iter().filter_map(name).collect();
        Box::new(|checkpoint: &mut Checkpoint| checkpoint.changed = changed)
    }

    fn restore(&mut self, checkpoint: &mut Checkpoint) -> Result<()> {
        // Whether all of them have their rows is still to be checked.
        self.saved = checkpoint.changed.iter().cloned().collect();
        Ok(())
    }

    fn apply(&mut self, commit: &Applied<'_>, _: &mut Effects) -> Result<()> {
        self.tables.extend(commit.tables);
        Ok(())
    }
}
