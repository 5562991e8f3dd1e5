//! A trace: the history of a collection as a few batches.
//!
//! # Design
//!
//! Batches are contiguous in time. Those that no reader can ask to see apart, because their upper frontier is
//! at or before the physical compaction frontier, lie in *layers*, from the oldest and largest to the
//! youngest and smallest; the others wait in line behind them.
//!
//! A batch that comes to the layers is merged, all at once, with those before it that have less than twice
//! the updates of what is merged behind them; those in files only once there are four of like size, because to write
//! them again costs more. So on the heap each layer has at least twice the updates of the next, there
//! are a logarithmic number of layers, and an update is copied a logarithmic number of times. An empty batch
//! only extends the description of its neighbour.
//!
//! This alone would not give memory back: an insertion in a large layer and its deletion in a small one meet
//! late, and even when they have met they cancel only if logical compaction had come that far. So each layer
//! counts what is *fresh*: the deletions, and as many updates that they can cancel, that have not yet been
//! merged with all that is older under a frontier at or past all of them. When a third of the updates in the
//! layers that logical compaction has passed are fresh, these layers are merged to one, which in a totally
//! ordered time holds one update per row. That copies at most three updates for each fresh one, and a spine
//! holds little more than three times what it could hold at least, but for what its readers hold back, and
//! for equal rows that were only ever inserted: these meet as layers do.
//!
//! Layers are on the heap or in files. What a merge makes goes to a file if there is too much on the heap by
//! then; where that is not enough, a spine moves its own layers there, the largest first. Nothing is ever moved
//! back but by merges.

use std::collections::VecDeque;
use std::ops::Range;

use differential_dataflow::logging::Logger;
use differential_dataflow::trace::{
    Batch as _, BatchReader, Description, ExertionLogic, Trace, TraceReader,
};
use timely::PartialOrder;
use timely::dataflow::operators::generic::OperatorInfo;
use timely::progress::Antichain;
use timely::progress::frontier::AntichainRef;
use timely::scheduling::Activator;

use crate::batch::Batch;
use crate::fault::{self, Fault, Merging};
use crate::memory::{StateContext, context};
use crate::merge::{merge, merged_description};
use crate::metrics::Open;
use crate::time::PageTime;
use crate::trace::StateTrace;

/// A trace: the history of a collection as a logarithmic number of batches.
///
/// Merges are done at once, by the call that makes them possible.
pub struct Spine<T> {
    /// Batches free to be merged, oldest first.
    layers: Vec<Layer<T>>,
    /// Batches that readers may still ask to see apart, oldest first.
    waiting: VecDeque<Batch<T>>,
    upper: Antichain<T>,
    logical: Antichain<T>,
    physical: Antichain<T>,
    counters: Open,
    context: StateContext,
}

/// So many layers in files are merged at once. To write them again takes long, and to look for a key in some more of them
/// does not.
const FILES: usize = 4;

struct Layer<T> {
    batch: Batch<T>,
    /// How many updates may go when they meet all that is older in a merge that has advanced past them.
    fresh: usize,
}

impl<T: PageTime> StateTrace for Spine<T> {
    fn in_context(context: &StateContext) -> Self {
        let minimum = Antichain::from_elem(T::minimum());
        Spine {
            layers: Vec::new(),
            waiting: VecDeque::new(),
            upper: minimum.clone(),
            logical: minimum.clone(),
            physical: minimum,
            counters: Open::new(context),
            context: context.clone(),
        }
    }
}

impl<T: PageTime> Spine<T> {
    /// Does all maintenance that the frontiers allow; none while its state is only [dropped](StateContext::close).
    fn maintain(&mut self) {
        if self.context.is_closing() {
            return;
        }
        while let Some(batch) = self.waiting.front()
            && PartialOrder::less_equal(batch.upper(), &self.physical)
            && let Some(batch) = self.waiting.pop_front()
        {
            self.admit(batch);
        }
        self.compact();
        self.relieve();
        let mut held = [0; 4];
        for batch in self.batches().filter(|batch| !batch.is_empty()) {
            held[0] += batch.len();
            held[if batch.is_file() { 2 } else { 1 }] += batch.bytes();
            held[3] += 1;
        }
        self.counters.set(held);
    }

