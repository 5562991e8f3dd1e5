//! Traces read as of a time.
//!
//! A trace that one dataflow keeps may be read by others from a later time on. Updates of earlier times then count as of
//! that time. A [`Reader`] owns this: the batches it returns carry the time as their `since`, and cursors advance the
//! times of updates to it, so that no operator has to.

use alluvium_trace::{Batch, Epoch, Spine};
use differential_dataflow::operators::arrange::TraceAgent;
use differential_dataflow::trace::{Description, TraceReader};
use timely::progress::Antichain;
use timely::progress::frontier::AntichainRef;

/// Reads a trace as of a time: earlier updates appear at that time.
#[derive(Clone)]
pub struct Reader {
    trace: TraceAgent<Spine<Epoch>>,
    as_of: Epoch,
}

impl Reader {
    /// Reads `trace` as of `as_of`, which its compaction must not have passed.
    pub(crate) fn new(trace: TraceAgent<Spine<Epoch>>, as_of: Epoch) -> Self {
        Self { trace, as_of }
    }

    /// The trace itself.
    pub(crate) fn trace(&self) -> &TraceAgent<Spine<Epoch>> {
        &self.trace
    }
}

/// `batch`, with times that cursors advance to `as_of`.
pub(crate) fn read_as_of(batch: &Batch<Epoch>, as_of: Epoch) -> Batch<Epoch> {
    let description = batch.description();
    if description.since().elements().first().is_none_or(|since| *since >= as_of) {
        return batch.clone();
    }
    let (lower, upper) = (description.lower().clone(), description.upper().clone());
    batch.described(Description::new(lower, upper, Antichain::from_elem(as_of)))
}

impl TraceReader for Reader {
    type Time = Epoch;
    type Batch = Batch<Epoch>;

    fn batches_through(&mut self, upper: AntichainRef<'_, Epoch>) -> Option<Vec<Batch<Epoch>>> {
        let mut batches = self.trace.batches_through(upper)?;
        for batch in &mut batches {
            *batch = read_as_of(batch, self.as_of);
        }
        Some(batches)
    }

    fn set_logical_compaction(&mut self, frontier: AntichainRef<'_, Epoch>) {
        self.trace.set_logical_compaction(frontier);
    }

    fn get_logical_compaction(&mut self) -> AntichainRef<'_, Epoch> {
        self.trace.get_logical_compaction()
    }

    fn set_physical_compaction(&mut self, frontier: AntichainRef<'_, Epoch>) {
        self.trace.set_physical_compaction(frontier);
    }

    fn get_physical_compaction(&mut self) -> AntichainRef<'_, Epoch> {
        self.trace.get_physical_compaction()
    }

    fn map_batches<F: FnMut(&Batch<Epoch>)>(&self, mut visit: F) {
        self.trace.map_batches(|batch| visit(&read_as_of(batch, self.as_of)));
    }

    // Where batches end does not depend on the time they are read as of.

    fn read_upper(&mut self, target: &mut Antichain<Epoch>) {
        self.trace.read_upper(target);
    }

    fn advance_upper(&mut self, upper: &mut Antichain<Epoch>) {
        self.trace.advance_upper(upper);
    }
}
