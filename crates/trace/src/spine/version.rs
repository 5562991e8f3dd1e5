//! The batches of a spine at one moment.

use std::ops::Range;
use std::sync::Arc;

use differential_dataflow::trace::{BatchReader, TraceReader};
use timely::PartialOrder;
use timely::progress::frontier::AntichainRef;
use timely::progress::{Antichain, Timestamp};

use super::policy::Shape;
use crate::batch::Batch;
use crate::time::PageTime;

/// An immutable list of batches that are contiguous in time, oldest first.
///
/// A clone pins the list and everything in it, on any thread. It costs what the pinned batches keep alive, and one copy
/// of the list, 24 bytes per batch, when the spine changes next.
#[derive(Clone)]
pub struct Version<T> {
    list: Arc<List<T>>,
}

#[derive(Clone)]
struct List<T> {
    layers: Vec<Layer<T>>,
    /// How many of them, from the oldest, may be merged. Readers may still ask to see the others apart.
    open: usize,
}

/// A batch, with facts for the policy.
#[derive(Clone)]
pub(super) struct Layer<T> {
    pub(super) batch: Batch<T>,
    /// How many updates may cancel when they meet everything older in a merge that has advanced past them.
    pub(super) fresh: usize,
    /// Below what it has no rows that are not needed, if that is known.
    pub(super) least: Option<i64>,
}

impl<T> Layer<T> {
    /// A batch as it is, of which nothing is known.
    pub(super) fn new(batch: Batch<T>, fresh: usize) -> Self {
        Self { batch, fresh, least: None }
    }
}

impl<T> Shape for Layer<T> {
    fn updates(&self) -> usize {
        self.batch.len()
    }

    fn fresh(&self) -> usize {
        self.fresh
    }

    fn bytes(&self) -> usize {
        self.batch.bytes()
    }

    fn is_file(&self) -> bool {
        self.batch.is_file()
    }

    fn seeks(&self) -> u64 {
        self.batch.seeks()
    }
}

impl<T> Default for Version<T> {
    fn default() -> Self {
        Version { list: Arc::new(List { layers: Vec::new(), open: 0 }) }
    }
}

impl<T: PageTime> Version<T> {
    /// A list of these batches.
    pub fn new(batches: Vec<Batch<T>>) -> Self {
        let layers = batches.into_iter().map(|batch| Layer::new(batch, 0)).collect();
        Version { list: Arc::new(List { layers, open: 0 }) }
    }

    /// Pins the batches that a trace has now.
    pub fn of(trace: &impl TraceReader<Time = T, Batch = Batch<T>>) -> Self {
        let mut batches = Vec::new();
        trace.map_batches(|batch| batches.push(batch.clone()));
        Self::new(batches)
    }

    /// The batches, oldest first.
    pub fn batches(&self) -> impl Iterator<Item = &Batch<T>> {
        self.list.layers.iter().map(|layer| &layer.batch)
    }

    /// The batches, without empty ones, that hold all updates before `upper` and none at or beyond it; `None` if a
    /// batch has some of both.
    pub fn through(&self, upper: AntichainRef<'_, T>) -> Option<Vec<Batch<T>>> {
        let mut through = Vec::new();
        // Reductions ask for the updates before all times. There are none, and no merge can have crossed that bound.
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
        Some(through)
    }

    /// The layers that may be merged.
    pub(super) fn open(&self) -> &[Layer<T>] {
        &self.list.layers[..self.list.open]
    }
}

impl<T: PageTime + Timestamp> Version<T> {
    /// Adds the youngest batch. Readers may ask to see it apart.
    pub(super) fn push(&mut self, batch: Batch<T>) {
        let fresh = batch.len().min(2 * batch.retractions());
        self.list_mut().layers.push(Layer::new(batch, fresh));
    }

    /// Opens the next batch to merges, if its upper frontier is at or before `physical`. Whether it was.
    pub(super) fn open_next(&mut self, physical: &Antichain<T>) -> bool {
        let next = self.list.layers.get(self.list.open);
        let is_passed =
            next.is_some_and(|next| PartialOrder::less_equal(next.batch.upper(), physical));
        if is_passed {
            self.list_mut().open += 1;
        }
        is_passed
    }

    /// Puts one layer in the place of these open ones.
    pub(super) fn install(&mut self, range: Range<usize>, layer: Layer<T>) {
        let list = self.list_mut();
        list.open -= range.len() - 1;
        list.layers.splice(range, [layer]);
    }

    /// The list, which is copied first if it is pinned.
    fn list_mut(&mut self) -> &mut List<T> {
        Arc::make_mut(&mut self.list)
    }
}
