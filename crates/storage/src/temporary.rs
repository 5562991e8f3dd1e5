//! A blob that is deleted when nobody needs it any more.

use std::ops::Deref;
use std::sync::Arc;

use crate::blob::Blob;
use crate::storage::Storage;

/// A sealed blob that its owners share, and that is deleted from its storage with the last of them.
///
/// Whoever still holds its [`bytes`](Blob::bytes) then can go on to read them.
#[derive(Clone, Debug)]
pub struct TemporaryBlob {
    owned: Arc<Owned>,
}

#[derive(Debug)]
struct Owned {
    blob: Arc<dyn Blob>,
    storage: Arc<dyn Storage>,
}

impl TemporaryBlob {
    /// Takes over a blob of this storage. Nobody else should delete it, or create another of its name.
    pub fn new(storage: Arc<dyn Storage>, blob: Arc<dyn Blob>) -> TemporaryBlob {
        TemporaryBlob { owned: Arc::new(Owned { blob, storage }) }
    }
}

impl Deref for TemporaryBlob {
    type Target = dyn Blob;

    fn deref(&self) -> &Self::Target {
        &*self.owned.blob
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // Nobody is left to be told. What cannot be deleted now goes with the storage.
        let _ = self.storage.delete(self.blob.name());
    }
}
