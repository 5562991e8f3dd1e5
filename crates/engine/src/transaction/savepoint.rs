//! Marks in a transaction, to which it can return.

use std::collections::BTreeMap;

use super::Transaction;
use crate::definitions::StagedDefinitions;
use crate::worker::DataflowId;

/// The staged changes of a transaction at some moment.
pub(crate) struct Mark {
    /// The number of changed rows of each table that had some.
    rows: BTreeMap<DataflowId, u64>,
    /// The number of portions that sources refused.
    refused: usize,
    /// Its definitions.
    definitions: Option<Box<StagedDefinitions>>,
}

impl Transaction {
    /// The staged changes by now. Changes are only ever added at the end, so their number is enough.
    pub(crate) fn mark(&self) -> Mark {
        let rows = self.changes.iter().map(|(table, (_, staged))| (*table, staged.rows()));
        let (rows, definitions) = (rows.collect(), self.definitions.clone());
        Mark { rows, refused: self.refused.len(), definitions }
    }

    /// Forgets changes staged after a mark of its own.
    pub(crate) fn return_to(&mut self, mark: &Mark) {
        let overlays = self.overlays.get_mut();
        self.changes.retain(|table, (_, staged)| {
            let rows = mark.rows.get(table).copied().unwrap_or(0);
            if rows < staged.rows() {
                // It has changes that are gone.
                overlays.remove(table);
                staged.truncate(rows);
            }
            rows > 0
        });
        self.refused.truncate(mark.refused);
        self.definitions.clone_from(&mark.definitions);
    }
}