    /// Moves layers to files, the largest first, until there is no more on the heap than there should be.
    fn relieve(&mut self) {
        let budget = self.context.budget();
        if self.context.storage().is_none() {
            return;
        }
        // Others move theirs as well, so that there may soon be enough room; and who reads a layer just now holds on to
        // it a little longer, so that there may not be.
        let (excess, mut moved) = (budget.excess(), 0);
        while moved < excess && budget.is_over() {
            let on_heap = self.layers.iter_mut().filter(|layer| {
                let bytes = layer.batch.bytes();
                !layer.batch.is_empty()
                    && !layer.batch.is_file()
                    && bytes >= budget.policy().smallest_file
            });
            let Some(largest) = on_heap.max_by_key(|layer| layer.batch.bytes()) else { break };
            moved += largest.batch.bytes();
            largest.batch = largest.batch.spilled(&self.context);
        }
    }

    /// Makes a batch the youngest layer.
    fn admit(&mut self, batch: Batch<T>) {
        let fresh = batch.len().min(2 * batch.retractions());
        self.layers.push(Layer { batch, fresh });
        self.level();
    }

    /// Merges layers until each has at least twice the updates of the next; but layers in files only when some are of
    /// about the same size.
    fn level(&mut self) {
        let mut end = self.layers.len();
        while end > 1 {
            let start = self.run_before(end);
            if start + 1 < end {
                self.merge_layers(start..end);
            }
            end = start;
        }
    }

    /// Where the layers begin that are to be merged with the last one before `end`.
    fn run_before(&self, end: usize) -> usize {
        let updates = |layer: usize| self.layers[layer].batch.len();
        let is_file = |layer: usize| self.layers[layer].batch.is_file();
        let merging = fault::merging();
        let mut start = end - 1;
        let mut sum = updates(start);
        while let Some(older) = start.checked_sub(1)
            && match merging {
                Merging::InProportion => {
                    sum == 0 || !is_file(older) && updates(older) < sum.saturating_mul(2)
                }
                Merging::Always => true,
                Merging::Never => sum == 0,
            }
        {
            start = older;
            sum += updates(older);
        }
        if merging != Merging::InProportion {
            return start;
        }
        let (mut first, mut largest, mut files) = (start, sum, usize::from(is_file(start)));
        while let Some(older) = first.checked_sub(1)
            && updates(older) < largest.saturating_mul(2)
        {
            first = older;
            largest = largest.max(updates(older));
            files += usize::from(is_file(older));
        }
        if files < FILES { start } else { first }
    }

    /// Merges the layers that logical compaction has passed, once enough of their updates are fresh.
    fn compact(&mut self) {
        let passed = self
            .layers
            .iter()
            .take_while(|layer| PartialOrder::less_equal(layer.batch.upper(), &self.logical));
        let (mut count, mut fresh, mut updates) = (0, 0, 0);
        for layer in passed {
            count += 1;
            fresh += layer.fresh;
            updates += layer.batch.len();
        }
        if fresh == 0 || fresh.saturating_mul(3) < updates {
            return;
        }
        if count == 1 && self.layers[0].batch.has_one_time() {
            self.layers[0].fresh = 0;
            return;
        }
        self.merge_layers(0..count);
        // What is left may be small beside the layers that logical compaction has not passed.
        self.level();
    }

