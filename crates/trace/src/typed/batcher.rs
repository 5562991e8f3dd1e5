//! Unsorted updates on their way into batches.

use std::marker::PhantomData;

use differential_dataflow::logging::Logger;
use differential_dataflow::trace::{Batcher, Description};
use timely::container::PushInto;
use timely::progress::Antichain;
use timely::progress::frontier::AntichainRef;

use super::Types;
use super::codec::Codec;
use super::updates::{Contents, TypedUpdates};
use super::weight::Weight;
use crate::buffer::RowBuffer;
use crate::memory::context;
use crate::time::PageTime;

/// Encodes updates as they come, and sorts them into batches: in memory, or with runs in files if memory is short.
pub struct TypedBatcher<K, V, T, R = isize> {
    buffer: RowBuffer<T>,
    /// Up to where batches are sealed.
    lower: Antichain<T>,
    /// The lower envelope of the times of all updates.
    frontier: Antichain<T>,
    key: Vec<u8>,
    value: Vec<u8>,
    types: Types<K, V, R>,
}

impl<K: Codec, V: Codec, T: PageTime, R: Weight> PushInto<TypedUpdates<K, V, T, R>>
    for TypedBatcher<K, V, T, R>
{
    /// # Panics
    ///
    /// If these are not rows of a collection.
    fn push_into(&mut self, updates: TypedUpdates<K, V, T, R>) {
        let Contents::Rows(rows) = updates.contents else {
            panic!("only a builder takes updates that are sorted");
        };
        for ((key, value), time, weight) in &rows {
            self.key.clear();
            key.encode_last(&mut self.key);
            self.value.clear();
            value.encode_last(&mut self.value);
            self.buffer.push(&self.key, &self.value, time, weight.store());
        }
    }
}

impl<K: Codec, V: Codec, T: PageTime, R: Weight> Batcher for TypedBatcher<K, V, T, R> {
    type Output = TypedUpdates<K, V, T, R>;
    type Time = T;

    /// A batcher in the context that the thread has [entered](context::enter).
    fn new(_logger: Option<Logger>, _operator: usize) -> Self {
        TypedBatcher {
            buffer: RowBuffer::new(&context::current()),
            lower: Antichain::from_elem(T::minimum()),
            frontier: Antichain::new(),
            key: Vec::new(),
            value: Vec::new(),
            types: PhantomData,
        }
    }

    fn seal(&mut self, upper: Antichain<T>) -> (Vec<Self::Output>, Description<T>) {
        let lower = std::mem::replace(&mut self.lower, upper.clone());
        let since = Antichain::from_elem(T::minimum());
        let description = Description::new(lower, upper, since);
        let batch = self.buffer.seal(description.clone());
        self.frontier = self.buffer.frontier();
        (vec![TypedUpdates::sealed(batch)], description)
    }

    fn frontier(&mut self) -> AntichainRef<'_, T> {
        self.frontier.borrow()
    }
}
