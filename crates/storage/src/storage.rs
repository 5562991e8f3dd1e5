//! The name space of blobs, and writing one.

use std::fmt::Debug;
use std::sync::Arc;

use crate::blob::Blob;
use crate::error::Result;

/// A flat name space of immutable blobs.
///
/// A name has 1 to 200 ASCII letters, digits, `-`, `_` and `.`, and does not start with a dot. Every method fails with
/// [`Error::InvalidName`](crate::Error::InvalidName) for other names.
///
/// All methods may be called from several threads at once. None of them waits for another's writer.
pub trait Storage: Send + Sync + Debug {
    /// Begins a blob of this name.
    ///
    /// Until it is sealed, the blob cannot be opened, listed or deleted, but its name is taken: of several callers that
    /// create the same name, one succeeds.
    ///
    /// A storage may append to the name, as [`ClaimedStorage`](crate::ClaimedStorage) does. The [name](Blob::name) of the
    /// sealed blob is the whole one, which the other methods take. It has no more than 200 characters, too.
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

    /// Deletes a sealed blob. Its name is free at once. Readers that have it open can keep reading; the space is free when
    /// the last of them is gone.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`](crate::Error::Missing) if no sealed blob has the name.
    fn delete(&self, name: &str) -> Result<()>;

    /// Makes these sealed blobs durable: after a crash of the system they can be opened, with all their bytes.
    ///
    /// One call for many is faster than many calls: they share the sync of the directory.
    ///
    /// # Errors
    ///
    /// [`Error::Missing`](crate::Error::Missing) if any name has no sealed blob. An error of the system is final, as it is
    /// unknown what is on the disk: from then on every call fails with it.
    fn barrier(&self, names: &[&str]) -> Result<()>;
}

/// A blob that is being written.
///
/// Dropped unsealed, it leaves nothing, and its name is free again.
pub trait BlobWriter: Send {
    /// Appends these bytes.
    ///
    /// Bytes may be buffered, so an error may be caused by bytes of earlier calls. An append that fails has appended
    /// nothing: it can be repeated, for instance when there is space again.
    ///
    /// # Errors
    ///
    /// [`Error::Full`](crate::Error::Full) if there is no space.
    fn append(&mut self, bytes: &[u8]) -> Result<()>;

    /// How many bytes have been appended.
    fn len(&self) -> u64;

    /// The bytes of memory that the writer uses as its buffer.
    fn held(&self) -> usize;

    /// Whether nothing has been appended.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Ends the blob, makes it visible under its name, and opens it.
    ///
    /// A call that fails has changed nothing and can be repeated, for instance when there is space again. After a success
    /// every further call of this and of [`append`](BlobWriter::append) fails.
    ///
    /// # Errors
    ///
    /// [`Error::Sealed`](crate::Error::Sealed) after a success; [`Error::Full`](crate::Error::Full) if there is no space for
    /// buffered bytes.
    fn seal(&mut self) -> Result<Arc<dyn Blob>>;
}
