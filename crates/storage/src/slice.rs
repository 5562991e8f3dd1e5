//! A part of a blob, as a blob of its own.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use crate::blob::{Advice, Blob, within};
use crate::error::Result;

/// A range of another blob, so that many small ones can be stored as one.
///
/// It does not delete the blob that it is a part of: several slices share a
/// [`TemporaryBlob`](crate::TemporaryBlob) of that one.
///
/// A slice should begin at a multiple of the system's page size. [Advice](Blob::advise) is widened to whole pages, and
/// else reaches the end of the slice before.
#[derive(Debug)]
pub struct BlobSlice {
    blob: Arc<dyn Blob>,
    range: Range<u64>,
}

impl BlobSlice {
    /// This range of a blob.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfBounds`](crate::Error::OutOfBounds) if the range ends before it starts or after the blob's end.
    pub fn new(blob: Arc<dyn Blob>, range: Range<u64>) -> Result<BlobSlice> {
        within(&*blob, &range)?;
        Ok(BlobSlice { blob, range })
    }

    /// The same bytes as a range of the whole blob, if they lie within the slice.
    fn shifted(&self, range: &Range<u64>) -> Result<Range<u64>> {
        within(self, range)?;
        Ok(self.range.start + range.start..self.range.start + range.end)
    }
}

impl Blob for BlobSlice {
    fn name(&self) -> &str {
        self.blob.name()
    }

    fn offset(&self) -> u64 {
        self.blob.offset() + self.range.start
    }

    fn place(&self) -> String {
        let Range { start, end } = self.range;
        format!("{} (bytes {start} to {end})", self.blob.place())
    }

    fn len(&self) -> u64 {
        self.range.end - self.range.start
    }

    fn bytes(&self) -> Bytes {
        // It lies within the blob, whose bytes are in the address space.
        self.blob.bytes().slice(self.range.start as usize..self.range.end as usize)
    }

    fn is_mapped(&self) -> bool {
        self.blob.is_mapped()
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        self.blob.read(self.shifted(&range)?)
    }

    fn populate(&self, range: Range<u64>) -> Result<()> {
        self.blob.populate(self.shifted(&range)?)
    }

    fn advise(&self, ranges: &[Range<u64>], advice: Advice) -> Result<()> {
        let shifted: Vec<_> =
            ranges.iter().map(|range| self.shifted(range)).collect::<Result<_>>()?;
        self.blob.advise(&shifted, advice)
    }
}
