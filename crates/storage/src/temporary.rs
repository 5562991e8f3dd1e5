//! A blob that is deleted with its last owner.

use std::ops::Deref;
use std::sync::Arc;

use crate::blob::Blob;
use crate::storage::Storage;

/// A sealed blob with shared ownership, deleted from its storage with the last owner.
///
/// Its [`bytes`](Blob::bytes) stay readable for those who hold them.
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
    /// Takes over a blob of this storage. No other owner should delete it or create another with its name.
    ///
    /// It is deleted by its name. So of a [slice](crate::BlobSlice) the whole blob would be: its slices share one owner of
    /// that blob, of which each has a clone.
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
        // There is no caller to report an error to. The blob is then deleted with the storage.
        let _ = self.storage.delete(self.blob.name());
    }
}
