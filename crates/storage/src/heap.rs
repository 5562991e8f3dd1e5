//! A blob whose bytes are on the heap: every blob in memory, and small files.

use std::fmt::{self, Debug, Formatter};
use std::ops::Range;

use bytes::Bytes;

use crate::blob::{Advice, Blob, within};
use crate::error::Result;

pub(crate) struct HeapBlob {
    name: String,
    place: String,
    bytes: Bytes,
}

impl HeapBlob {
    pub(crate) fn new(name: &str, place: String, bytes: Bytes) -> HeapBlob {
        HeapBlob { name: name.to_owned(), place, bytes }
    }
}

/// Without the bytes, which may be many.
impl Debug for HeapBlob {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let length = self.bytes.len();
        f.debug_struct("HeapBlob").field("length", &length).field("place", &self.place).finish()
    }
}

impl Blob for HeapBlob {
    fn name(&self) -> &str {
        &self.name
    }

    fn place(&self) -> String {
        self.place.clone()
    }

    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn bytes(&self) -> Bytes {
        self.bytes.clone()
    }

    fn is_mapped(&self) -> bool {
        false
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        Ok(self.bytes.slice(within(self, &range)?))
    }

    fn populate(&self, range: Range<u64>) -> Result<()> {
        within(self, &range).map(drop)
    }

    fn advise(&self, ranges: &[Range<u64>], _advice: Advice) -> Result<()> {
        ranges.iter().try_for_each(|range| within(self, range).map(drop))
    }
}
