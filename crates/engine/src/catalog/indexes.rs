//! The indexes that exist, and how many users each has.

use std::collections::BTreeSet;
use std::sync::Arc;

use alluvium_sql::plan::Index;
use parking_lot::Mutex;

use crate::worker::DataflowId;

/// The indexes that views and subscriptions share. An index without users is removed.
#[derive(Default)]
pub(crate) struct Indexes(Mutex<Vec<Entry>>);

struct Entry {
    id: DataflowId,
    index: Arc<Index>,
    /// How many views, subscriptions and indexes use it.
    users: usize,
}

/// The indexes that one view or subscription uses.
#[derive(Clone, Debug, Default)]
pub(crate) struct Uses {
    /// Each as often as it is used.
    pub(crate) all: Vec<DataflowId>,
    /// Those whose errors are its own.
    pub(crate) reported: BTreeSet<DataflowId>,
}

impl Indexes {
    /// The index equal to this one, if there is one, with one user more.
    pub(crate) fn acquire(&self, index: &Index) -> Option<DataflowId> {
        let mut entries = self.0.lock();
        let entry = entries.iter_mut().find(|entry| *entry.index == *index)?;
        entry.users += 1;
        Some(entry.id)
    }

    /// Adds an index that has been built, with its first user; it becomes a user of those it is made of.
    pub(crate) fn insert(&self, id: DataflowId, index: Arc<Index>) {
        let mut entries = self.0.lock();
        for part in index.parts() {
            if let Some(entry) = entries.iter_mut().find(|entry| entry.id.0 == part) {
                entry.users += 1;
            }
        }
        entries.push(Entry { id, index, users: 1 });
    }

    /// Removes one user from each of these. Returns the indexes that have none left, each before those it is made of.
    pub(crate) fn release(&self, uses: &[DataflowId]) -> Vec<DataflowId> {
        let mut entries = self.0.lock();
        let mut released = uses.to_vec();
        let mut gone = Vec::new();
        while let Some(id) = released.pop() {
            let Some(at) = entries.iter().position(|entry| entry.id == id) else { continue };
            entries[at].users -= 1;
            if entries[at].users == 0 {
                let entry = entries.remove(at);
                gone.push(id);
                released.extend(entry.index.parts().into_iter().map(DataflowId));
            }
        }
        gone
    }
}
