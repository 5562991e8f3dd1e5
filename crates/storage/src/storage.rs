//! The name space of blobs, and how one is written.

use std::fmt::Debug;
use std::sync::Arc;

use crate::blob::Blob;
use crate::error::Result;

/// A flat name space of immutable blobs.
///
/// A name has 1 to 200 ASCII letters, digits, `-`, `_` and `.`, and does not start with a dot; every method
/// that is given another refuses it with [`Error::InvalidName`](crate::Error::InvalidName).
///
/// All methods may be called from several threads at once. None of them waits for another's writer.
pub trait Storage: Send + Sync + Debug {
    /// Begins a blob of this name.
    ///
    /// Until it is sealed the blob can be neither opened nor listed nor deleted, but its name is taken: of
    /// several callers that create the same name, one succeeds.
    ///
    /// # Errors
    ///
    /// [`Error::Exists`](crate::Error::Exists) if a blob has the name or is being written under it.
    fn create(&self, name: &str) -> Result<Box<dyn BlobWriter>>;

    /// Opens a sealed blob.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`](crate::Error::Missing) if no sealed blob has the name.
    fn open(&self, name: &str) -> Result<Arc<dyn Blob>>;

    /// The names of all sealed blobs that begin with `prefix`, in the order of their bytes.
    ///
    /// The prefix need not be a valid name; the empty one lists everything.
    fn list(&self, prefix: &str) -> Result<Vec<String>>;

    /// Deletes a sealed blob. Its name is free at once; those who have it open can read it for as long as they
    /// hold it, and only then does its room come back.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`](crate::Error::Missing) if no sealed blob has the name.
    fn delete(&self, name: &str) -> Result<()>;
}

/// A blob that is being written.
///
/// Dropped unsealed, it leaves nothing, and its name is free again.
pub trait BlobWriter: Send {
    /// Writes these bytes behind those written before.
    ///
    /// Bytes may wait in memory until there are enough of them for a large write, so an error may have its
    /// cause in bytes of earlier calls. An append that fails has appended nothing: it can be repeated, for
    /// instance when there is room again.
    ///
    /// # Errors
    ///
    /// [`Error::Full`](crate::Error::Full) if there is no room.
    fn append(&mut self, bytes: &[u8]) -> Result<()>;

    /// How many bytes have been appended.
    fn len(&self) -> u64;

    /// How many bytes of memory the writer keeps for bytes that wait to be written, whether any do or not.
    fn held(&self) -> usize;

    /// Whether nothing has been appended.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Ends the blob, makes it visible under its name, and opens it.
    ///
    /// If this fails nothing has changed: it can be repeated, for instance when there is room again. Once it has
    /// succeeded, the writer is of no more use: every further call of this and of [`append`](BlobWriter::append) fails.
    ///
    /// # Errors
    ///
    /// [`Error::Sealed`](crate::Error::Sealed) if that was done before;
    /// [`Error::Full`](crate::Error::Full) if there is no room for what had waited in memory.
    fn seal(&mut self) -> Result<Arc<dyn Blob>>;
}
