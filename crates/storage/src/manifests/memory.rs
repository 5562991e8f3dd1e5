//! Manifests in memory.

use std::collections::BTreeMap;
use std::fmt::{self, Debug, Formatter};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::manifests::{Manifest, Manifests, Published};

/// Manifests in memory, for as long as there is a clone of this. Clones have the same manifests.
#[derive(Clone, Default)]
pub struct MemoryManifests {
    kept: Arc<Mutex<BTreeMap<u64, Bytes>>>,
}

impl MemoryManifests {
    /// No manifests.
    pub fn new() -> MemoryManifests {
        MemoryManifests::default()
    }

    fn kept(&self) -> MutexGuard<'_, BTreeMap<u64, Bytes>> {
        // No change is ever half done, so a panic has left nothing inconsistent.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The numbers, without the bytes.
impl Debug for MemoryManifests {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.kept().keys()).finish()
    }
}

impl Manifests for MemoryManifests {
    fn publish(&self, next: u64, manifest: &[u8]) -> Result<Published> {
        let mut kept = self.kept();
        let current = kept.last_key_value().map_or(0, |(number, _)| *number);
        if next != current + 1 {
            return Ok(Published::Conflict { current });
        }
        kept.insert(next, Bytes::copy_from_slice(manifest));
        Ok(Published::Done)
    }

    fn current(&self) -> Result<Option<Manifest>> {
        let kept = self.kept();
        let current = kept.last_key_value();
        Ok(current.map(|(number, bytes)| Manifest { number: *number, bytes: bytes.clone() }))
    }

    fn list(&self) -> Result<Vec<u64>> {
        Ok(self.kept().keys().copied().collect())
    }

    fn read(&self, number: u64) -> Result<Bytes> {
        let place = || format!("mem:{number}.manifest");
        let missing = || Error::Missing { place: place(), operation: "open" };
        self.kept().get(&number).cloned().ok_or_else(missing)
    }

    fn retain(&self, count: usize) -> Result<()> {
        let mut kept = self.kept();
        while kept.len() > count.max(1) {
            kept.pop_first();
        }
        Ok(())
    }
}
