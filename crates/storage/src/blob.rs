//! Reading a sealed blob.

use std::fmt::Debug;
use std::ops::Range;

use bytes::Bytes;

use crate::error::{Error, Result};

/// A sealed blob: bytes that never change.
///
/// What was opened stays readable, with the same bytes, for as long as it is held, also after the blob was
/// deleted.
pub trait Blob: Send + Sync + Debug {
    /// The name it was opened under.
    fn name(&self) -> &str;

    /// Where it is, for messages: the path of its file, or `mem:` and its name.
    fn place(&self) -> String;

    /// How many bytes it has.
    fn len(&self) -> u64;

    /// Whether it has no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All bytes, mapped or on the heap. This reads and copies nothing, and what it returns outlives the blob.
    ///
    /// To touch mapped bytes may read from the disk. A device that fails then ends the process with a signal, unless it
    /// was asked before to [`populate`](Blob::populate) them, and so does a file that someone else has cut short.
    fn bytes(&self) -> Bytes;

    /// Whether [`bytes`](Blob::bytes) are a mapped file.
    fn is_mapped(&self) -> bool;

    /// The bytes of this range, on the heap. A mapped file is read by the range, not through its mapping, so
    /// the mapping's resident pages stay as they are and an error of the device is an `Err`.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfBounds`] if the range ends before it starts or after the blob's end.
    fn read(&self, range: Range<u64>) -> Result<Bytes>;

    /// Brings this range of the mapping to memory and waits for it, so that a device that fails is an `Err` here, and does
    /// not end the process when the bytes are read. Where the system cannot do that (Linux before 5.14, and others), and
    /// on a blob that is not mapped, it does nothing.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfBounds`] if the range ends before it starts or after the blob's end.
    fn populate(&self, range: Range<u64>) -> Result<()>;

    /// Tells the operating system what will happen to these ranges of the mapping. Each is widened to whole
    /// pages of the operating system; an empty one is passed over. Advice changes no bytes, and on a blob that
    /// is not mapped it does nothing.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfBounds`] if any range ends before it starts or after the blob's end; then none was advised.
    fn advise(&self, ranges: &[Range<u64>], advice: Advice) -> Result<()>;
}

/// What will happen to a range of a mapped blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// It will be read soon: start to bring it in, and do not wait for it.
    WillNeed,
    /// It will not be read soon: give its memory back. When it is read after all it comes from the disk again.
    DontNeed,
}

/// The range as positions in the blob's bytes, if it lies within them.
pub(crate) fn within(blob: &dyn Blob, range: &Range<u64>) -> Result<Range<usize>> {
    if range.start <= range.end
        && range.end <= blob.len()
        && let (Ok(start), Ok(end)) = (usize::try_from(range.start), usize::try_from(range.end))
    {
        return Ok(start..end);
    }
    Err(Error::OutOfBounds { place: blob.place(), range: range.clone(), length: blob.len() })
}
