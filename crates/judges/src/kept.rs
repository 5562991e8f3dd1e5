//! State that outlives an engine, in memory.

use std::sync::Arc;

use alluvium::Builder;
use alluvium::unstable::BuilderParts;
use alluvium_storage::{ClaimedStorage, MemoryJournal, MemoryManifests, MemoryStorage};

/// The state that an engine leaves to the next one: its journal and its checkpoints.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kept {
    journal: Arc<MemoryJournal>,
    manifests: Arc<MemoryManifests>,
    blobs: MemoryStorage,
}

impl Kept {
    /// Sets an engine up that begins with it.
    pub(crate) fn resume(&self, builder: Builder) -> alluvium::Result<Builder> {
        let blobs = ClaimedStorage::open(Arc::new(self.blobs.clone()));
        let blobs = blobs.map_err(|error| alluvium::Error::data(error.to_string()))?;
        Ok(builder.store(self.journal.clone(), self.manifests.clone(), Arc::new(blobs)))
    }
}
