//! Reading a sealed blob.

use std::fmt::Debug;
use std::ops::Range;

use bytes::Bytes;

use crate::error::{Error, Result};

/// A sealed blob: bytes that never change.
///
/// An open blob stays readable, with the same bytes, also after it was deleted.
pub trait Blob: Send + Sync + Debug {
    /// The name it was opened under; of a part of a blob, the name of that blob.
    fn name(&self) -> &str;

    /// Where its bytes begin in the blob of that name: 0, unless it is a part of one.
    fn offset(&self) -> u64 {
        0
    }

    /// Where it is, for messages: the path of its file, or `mem:` and its name.
    fn place(&self) -> String;

    /// How many bytes it has.
    fn len(&self) -> u64;

    /// Whether it has no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All bytes, mapped or on the heap. The call reads and copies nothing, and the result outlives the blob.
    ///
    /// An access to mapped bytes may read from the disk. If the device fails then, or the file was truncated, a signal ends
    /// the process; [`populate`](Blob::populate) the bytes first to get an error instead.
    fn bytes(&self) -> Bytes;

    /// Whether [`bytes`](Blob::bytes) are a mapped file.
    fn is_mapped(&self) -> bool;

    /// The bytes of this range, on the heap. A mapped file is read past its mapping: resident pages stay as they are, and an
    /// error of the device is an `Err`.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfBounds`] if the range ends before it starts or after the blob's end.
    fn read(&self, range: Range<u64>) -> Result<Bytes>;

    /// Makes this range of the mapping resident and waits for it, so that an error of the device is an `Err` here and does
    /// not end the process later. On systems without support (Linux before 5.14, and others), and on a blob that is not
    /// mapped, it does nothing.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfBounds`] if the range ends before it starts or after the blob's end.
    fn populate(&self, range: Range<u64>) -> Result<()>;

    /// Advises the operating system on these ranges of the mapping. Each is widened to whole pages of the system; empty ones
    /// are ignored. Advice changes no bytes, and on a blob that is not mapped it does nothing.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfBounds`] if any range ends before it starts or after the blob's end; then none was advised.
    fn advise(&self, ranges: &[Range<u64>], advice: Advice) -> Result<()>;
}

/// How a range of a mapped blob will be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// It will be read soon: start reading it, without waiting.
    WillNeed,
    /// It will not be read soon: release its memory. A later access reads it again.
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
