//! A trace: the history of a collection as a few batches.
//!
//! # Design
//!
//! A [`Version`] lists the batches of a spine, contiguous in time, oldest first. Those that readers cannot ask to see
//! apart any more, because physical compaction has passed their upper frontiers, are its open *layers*; younger ones
//! wait after these. Readers pin versions.
//!
//! - `policy` decides which layers to merge, from their sizes and from the deletions in them, and which to move to files
//!   when memory is short.
//! - `job` is one merge as plain data. Its inputs stay visible until its result is installed.
//! - `work` does a job in slices, on any thread; `running` has the jobs of a spine that are not installed yet.
//! - `maintenance` submits jobs, keeps their pace, and installs results.
//! - `waker` schedules the operator that owns the spine when there is something to install.
//! - `version` is the list.
//!
//! # Pruning
//!
//! If the context has a [pruning](crate::bound), merges drop the rows below the bound that holds from the logical compaction
//! frontier on: readers ask for later changes only. A bound that has moved causes merges of its own where it frees as much as
//! it leaves.
//!
//! # Where jobs are done
//!
//! If the context has a [compaction](StateContext::with_compaction), its threads do the jobs. A job wakes its owner when
//! it is done, and the result is installed when the owner next runs. Without a compaction the owner does jobs itself, at
//! once or [in slices](crate::schedule::Pace). Small jobs are done at once in any case.
//!
//! # Back-pressure
//!
//! The owner takes part in a job in proportion to insertions meanwhile, so that a spine never grows by more than
//! an eighth of a job before the job is done; by a quarter if others do it, for they have a head start of an eighth
//! unless too much is waiting [in all](crate::memory::MemoryPolicy::debt). Where memory is
//! [critical](crate::memory::MemoryPolicy::critical), or [too much](crate::memory::MemoryPolicy::most_debt) is waiting in
//! all, the owner completes its jobs before it continues. So what waits in all does not exceed that limit: when a spine has
//! taken a batch, either the limit is kept or the spine owes nothing, and the debt of others has not grown. Any thread can
//! continue a job where another has stopped, so none waits for more than a slice.

mod job;
mod maintenance;
mod policy;
mod running;
mod version;
mod waker;
mod work;

use differential_dataflow::logging::Logger;
use differential_dataflow::trace::{Batch as _, BatchReader, ExertionLogic, Trace, TraceReader};
use timely::PartialOrder;
use timely::dataflow::operators::generic::OperatorInfo;
use timely::progress::Antichain;
use timely::progress::frontier::AntichainRef;
use timely::scheduling::Activator;

use self::policy::Policy;
pub(crate) use self::policy::Reason;
use self::running::Running;
pub use self::version::Version;
pub use self::waker::Waker;
use crate::batch::Batch;
use crate::bound::Bound;
use crate::fault::{self, Fault};
use crate::memory::{StateContext, context};
use crate::metrics::Open;
use crate::origin::Origin;
use crate::time::PageTime;
use crate::trace::StateTrace;

/// A trace: the history of a collection as a logarithmic number of batches.
///
/// Dropping it cancels its jobs.
pub struct Spine<T: PageTime> {
    version: Version<T>,
    policy: Policy,
    upper: Antichain<T>,
    logical: Antichain<T>,
    physical: Antichain<T>,
    /// The jobs that are not installed yet, by their layers, the oldest first.
    jobs: Vec<Running<T>>,
    /// Whether a merge by churn is due, and waits for jobs: until then no others begin.
    is_churn_due: bool,
    /// The bound for which layers were last looked through.
    pruned: Option<Bound>,
    /// Whether there are layers since then that were not looked at, or that a job had.
    has_new_layers: bool,
    /// How many bytes are done at the next tick.
    tick: u64,
    waker: Waker,
    counters: Open,
    context: StateContext,
    /// Whose maintenance it is, whichever dataflow lets it happen.
    origin: Origin,
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
            jobs: Vec::new(),
            is_churn_due: false,
            pruned: None,
            has_new_layers: false,
            tick: maintenance::FIRST_TICK,
            waker: Waker::default(),
            counters: Open::new(context),
            context: context.clone(),
            origin: Origin::here(),
        }
    }

    fn wake_by(&mut self, waker: Waker) {
        self.waker = waker;
    }
}

impl<T: PageTime> Spine<T> {
    /// The batches as they are now, for readers to pin.
    pub fn version(&self) -> &Version<T> {
        &self.version
    }

    /// Whether no merges and no moves to files are in progress.
    pub fn is_settled(&self) -> bool {
        self.jobs.is_empty()
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
    fn new(_: OperatorInfo, _: Option<Logger>, activator: Option<Activator>) -> Self {
        let mut spine = Self::in_context(&context::current());
        spine.wake_by(Waker::local(activator));
        spine
    }

    /// Installs finished jobs. Does slices of jobs as well, where no other thread does them and there is nothing else to do.
    fn exert(&mut self) {
        let origin = self.origin.clone();
        origin.run(|| self.tick());
        self.maintain();
    }

    /// Does nothing: maintenance is due when frontiers allow it and is never put off.
    fn set_exert_logic(&mut self, _logic: ExertionLogic) {}

    fn insert(&mut self, batch: Batch<T>) {
        assert_eq!(batch.lower(), &self.upper, "a batch starts where the last one ended");
        assert_ne!(batch.lower(), batch.upper(), "a batch covers some interval of time");
        self.upper.clone_from(batch.upper());
        self.arrive(&batch);
        self.version.push(batch);
        self.maintain();
    }

    fn close(&mut self) {
        if !self.upper.is_empty() {
            self.insert(Batch::empty(self.upper.clone(), Antichain::new()));
        }
    }
}
