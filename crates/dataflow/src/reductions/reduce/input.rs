//! An input of a reduction.

use alluvium_trace::{Batch, Epoch};
use differential_dataflow::trace::{BatchReader, TraceReader};

use super::interval::{frontier, later};
use crate::fault::{self, Fault};

/// A trace, and the batches that arrived on its stream and are not yet processed.
pub(crate) struct Input<Tr> {
    /// `None` if nothing is kept, or once nothing more can change.
    trace: Option<Tr>,
    waiting: Vec<Batch<Epoch>>,
    /// All earlier batches have arrived.
    upper: Option<Epoch>,
    /// Whether intervals end where batches end: this is the only input.
    is_aligned: bool,
}

impl<Tr: TraceReader<Time = Epoch, Batch = Batch<Epoch>>> Input<Tr> {
    pub(super) fn new(mut trace: Tr, is_aligned: bool, lower: Option<Epoch>) -> Self {
        if !is_aligned {
            // All batches are read together, so any of them may be merged.
            trace.set_physical_compaction(frontier(None).borrow());
        }
        Self { trace: Some(trace), waiting: Vec::new(), upper: lower, is_aligned }
    }

    /// The only input, of which nothing is kept.
    pub(super) fn of_rows(lower: Option<Epoch>) -> Self {
        Self { trace: None, waiting: Vec::new(), upper: lower, is_aligned: true }
    }

    /// Takes batches from the stream. Drops those that end at or before `lower`, whose changes are processed already.
    /// Returns whether any are left.
    pub(super) fn receive(
        &mut self,
        batches: impl IntoIterator<Item = Batch<Epoch>>,
        lower: Option<Epoch>,
    ) -> bool {
        let waiting = self.waiting.len();
        for batch in batches {
            let upper = batch.upper().elements().first().copied();
            let is_done = |lower| is_done(&batch, lower, self.is_aligned);
            if !batch.is_empty() && !lower.is_none_or(is_done) {
                self.waiting.push(batch);
            }
            self.upper = later(self.upper, upper);
        }
        self.waiting.len() > waiting
    }

    /// All batches before `frontier` have arrived.
    pub(super) fn reach(&mut self, frontier: Option<Epoch>) {
        self.upper = later(self.upper, frontier);
    }

    /// All earlier batches have arrived.
    pub(super) fn upper(&self) -> Option<Epoch> {
        self.upper
    }

    /// Whether there are unprocessed batches.
    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The unprocessed batches. Their updates may also be before or after an interval.
    pub(super) fn fresh(&self) -> Vec<Batch<Epoch>> {
        let mut fresh = self.waiting.clone();
        if fault::armed(Fault::FirstTileOnly) {
            fresh.truncate(1);
        }
        fresh
    }

    /// All batches of the trace.
    pub(super) fn all(&self) -> Vec<Batch<Epoch>> {
        let mut all = Vec::new();
        if let Some(trace) = &self.trace {
            trace.map_batches(|batch| all.push(batch.clone()));
        }
        all
    }

    /// The batches of the trace before `lower`, which is where a batch ends.
    pub(super) fn before(&mut self, lower: Epoch) -> Vec<Batch<Epoch>> {
        let Some(trace) = &mut self.trace else { return Vec::new() };
        trace
            .batches_through(frontier(Some(lower)).borrow())
            .expect("an interval starts where a batch of its only input ends")
    }

    /// Releases batches that only times before `upper` need.
    pub(super) fn advance(&mut self, upper: Option<Epoch>) {
        let Some(end) = upper else {
            self.trace = None;
            self.waiting.clear();
            return;
        };
        if let Some(trace) = &mut self.trace {
            if self.is_aligned {
                trace.set_logical_compaction(frontier(upper).borrow());
                trace.set_physical_compaction(frontier(upper).borrow());
            } else {
                // Not to `upper`: updates from before it must keep earlier times than those at it.
                trace.set_logical_compaction(frontier(Some(end.saturating_sub(1))).borrow());
            }
        }
        let is_aligned = self.is_aligned;
        self.waiting.retain(|batch| !is_done(batch, end, is_aligned));
    }
}

/// Whether all changes of a batch are processed once all before an epoch are.
///
/// A batch that is read as of a later time than it ends has its changes at that time. It may even come when everything up to its end is
/// processed: from an index that was behind when a dataflow began to read it. The only input is read as of no other times.
fn is_done(batch: &Batch<Epoch>, epoch: Epoch, is_aligned: bool) -> bool {
    let ends = batch.upper().elements().first().is_some_and(|upper| *upper <= epoch);
    let since = batch.description().since().elements().first().copied();
    ends && (is_aligned || since.is_none_or(|since| since < epoch))
}

#[cfg(test)]
mod tests {
    use alluvium_trace::memory::StateContext;
    use alluvium_trace::{NullTrace, RowBuffer};

    use super::*;
    use crate::movement::batcher::describe;
    use crate::state::reader::read_as_of;

    #[test]
    fn a_batch_that_is_read_as_of_later_counts_though_everything_up_to_its_end_is_processed() {
        let mut buffer = RowBuffer::new(&StateContext::default());
        buffer.push(b"key", b"row", &6, 1);
        let batch = buffer.seal(describe(&frontier(Some(3)), &frontier(Some(7))));
        let input = || Input::<NullTrace<Epoch>> {
            trace: None,
            waiting: Vec::new(),
            upper: Some(7),
            is_aligned: false,
        };
        let mut late = input();
        assert!(late.receive([read_as_of(&batch, 7)], Some(7)));
        late.advance(Some(7));
        assert!(late.is_waiting());
        late.advance(Some(8));
        assert!(!late.is_waiting());
        assert!(!input().receive([batch], Some(7)), "its changes are processed");
    }
}
