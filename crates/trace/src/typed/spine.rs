//! A trace of typed rows.

use std::marker::PhantomData;

use differential_dataflow::logging::Logger;
use differential_dataflow::trace::{ExertionLogic, Trace, TraceReader};
use timely::dataflow::operators::generic::OperatorInfo;
use timely::progress::Antichain;
use timely::progress::frontier::AntichainRef;
use timely::scheduling::Activator;

use super::Types;
use super::batch::TypedBatch;
use crate::memory::StateContext;
use crate::spine::{Spine, Waker};
use crate::time::PageTime;
use crate::trace::StateTrace;

/// A [`Spine`] of typed rows: a trace for `arrange` and `reduce` of differential-dataflow.
///
/// Merges are done as its [context](StateContext) says, not as differential-dataflow's exertion logic does.
pub struct TypedSpine<K, V, T: PageTime, R = isize> {
    rows: Spine<T>,
    types: Types<K, V, R>,
}

impl<K, V, T: PageTime, R> TypedSpine<K, V, T, R> {
    fn new(rows: Spine<T>) -> Self {
        TypedSpine { rows, types: PhantomData }
    }

    /// The spine of the rows as bytes.
    pub fn rows(&self) -> &Spine<T> {
        &self.rows
    }
}

impl<K: 'static, V: 'static, T: PageTime, R: 'static> StateTrace for TypedSpine<K, V, T, R> {
    fn in_context(context: &StateContext) -> Self {
        Self::new(Spine::in_context(context))
    }

    fn wake_by(&mut self, waker: Waker) {
        self.rows.wake_by(waker);
    }
}

impl<K: 'static, V: 'static, T: PageTime, R: 'static> TraceReader for TypedSpine<K, V, T, R> {
    type Time = T;
    type Batch = TypedBatch<K, V, T, R>;

    fn batches_through(&mut self, upper: AntichainRef<'_, T>) -> Option<Vec<Self::Batch>> {
        let batches = self.rows.batches_through(upper)?;
        Some(batches.into_iter().map(TypedBatch::new).collect())
    }

    fn set_logical_compaction(&mut self, frontier: AntichainRef<'_, T>) {
        self.rows.set_logical_compaction(frontier);
    }

    fn get_logical_compaction(&mut self) -> AntichainRef<'_, T> {
        self.rows.get_logical_compaction()
    }

    fn set_physical_compaction(&mut self, frontier: AntichainRef<'_, T>) {
        self.rows.set_physical_compaction(frontier);
    }

    fn get_physical_compaction(&mut self) -> AntichainRef<'_, T> {
        self.rows.get_physical_compaction()
    }

    fn map_batches<F: FnMut(&Self::Batch)>(&self, mut visit: F) {
        self.rows.map_batches(|batch| visit(&TypedBatch::new(batch.clone())));
    }

    fn read_upper(&mut self, target: &mut Antichain<T>) {
        self.rows.read_upper(target);
    }

    fn advance_upper(&mut self, upper: &mut Antichain<T>) {
        self.rows.advance_upper(upper);
    }
}

impl<K: 'static, V: 'static, T: PageTime, R: 'static> Trace for TypedSpine<K, V, T, R> {
    /// A trace in the context that the thread has [entered](crate::memory::context::enter).
    fn new(info: OperatorInfo, logger: Option<Logger>, activator: Option<Activator>) -> Self {
        Self::new(Trace::new(info, logger, activator))
    }

    fn exert(&mut self) {
        self.rows.exert();
    }

    fn set_exert_logic(&mut self, logic: ExertionLogic) {
        self.rows.set_exert_logic(logic);
    }

    fn insert(&mut self, batch: Self::Batch) {
        self.rows.insert(batch.into_rows());
    }

    fn close(&mut self) {
        self.rows.close();
    }
}
