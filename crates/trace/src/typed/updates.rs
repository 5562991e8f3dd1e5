//! Updates on their way into a batch.

use std::collections::VecDeque;
use std::mem;

use timely::container::{ContainerBuilder, PushInto};

use super::codec::Codec;
use super::encoded::Encoded;
use crate::batch::Batch;

/// Updates that a batcher or a builder is handed, in one of the three forms that operators have them in.
pub struct TypedUpdates<K, V, T, R = isize> {
    pub(super) contents: Contents<K, V, T, R>,
}

pub(super) enum Contents<K, V, T, R> {
    /// Rows, as collections have them.
    Rows(Vec<((K, V), T, R)>),
    /// The updates of one key, which is encoded, as reductions have them.
    Group(Vec<u8>, Vec<(V, T, R)>),
    /// All updates of an interval of time, as a batcher has them.
    Sealed(Batch<T>),
}

impl<K, V, T, R> TypedUpdates<K, V, T, R> {
    /// These rows.
    pub fn rows(rows: Vec<((K, V), T, R)>) -> Self {
        TypedUpdates { contents: Contents::Rows(rows) }
    }

    /// The batch that a batcher has sealed.
    pub(super) fn sealed(batch: Batch<T>) -> Self {
        TypedUpdates { contents: Contents::Sealed(batch) }
    }

    /// Replaces the updates by those of one key. This is the last argument of `reduce_abelian` and `reduce_core`.
    pub fn fill(&mut self, key: Encoded<'_, K>, updates: &mut Vec<(V, T, R)>) {
        if let Contents::Group(bytes, group) = &mut self.contents {
            bytes.clear();
            bytes.extend_from_slice(key.bytes());
            group.clear();
            group.append(updates);
        } else {
            self.contents = Contents::Group(key.bytes().to_vec(), mem::take(updates));
        }
    }
}

impl<K, V, T, R> Default for TypedUpdates<K, V, T, R> {
    fn default() -> Self {
        Self::rows(Vec::new())
    }
}

/// Hands the rows of a stream to a [`TypedBatcher`](super::TypedBatcher) as they come: it sorts them itself.
pub struct TypedChunker<K, V, T, R = isize> {
    waiting: VecDeque<TypedUpdates<K, V, T, R>>,
    handed: TypedUpdates<K, V, T, R>,
}

impl<K, V, T, R> Default for TypedChunker<K, V, T, R> {
    fn default() -> Self {
        TypedChunker { waiting: VecDeque::new(), handed: TypedUpdates::default() }
    }
}

impl<K: Codec, V: Codec, T, R> PushInto<&mut Vec<((K, V), T, R)>> for TypedChunker<K, V, T, R> {
    fn push_into(&mut self, rows: &mut Vec<((K, V), T, R)>) {
        self.waiting.push_back(TypedUpdates::rows(mem::take(rows)));
    }
}

impl<K: Codec, V: Codec, T, R> ContainerBuilder for TypedChunker<K, V, T, R> {
    type Container = TypedUpdates<K, V, T, R>;

    fn extract(&mut self) -> Option<&mut Self::Container> {
        self.handed = self.waiting.pop_front()?;
        Some(&mut self.handed)
    }

    fn finish(&mut self) -> Option<&mut Self::Container> {
        self.extract()
    }
}
