//! The indexes that exist, and how many users each has.

use std::collections::hash_map::{Entry as Place, HashMap};
use std::collections::{BTreeMap, BTreeSet};

use alluvium_sql::physical::CompiledIndex;
use alluvium_sql::plan::Fingerprint;
use parking_lot::Mutex;

use crate::worker::DataflowId;

/// The indexes that views, subscriptions and statements share, by the fingerprints of their contents. One without users is removed.
#[derive(Default)]
pub(crate) struct Indexes(Mutex<HashMap<Fingerprint, Entry>>);

struct Entry {
    id: DataflowId,
    /// The indexes it is made of, with their dataflows.
    parts: Vec<(Fingerprint, DataflowId)>,
    /// How many views, subscriptions, [named indexes](super::NamedIndex) and indexes use it.
    users: usize,
}

/// The indexes that one user uses.
#[derive(Clone, Debug, Default)]
pub(crate) struct Uses {
    /// Each once, with its dataflow.
    pub(crate) all: BTreeMap<Fingerprint, DataflowId>,
    /// Those whose errors it reports.
    pub(crate) reported: BTreeSet<DataflowId>,
}

impl Uses {
    /// Adds an index and its dataflow.
    pub(crate) fn add(&mut self, index: &CompiledIndex, id: DataflowId) {
        self.all.insert(index.fingerprint, id);
        if index.reported {
            self.reported.insert(id);
        }
    }
}

impl Indexes {
    /// Whether there is an index of this fingerprint.
    pub(crate) fn is_there(&self, fingerprint: Fingerprint) -> bool {
        self.0.lock().contains_key(&fingerprint)
    }

    /// The index of this fingerprint, if it exists, with one more user.
    pub(crate) fn acquire(&self, fingerprint: Fingerprint) -> Option<DataflowId> {
        let mut entries = self.0.lock();
        let entry = entries.get_mut(&fingerprint)?;
        entry.users += 1;
        Some(entry.id)
    }

    /// Adds an index that has been built, with its first user; it becomes a user of those it is made of.
    pub(crate) fn insert(&self, id: DataflowId, index: &CompiledIndex) {
        let mut entries = self.0.lock();
        let mut parts = Vec::with_capacity(index.parts.len());
        for part in &index.parts {
            if let Some(entry) = entries.get_mut(part) {
                entry.users += 1;
                parts.push((*part, entry.id));
            }
        }
        entries.insert(index.fingerprint, Entry { id, parts, users: 1 });
    }

    /// Removes one user from each of these. Returns the indexes that have none left, each before those it is made of.
    pub(crate) fn release(&self, uses: &Uses) -> Vec<DataflowId> {
        let released = uses.all.iter().map(|(fingerprint, id)| (*fingerprint, *id)).collect();
        release(&mut self.0.lock(), released)
    }

    /// Forgets the index of a dataflow that has failed, if it is one, with or without users. Returns the indexes that have no users left
    /// without it.
    pub(crate) fn forget(&self, id: DataflowId) -> Vec<DataflowId> {
        let mut entries = self.0.lock();
        let failed = entries.extract_if(|_, entry| entry.id == id);
        let parts = failed.flat_map(|(_, entry)| entry.parts).collect();
        release(&mut entries, parts)
    }
}

/// Removes one user from each of these dataflows that are still indexes. Returns those that have none left.
fn release(
    entries: &mut HashMap<Fingerprint, Entry>,
    mut released: Vec<(Fingerprint, DataflowId)>,
) -> Vec<DataflowId> {
    let mut gone = Vec::new();
    while let Some((fingerprint, id)) = released.pop() {
        let Place::Occupied(mut place) = entries.entry(fingerprint) else { continue };
        // One that has failed may have a successor.
        if place.get().id != id {
            continue;
        }
        place.get_mut().users -= 1;
        if place.get().users == 0 {
            let entry = place.remove();
            gone.push(entry.id);
            released.extend(entry.parts);
        }
    }
    gone
}
