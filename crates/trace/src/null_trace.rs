//! A trace that stores nothing.

use differential_dataflow::logging::Logger;
use differential_dataflow::trace::{ExertionLogic, Trace, TraceReader};
use timely::dataflow::operators::generic::OperatorInfo;
use timely::progress::Antichain;
use timely::progress::frontier::AntichainRef;
use timely::scheduling::Activator;

use crate::batch::Batch;
use crate::memory::StateContext;
use crate::time::PageTime;
use crate::trace::StateTrace;

/// A trace that drops its batches: for a driver that requires a trace where none is read.
///
/// It knows its frontiers and never has a batch.
pub struct NullTrace<T> {
    upper: Antichain<T>,
    logical: Antichain<T>,
    physical: Antichain<T>,
}

impl<T: PageTime> NullTrace<T> {
    fn empty() -> Self {
        let minimum = Antichain::from_elem(T::minimum());
        NullTrace { upper: minimum.clone(), logical: minimum.clone(), physical: minimum }
    }
}

impl<T: PageTime> StateTrace for NullTrace<T> {
    fn in_context(_context: &StateContext) -> Self {
        Self::empty()
    }
}

impl<T: PageTime> TraceReader for NullTrace<T> {
    type Time = T;
    type Batch = Batch<T>;

    fn batches_through(&mut self, _upper: AntichainRef<'_, T>) -> Option<Vec<Batch<T>>> {
        Some(Vec::new())
    }

    fn set_logical_compaction(&mut self, frontier: AntichainRef<'_, T>) {
        self.logical = frontier.to_owned();
    }

    fn get_logical_compaction(&mut self) -> AntichainRef<'_, T> {
        self.logical.borrow()
    }

    fn set_physical_compaction(&mut self, frontier: AntichainRef<'_, T>) {
        self.physical = frontier.to_owned();
    }

    fn get_physical_compaction(&mut self) -> AntichainRef<'_, T> {
        self.physical.borrow()
    }

    fn map_batches<F: FnMut(&Batch<T>)>(&self, _visit: F) {}

    fn read_upper(&mut self, target: &mut Antichain<T>) {
        target.clone_from(&self.upper);
    }
}

impl<T: PageTime> Trace for NullTrace<T> {
    fn new(_: OperatorInfo, _: Option<Logger>, _: Option<Activator>) -> Self {
        Self::empty()
    }

    fn exert(&mut self) {}

    fn set_exert_logic(&mut self, _logic: ExertionLogic) {}

    fn insert(&mut self, batch: Batch<T>) {
        let description = batch.description();
        assert_eq!(description.lower(), &self.upper, "a batch starts where the last one ended");
        self.upper.clone_from(description.upper());
    }

    fn close(&mut self) {
        self.upper.clear();
    }
}
