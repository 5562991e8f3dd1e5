//! The output of a reduction with one input.

use alluvium_trace::memory::StateContext;
use alluvium_trace::{Batch, BatchBuilder, Epoch};
use differential_dataflow::trace::Description;

use crate::fault::{self, Fault};
use crate::rows::codec::Encoded;

/// Collects the changes of the output, key by key, into a batch.
pub(crate) struct Output {
    /// The values of the current key.
    values: Encoded,
    /// The index of a value, a time, and a weight.
    rows: Vec<(usize, Epoch, i64)>,
    builder: BatchBuilder<Epoch>,
    /// The bytes pushed since they were last asked for.
    bytes: usize,
    context: StateContext,
}

impl Output {
    pub(super) fn new(context: &StateContext) -> Self {
        Self {
            values: Encoded::counted(context),
            rows: Vec::new(),
            builder: BatchBuilder::new(context),
            bytes: 0,
            context: context.clone(),
        }
    }

    /// Adds a change of a row of the current key; in any order, and also several changes of one row.
    pub(crate) fn push(&mut self, value: &[u8], time: Epoch, weight: i64) {
        if weight < 0 && fault::armed(Fault::KeepOldAnswer) {
            return;
        }
        self.rows.push((self.values.len(), time, weight));
        self.values.push(value);
    }

    /// Ends the current key, which is `key`. Keys ascend.
    pub(crate) fn finish_key(&mut self, key: &[u8]) {
        let values = &self.values;
        if self.rows.len() > 1 {
            self.rows.sort_unstable_by(|one, other| {
                values.get(one.0).cmp(values.get(other.0)).then_with(|| one.1.cmp(&other.1))
            });
        }
        self.bytes += values.bytes().len();
        for (value, time, weight) in self.rows.drain(..) {
            self.builder.push(key, values.get(value), &time, weight);
        }
        self.values.clear();
    }

    /// The bytes of values that were pushed since the last call.
    pub(crate) fn take_bytes(&mut self) -> usize {
        std::mem::take(&mut self.bytes)
    }

    /// The batch of all changes.
    pub(super) fn finish(&mut self, description: Description<Epoch>) -> Batch<Epoch> {
        std::mem::replace(&mut self.builder, BatchBuilder::new(&self.context)).finish(description)
    }
}
