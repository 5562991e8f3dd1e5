//! Building deltas row by row.

use alluvium_trace::memory::StateContext;
use alluvium_trace::{Cursor, PageTime};
use arrow::array::RecordBatch;
use arrow::buffer::ScalarBuffer;

use super::{Delta, Times};
use crate::rows::codec::Encoded;
use crate::rows::layout::Layout;

/// The most rows an operator puts into one delta.
pub const DELTA_ROWS: usize = 8192;

/// How many bytes of encoded rows an operator collects before it emits a delta.
pub(crate) fn delta_bytes(context: &StateContext) -> usize {
    context.budget().policy().output_batch
}

/// The times and weights of the rows of a delta.
pub(crate) struct DeltaBuilder<T> {
    times: Vec<T>,
    weights: Vec<i64>,
}

impl<T> Default for DeltaBuilder<T> {
    fn default() -> Self {
        Self { times: Vec::new(), weights: Vec::new() }
    }
}

impl<T: PageTime> DeltaBuilder<T> {
    /// The number of rows so far.
    pub(crate) fn len(&self) -> usize {
        self.times.len()
    }

    /// The time and the weight of a row.
    pub(crate) fn update(&self, row: usize) -> (T, i64) {
        (self.times[row], self.weights[row])
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, time: T, weight: i64) {
        self.times.push(time);
        self.weights.push(weight);
    }

    /// Drops all rows.
    pub(crate) fn clear(&mut self) {
        self.times.clear();
        self.weights.clear();
    }

    /// The delta of `rows`, which are as many as were pushed; empties the builder.
    pub(crate) fn finish(&mut self, rows: RecordBatch) -> Delta<T> {
        let times = std::mem::take(&mut self.times);
        let weights = std::mem::take(&mut self.weights);
        let times = match times.first() {
            Some(first) if times.iter().all(|time| time == first) => Times::Same(*first),
            _ => Times::Each(times.into()),
        };
        let weights = if weights.iter().all(|&weight| weight == 1) {
            None
        } else {
            Some(ScalarBuffer::from(weights))
        };
        Delta::new(rows, times, weights)
    }
}

/// Encoded rows, with times and weights, that become a delta once they are decoded.
pub(crate) struct EncodedDelta<T> {
    keys: Encoded,
    values: Encoded,
    updates: DeltaBuilder<T>,
    /// The bytes of keys and values that make a delta full.
    full: usize,
}

impl<T: PageTime> EncodedDelta<T> {
    pub(crate) fn new(context: &StateContext) -> Self {
        Self {
            keys: Encoded::counted(context),
            values: Encoded::counted(context),
            updates: DeltaBuilder::default(),
            full: delta_bytes(context),
        }
    }

    /// The number of rows so far.
    pub(crate) fn len(&self) -> usize {
        self.updates.len()
    }

    /// Whether the rows should be decoded before more are added.
    pub(crate) fn is_full(&self) -> bool {
        self.len() >= DELTA_ROWS || self.keys.bytes().len() + self.values.bytes().len() >= self.full
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, key: &[u8], value: &[u8], time: T, weight: i64) {
        self.keys.push(key);
        self.values.push(value);
        self.updates.push(time, weight);
    }

    /// Adds updates from the position of `cursor` on until the delta is full; returns whether it has any rows.
    pub(crate) fn fill(&mut self, cursor: &mut Cursor<T>) -> bool {
        while !self.is_full() {
            let Some(key) = cursor.key() else { break };
            let Some(value) = cursor.val() else {
                cursor.step_key();
                continue;
            };
            for (time, weight) in cursor.updates() {
                self.push(key, value, time, weight);
            }
            cursor.step_val();
        }
        self.len() > 0
    }

    /// The keys, the values, and the times and weights.
    pub(crate) fn parts(&self) -> (&Encoded, &Encoded, &DeltaBuilder<T>) {
        (&self.keys, &self.values, &self.updates)
    }

    /// Drops all rows.
    pub(crate) fn clear(&mut self) {
        self.keys.clear();
        self.values.clear();
        self.updates.clear();
    }

    /// The delta of the rows that `decode` returns for the keys and values; empties the builder.
    pub(crate) fn finish(
        &mut self,
        decode: impl FnOnce(&Encoded, &Encoded) -> RecordBatch,
    ) -> Delta<T> {
        let rows = decode(&self.keys, &self.values);
        self.keys.clear();
        self.values.clear();
        self.updates.finish(rows)
    }

    /// The rows as `layout` decodes them; `None` if there are none.
    pub(crate) fn decode(&mut self, layout: &Layout, columns: &[usize]) -> Option<Delta<T>> {
        if self.len() == 0 {
            return None;
        }
        Some(self.finish(|keys, values| layout.decode_batch(keys, values, columns)))
    }
}
