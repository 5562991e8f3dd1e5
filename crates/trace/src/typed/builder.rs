//! Sorted updates on their way into a batch.

use std::marker::PhantomData;

use differential_dataflow::trace::{Builder, Description};

use super::Types;
use super::batch::TypedBatch;
use super::codec::Codec;
use super::updates::{Contents, TypedUpdates};
use super::weight::Weight;
use crate::builder::BatchBuilder;
use crate::memory::context;
use crate::time::PageTime;

/// Encodes updates that come by key, and builds a batch of them: in memory, or in a file if memory is short.
///
/// Keys ascend from one push to the next. Within a push they may come in any order.
pub struct TypedBuilder<K, V, T, R = isize> {
    builder: BatchBuilder<T>,
    key: Vec<u8>,
    value: Vec<u8>,
    types: Types<K, V, R>,
}

impl<K: Codec, V: Codec, T: PageTime, R: Weight> TypedBuilder<K, V, T, R> {
    /// Adds an update of the current key.
    #[inline]
    fn add(&mut self, value: &V, time: &T, weight: R) {
        self.value.clear();
        value.encode_last(&mut self.value);
        self.builder.push(&self.key, &self.value, time, weight.store());
    }
}

impl<K: Codec, V: Codec, T: PageTime, R: Weight> Builder for TypedBuilder<K, V, T, R> {
    type Input = TypedUpdates<K, V, T, R>;
    type Time = T;
    type Output = TypedBatch<K, V, T, R>;

    /// A builder in the context that the thread has [entered](context::enter).
    fn with_capacity(_keys: usize, _values: usize, _updates: usize) -> Self {
        TypedBuilder {
            builder: BatchBuilder::new(&context::current()),
            key: Vec::new(),
            value: Vec::new(),
            types: PhantomData,
        }
    }

    /// # Panics
    ///
    /// If these updates are a batch already.
    fn push(&mut self, updates: &mut Self::Input) {
        match &mut updates.contents {
            Contents::Rows(rows) => {
                rows.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
                for ((key, value), time, weight) in rows.drain(..) {
                    self.key.clear();
                    key.encode_last(&mut self.key);
                    self.add(&value, &time, weight);
                }
            }
            Contents::Group(key, group) => {
                std::mem::swap(&mut self.key, key);
                group.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
                for (value, time, weight) in group.drain(..) {
                    self.add(&value, &time, weight);
                }
            }
            Contents::Sealed(_) => panic!("what a batcher has sealed is a batch already"),
        }
    }

    fn done(self, description: Description<T>) -> Self::Output {
        TypedBatch::new(self.builder.finish(description))
    }

    fn seal(chain: &mut Vec<Self::Input>, description: Description<T>) -> Self::Output {
        if let [TypedUpdates { contents: Contents::Sealed(batch) }] = chain.as_slice() {
            return TypedBatch::new(batch.described(description));
        }
        let mut builder = Self::new();
        chain.iter_mut().for_each(|updates| builder.push(updates));
        builder.done(description)
    }
}
