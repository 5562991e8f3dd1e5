//! Values that lie in batches as bytes.
//!
//! A cursor lends what it shows for as long as the batch lives, not only until it moves. It has no place to keep decoded
//! values for so long. So it shows the bytes, which are in the batch; they compare as the values do.

use std::cmp::Ordering;
use std::fmt;
use std::marker::PhantomData;

use differential_dataflow::trace::implementations::BatchContainer;

use super::codec::Codec;

/// A value as it lies in a batch. It is decoded on demand, and compared without.
pub struct Encoded<'a, C> {
    bytes: &'a [u8],
    value: PhantomData<fn() -> C>,
}

impl<'a, C> Encoded<'a, C> {
    /// The value that [`Codec::encode_last`] wrote as these bytes.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Encoded { bytes, value: PhantomData }
    }

    /// The bytes. Those of a string are its own.
    #[inline]
    pub fn bytes(self) -> &'a [u8] {
        self.bytes
    }
}

impl<C: Codec> Encoded<'_, C> {
    /// The value.
    #[inline]
    pub fn decode(self) -> C {
        C::decode_last(self.bytes)
    }
}

impl<C> Clone for Encoded<'_, C> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<C> Copy for Encoded<'_, C> {}

impl<C> PartialEq for Encoded<'_, C> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl<C> Eq for Encoded<'_, C> {}

impl<C> PartialOrd for Encoded<'_, C> {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<C> Ord for Encoded<'_, C> {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.bytes.cmp(other.bytes)
    }
}

impl<C: Codec + fmt::Debug> fmt::Debug for Encoded<'_, C> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.decode().fmt(formatter)
    }
}

/// A list of encoded values: where operators keep the keys that they come back to.
pub struct EncodedList<C> {
    bytes: Vec<u8>,
    /// Where each value ends.
    ends: Vec<usize>,
    value: PhantomData<fn() -> C>,
}

impl<C: Codec> BatchContainer for EncodedList<C> {
    type Owned = C;
    type ReadItem<'a> = Encoded<'a, C>;

    #[inline]
    fn into_owned(item: Encoded<'_, C>) -> C {
        item.decode()
    }

    #[inline]
    fn push_ref(&mut self, item: Encoded<'_, C>) {
        self.bytes.extend_from_slice(item.bytes);
        self.ends.push(self.bytes.len());
    }

    #[inline]
    fn push_own(&mut self, item: &C) {
        item.encode_last(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    fn with_capacity(size: usize) -> Self {
        EncodedList { bytes: Vec::new(), ends: Vec::with_capacity(size), value: PhantomData }
    }

    fn merge_capacity(one: &Self, other: &Self) -> Self {
        let bytes = Vec::with_capacity(one.bytes.len() + other.bytes.len());
        let ends = Vec::with_capacity(one.ends.len() + other.ends.len());
        EncodedList { bytes, ends, value: PhantomData }
    }

    #[inline]
    fn reborrow<'b, 'a: 'b>(item: Encoded<'a, C>) -> Encoded<'b, C> {
        item
    }

    #[inline]
    fn index(&self, index: usize) -> Encoded<'_, C> {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        Encoded::new(&self.bytes[start..self.ends[index]])
    }

    #[inline]
    fn len(&self) -> usize {
        self.ends.len()
    }
}