    /// Replaces these layers, of which there is at least one, by one.
    fn merge_layers(&mut self, range: Range<usize>) {
        let since = self.logical.borrow();
        let layers = &self.layers[range.clone()];
        let sources: Vec<Batch<T>> = layers.iter().map(|layer| layer.batch.clone()).collect();
        let mut fresh: usize = layers.iter().map(|layer| layer.fresh).sum();
        let mut full = sources.iter().filter(|source| !source.is_empty());
        let batch = match (full.next(), full.next()) {
            // Nothing to meet: the updates stay as they are, for a longer interval.
            (Some(only), None) if sources.len() > 1 => {
                let whole = merged_description(&sources, since);
                let since = only.description().since().clone();
                let (lower, upper) = (whole.lower().clone(), whole.upper().clone());
                only.described(Description::new(lower, upper, since))
            }
            _ => {
                let batch =
                    merge(&sources, since, merged_description(&sources, since), &self.context);
                self.counters.merged();
                if range.start == 0 && PartialOrder::less_equal(&batch.upper().borrow(), &since) {
                    fresh = 0;
                }
                batch
            }
        };
        let fresh = fresh.min(batch.len());
        self.layers.splice(range, [Layer { batch, fresh }]);
    }

    /// All batches, oldest first.
    fn batches(&self) -> impl Iterator<Item = &Batch<T>> {
        let layers = self.layers.iter().map(|layer| &layer.batch);
        layers.chain(&self.waiting)
    }
}

impl<T: PageTime> TraceReader for Spine<T> {
    type Time = T;
    type Batch = Batch<T>;

    /// The batches, without empty ones, that hold all updates before `upper` and none at or beyond it.
    ///
    /// `None` if a batch has some of both: when `upper` was never a bound of a batch, or is one that physical
    /// compaction has passed.
    fn batches_through(&mut self, upper: AntichainRef<'_, T>) -> Option<Vec<Batch<T>>> {
        let mut through = Vec::new();
        // Reduce asks for what is before all times, and this no merge can have covered.
        if upper.less_equal(&T::minimum()) {
            return Some(through);
        }
        for batch in self.batches().filter(|batch| !batch.is_empty()) {
            if PartialOrder::less_equal(&batch.upper().borrow(), &upper) {
                through.push(batch.clone());
            } else if !PartialOrder::less_equal(&upper, &batch.lower().borrow()) {
                return None;
            }
        }
        if fault::armed(Fault::ForgetYoungest) && through.len() > 1 {
            through.pop();
        }
        Some(through)
    }

    fn set_logical_compaction(&mut self, frontier: AntichainRef<'_, T>) {
        debug_assert!(
            PartialOrder::less_equal(&self.logical.borrow(), &frontier),
            "logical compaction goes forward"
        );
        self.logical = frontier.to_owned();
    }

    fn get_logical_compaction(&mut self) -> AntichainRef<'_, T> {
        self.logical.borrow()
    }

    fn set_physical_compaction(&mut self, frontier: AntichainRef<'_, T>) {
        debug_assert!(
            PartialOrder::less_equal(&self.physical.borrow(), &frontier),
            "physical compaction goes forward"
        );
        self.physical = frontier.to_owned();
        self.maintain();
    }

    fn get_physical_compaction(&mut self) -> AntichainRef<'_, T> {
        self.physical.borrow()
    }

    fn map_batches<F: FnMut(&Batch<T>)>(&self, visit: F) {
        self.batches().for_each(visit);
    }
}

impl<T: PageTime> Trace for Spine<T> {
    fn new(_: OperatorInfo, _: Option<Logger>, _: Option<Activator>) -> Self {
        Self::in_context(&context::current())
    }

    fn exert(&mut self) {
        self.maintain();
    }

    /// Does nothing: maintenance is due when frontiers allow it and is never put off.
    fn set_exert_logic(&mut self, _logic: ExertionLogic) {}

    fn insert(&mut self, batch: Batch<T>) {
        assert_eq!(batch.lower(), &self.upper, "a batch starts where the last one ended");
        assert_ne!(batch.lower(), batch.upper(), "a batch covers some interval of time");
        self.upper.clone_from(batch.upper());
        self.waiting.push_back(batch);
        self.maintain();
    }

    fn close(&mut self) {
        if !self.upper.is_empty() {
            self.insert(Batch::empty(self.upper.clone(), Antichain::new()));
        }
    }
}
