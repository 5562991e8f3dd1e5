//! A trace: the history of a collection as a few batches.
//!
//! # Design
//!
//! A [`Version`] lists the batches of a spine, contiguous in time, oldest first. Those that readers cannot ask to see
//! apart any more, because physical compaction has passed their upper frontiers, are its open *layers*; younger ones
//! wait behind them. Readers pin versions.
//!
//! - `policy` decides which layers to merge, from their sizes and from the deletions in them, and which to move to files
//!   when memory is short.
//! - `job` is one merge as plain data. Its inputs stay visible until its result is installed.
//! - `version` is the list.
//!
//! Jobs run at once, in the call that makes them due. The result of a merge goes to a file if memory is short by then.
//! Batches return to the heap only by merges.

mod job;
mod policy;
mod version;

use std::ops::Range;

use differential_dataflow::logging::Logger;
use differential_dataflow::trace::{Batch as _, BatchReader, ExertionLogic, Trace, TraceReader};
use timely::PartialOrder;
use timely::dataflow::operators::generic::OperatorInfo;
use timely::progress::Antichain;
use timely::progress::frontier::AntichainRef;
use timely::scheduling::Activator;

use self::job::MergeJob;
use self::policy::Policy;
use self::version::Layer;
pub use self::version::Version;
use crate::batch::Batch;
use crate::fault::{self, Fault};
use crate::memory::{StateContext, context};
use crate::metrics::Open;
use crate::time::PageTime;
use crate::trace::StateTrace;

/// A trace: the history of a collection as a logarithmic number of batches.
///
/// Merges run at once, in the call that makes them due.
pub struct Spine<T> {
    version: Version<T>,
    policy: Policy,
    upper: Antichain<T>,
    logical: Antichain<T>,
    physical: Antichain<T>,
    counters: Open,
    context: StateContext,
}

impl<T: PageTime> StateTrace for Spine<T> {
    fn in_context(context: &StateContext) -> Self {
        let minimum = Antichain::from_elem(T::minimum());
        Spine {
            version: Version::default(),
            policy: Policy::new(context.schedule().merging),
            upper: minimum.clone(),
            logical: minimum.clone(),
            physical: minimum,
            counters: Open::new(context),
            context: context.clone(),
        }
    }
}

impl<T: PageTime> Spine<T> {
    /// The batches as they are now, for readers to pin.
    pub fn version(&self) -> &Version<T> {
        &self.version
    }

    /// Does all maintenance that the frontiers allow; none while the context is [closed](StateContext::close).
    fn maintain(&mut self) {
        if self.context.is_closing() {
            return;
        }
        while self.version.open_next(&self.physical) {
            self.merge_by_size();
        }
        self.merge_by_churn();
        self.spill();
        self.report();
    }

    /// Merges layers until their sizes are in proportion.
    fn merge_by_size(&mut self) {
        let mut end = self.version.open().len();
        while let Some(range) = self.policy.by_size(&self.version.open()[..end]) {
            end = range.start;
            self.merge(range);
        }
    }

    /// Merges the layers that logical compaction has passed, once enough of their updates may cancel.
    fn merge_by_churn(&mut self) {
        let layers = self.version.open();
        let is_passed = |layer: &&Layer<T>| {
            PartialOrder::less_equal(&layer.batch.upper().borrow(), &self.logical.borrow())
        };
        let passed = layers.iter().take_while(is_passed);
        if !self.policy.by_churn(passed.clone()) {
            return;
        }
        let count = passed.count();
        if count == 1 && layers[0].batch.has_one_time() {
            self.version.settle(0);
            return;
        }
        self.merge(0..count);
        // What is left may be small beside the layers that logical compaction has not passed.
        self.merge_by_size();
    }

    /// Replaces these open layers, of which there is at least one, by one.
    fn merge(&mut self, range: Range<usize>) {
        let layers = &self.version.open()[range.clone()];
        let mut fresh: usize = layers.iter().map(|layer| layer.fresh).sum();
        let inputs = layers.iter().map(|layer| layer.batch.clone()).collect();
        let job = MergeJob::new(inputs, self.logical.borrow());
        let batch = job.trivial().unwrap_or_else(|| {
            let batch = job.run(&self.context);
            self.counters.merged();
            // Whatever could cancel has.
            if range.start == 0 && PartialOrder::less_equal(batch.upper(), &self.logical) {
                fresh = 0;
            }
            batch
        });
        let fresh = fresh.min(batch.len());
        self.version.install(range, Layer { batch, fresh });
    }

    /// Moves layers to files, the largest first, while more memory is in use than should be.
    fn spill(&mut self) {
        let budget = self.context.budget();
        if self.context.storage().is_none() {
            return;
        }
        // Other spines do the same, which may suffice. And a reader may keep alive what was moved, so that memory is
        // still short: no spine moves more than the excess it has seen.
        let (excess, mut moved) = (budget.excess(), 0);
        while moved < excess && budget.is_over() {
            let smallest = budget.policy().smallest_file;
            let Some(layer) = self.policy.next_to_spill(self.version.open(), smallest) else {
                break;
            };
            let batch = &self.version.open()[layer].batch;
            moved += batch.bytes();
            let spilled = batch.spilled(&self.context);
            self.version.replace(layer, spilled);
        }
    }

    /// Updates the metrics.
    fn report(&self) {
        let mut held = [0; 4];
        for batch in self.version.batches().filter(|batch| !batch.is_empty()) {
            held[0] += batch.len();
            held[if batch.is_file() { 2 } else { 1 }] += batch.bytes();
            held[3] += 1;
        }
        self.counters.set(held);
    }
}

impl<T: PageTime> TraceReader for Spine<T> {
    type Time = T;
    type Batch = Batch<T>;

    /// As [`Version::through`]: `None` when `upper` was never a bound of a batch, or is one that physical compaction
    /// has passed.
    fn batches_through(&mut self, upper: AntichainRef<'_, T>) -> Option<Vec<Batch<T>>> {
        let mut through = self.version.through(upper)?;
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
        self.version.batches().for_each(visit);
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
        self.version.push(batch);
        self.maintain();
    }

    fn close(&mut self) {
        if !self.upper.is_empty() {
            self.insert(Batch::empty(self.upper.clone(), Antichain::new()));
        }
    }
}
