//! Batches of typed rows.

use std::fmt;
use std::marker::PhantomData;

use differential_dataflow::trace::{self, BatchReader, Description, Merger, Navigable};
use timely::progress::frontier::AntichainRef;
use timely::progress::{Antichain, Timestamp};

use super::Types;
use super::codec::Codec;
use super::cursor::TypedCursor;
use super::weight::Weight;
use crate::batch::Batch;
use crate::merge::BatchMerger;
use crate::time::PageTime;

/// A batch whose keys and values are written by codecs. A clone shares the pages.
pub struct TypedBatch<K, V, T, R = isize> {
    rows: Batch<T>,
    types: Types<K, V, R>,
}

impl<K, V, T, R> TypedBatch<K, V, T, R> {
    /// The batch of these rows, whose keys and values were written with [`Codec::encode_last`].
    pub fn new(rows: Batch<T>) -> Self {
        TypedBatch { rows, types: PhantomData }
    }

    /// The rows as bytes.
    #[inline]
    pub fn rows(&self) -> &Batch<T> {
        &self.rows
    }

    /// The rows as bytes.
    pub fn into_rows(self) -> Batch<T> {
        self.rows
    }
}

impl<K, V, T, R> Clone for TypedBatch<K, V, T, R> {
    fn clone(&self) -> Self {
        Self::new(self.rows.clone())
    }
}

impl<K, V, T: Timestamp, R> fmt::Debug for TypedBatch<K, V, T, R> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rows.fmt(formatter)
    }
}

impl<K: Codec, V: Codec, T: PageTime, R: Weight> Navigable for TypedBatch<K, V, T, R> {
    type Cursor = TypedCursor<K, V, T, R>;

    fn cursor(&self) -> Self::Cursor {
        TypedCursor::new(self)
    }
}

impl<K, V, T: PageTime, R> BatchReader for TypedBatch<K, V, T, R> {
    type Time = T;

    fn len(&self) -> usize {
        self.rows.len()
    }

    fn description(&self) -> &Description<T> {
        self.rows.description()
    }
}

impl<K, V, T: PageTime, R> trace::Batch for TypedBatch<K, V, T, R> {
    type Merger = TypedMerger<T>;

    fn empty(lower: Antichain<T>, upper: Antichain<T>) -> Self {
        Self::new(trace::Batch::empty(lower, upper))
    }
}

/// A merge in progress, for spines of differential-dataflow. Our own merge without looking at types.
pub struct TypedMerger<T> {
    merger: BatchMerger<T>,
}

impl<K, V, T: PageTime, R> Merger<TypedBatch<K, V, T, R>> for TypedMerger<T> {
    fn new(
        source1: &TypedBatch<K, V, T, R>,
        source2: &TypedBatch<K, V, T, R>,
        since: AntichainRef<'_, T>,
    ) -> Self {
        TypedMerger { merger: Merger::new(&source1.rows, &source2.rows, since) }
    }

    fn work(
        &mut self,
        source1: &TypedBatch<K, V, T, R>,
        source2: &TypedBatch<K, V, T, R>,
        fuel: &mut isize,
    ) {
        self.merger.work(&source1.rows, &source2.rows, fuel);
    }

    fn done(self) -> TypedBatch<K, V, T, R> {
        TypedBatch::new(self.merger.done())
    }
}
