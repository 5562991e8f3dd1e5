//! The indexes that exist, and how many users each has.

use std::collections::hash_map::{Entry as Place, HashMap};
use std::collections::{BTreeMap, BTreeSet};

use alluvium_sql::physical::CompiledIndex;
use alluvium_sql::plan::Fingerprint;
use parking_lot::Mutex;

use crate::worker::DataflowId;

/// The indexes that views, subscriptions and statements share, by what they hold. One without users is removed.
#[derive(Default)]
pub(crate) struct Indexes(Mutex<HashMap<Fingerprint, Entry>>);

struct Entry {
    id: DataflowId,
    /// The indexes it is made of.
    parts: Vec<Fingerprint>,
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
        for part in &index.parts {
            if let Some(entry) = entries.get_mut(part) {
                entry.users += 1;
            }
        }
        entries.insert(index.fingerprint, Entry { id, parts: index.parts.clone(), users: 1 });
    }

    /// Removes one user from each of these. Returns the indexes that have none left, each before those it is made of.
    pub(crate) fn release(&self, uses: &Uses) -> Vec<DataflowId> {
        let mut entries = self.0.lock();
        let mut released: Vec<Fingerprint> = uses.all.keys().copied().collect();
        let mut gone = Vec::new();
        while let Some(fingerprint) = released.pop() {
            let Place::Occupied(mut place) = entries.entry(fingerprint) else { continue };
            place.get_mut().users -= 1;
            if place.get().users == 0 {
                let entry = place.remove();
                gone.push(entry.id);
                released.extend(entry.parts);
            }
        }
        gone
    }
}
