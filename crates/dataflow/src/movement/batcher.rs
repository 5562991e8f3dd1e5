//! Rows that wait for the end of their times, to be sorted into batches.

use alluvium_trace::memory::StateContext;
use alluvium_trace::{Batch, PageTime, RowBuffer, Sealing};
use differential_dataflow::trace::Description;
use timely::dataflow::operators::Capability;
use timely::order::PartialOrder;
use timely::progress::Antichain;
use timely::progress::Timestamp;
use timely::progress::frontier::AntichainRef;
use timely::scheduling::SyncActivator;

/// Makes a batch of the rows that a frontier has passed.
pub(crate) struct Batcher<T: PageTime> {
    buffer: RowBuffer<T>,
    /// The capabilities of the buffered rows.
    held: Antichain<Capability<T>>,
    /// Everything before this is in batches.
    sealed: Antichain<T>,
    /// Times at which to cut batches besides, in tests.
    tiles: Option<Vec<T>>,
    /// Rows that another thread sorts into a batch, up to where, and their capability.
    sealing: Option<(Sealing<T>, Antichain<T>, Capability<T>)>,
    /// Runs the operator when that batch is there.
    waker: SyncActivator,
}

/// The output of a [`Batcher`].
pub(crate) enum Sealed<'a, T: Timestamp> {
    /// Nothing else is before this.
    Until(Antichain<T>),
    /// Rows, which start where the last ones end, and a capability for them.
    Batch(&'a Capability<T>, Batch<T>),
}

impl<T: PageTime> Batcher<T> {
    /// For rows from `sealed` on. `waker` runs the operator.
    pub(crate) fn new(context: &StateContext, sealed: Antichain<T>, waker: SyncActivator) -> Self {
        let tiles = context.schedule().tiled.then(Vec::new);
        let buffer = RowBuffer::new(context);
        Self { buffer, held: Antichain::new(), sealed, tiles, sealing: None, waker }
    }

    /// Where to put rows that arrived with `capability`.
    pub(crate) fn rows(&mut self, capability: Capability<T>) -> &mut RowBuffer<T> {
        if let Some(tiles) = &mut self.tiles {
            tiles.push(*capability.time());
        }
        self.held.insert(capability);
        &mut self.buffer
    }

    /// The time of a capability that is held; the earliest one, where times are in order.
    pub(crate) fn held_from(&self) -> Option<T> {
        let sealing = self.sealing.as_ref().map(|(_, _, capability)| *capability.time());
        let held = self.held.elements().first().map(|capability| *capability.time());
        sealing.into_iter().chain(held).min()
    }

    /// Everything before this is in batches.
    pub(crate) fn sealed(&self) -> AntichainRef<'_, T> {
        self.sealed.borrow()
    }

    /// Puts all rows before `frontier` into batches. A large one may come later, when the operator runs again.
    pub(crate) fn advance(
        &mut self,
        frontier: AntichainRef<'_, T>,
        mut emit: impl FnMut(Sealed<'_, T>),
    ) {
        if !self.end_sealing(&mut emit) {
            return;
        }
        if !PartialOrder::less_than(&self.sealed.borrow(), &frontier) {
            return;
        }
        let is_due = |capability: &Capability<T>| !frontier.less_equal(capability.time());
        if self.held.elements().iter().any(is_due) {
            // A batch starts where its rows do. Readers of a trace that has not changed advance without it, and may ask for
            // the batches through any epoch before these rows.
            let mut start = frontier.to_owned();
            start.extend(self.held.elements().iter().map(|capability| *capability.time()));
            if PartialOrder::less_than(&self.sealed, &start) {
                self.sealed.clone_from(&start);
                emit(Sealed::Until(start));
            }
            // A message carries one capability, so a step past several of them is cut into as many batches: each reaches
            // up to the frontier and the capabilities to come.
            let held = std::mem::take(&mut self.held).into_iter().collect::<Vec<_>>();
            if let [capability] = &held[..]
                && self.begin_sealing(capability, frontier)
            {
                return;
            }
            for (index, capability) in held.iter().enumerate() {
                let mut upper = frontier.to_owned();
                upper.extend(held[index + 1..].iter().map(|later| *later.time()));
                if is_due(capability) && upper != self.sealed {
                    self.seal_tiles(capability, upper, &mut emit);
                }
            }
            for time in self.buffer.frontier().iter() {
                let capability = held
                    .iter()
                    .find(|capability| capability.time().less_equal(time))
                    .expect("a row arrives under a capability for its time");
                self.held.insert(capability.delayed(time));
            }
        }
        self.sealed = frontier.to_owned();
        emit(Sealed::Until(self.sealed.clone()));
    }

    /// Has another thread sort the rows before `frontier`, all of which came with this capability, if there are many. Whether it does.
    fn begin_sealing(&mut self, capability: &Capability<T>, frontier: AntichainRef<'_, T>) -> bool {
        if self.tiles.is_some() {
            return false;
        }
        let upper = frontier.to_owned();
        let description = describe(&self.sealed, &upper);
        let begun = Sealing::begin(&mut self.buffer, &description, &self.waker);
        self.sealing = begun.map(|sealing| (sealing, upper, capability.clone()));
        self.sealing.is_some()
    }

    /// Emits the batch that another thread has sorted. Returns whether there is none to wait for.
    fn end_sealing(&mut self, emit: &mut impl FnMut(Sealed<'_, T>)) -> bool {
        let Some((sealing, _, _)) = &self.sealing else { return true };
        let Some((batch, rest)) = sealing.take() else { return false };
        if let Some((_, upper, capability)) = self.sealing.take() {
            self.sealed.clone_from(&upper);
            emit(Sealed::Batch(&capability, batch));
            emit(Sealed::Until(upper));
            for time in rest.frontier().iter() {
                self.held.insert(capability.delayed(time));
            }
            self.buffer.absorb(rest);
        }
        true
    }

    /// Puts the rows before `upper` into a batch, or into several that end at tiles.
    fn seal_tiles(
        &mut self,
        capability: &Capability<T>,
        upper: Antichain<T>,
        emit: &mut impl FnMut(Sealed<'_, T>),
    ) {
        let mut tiles = self.tiles.as_mut().map(std::mem::take).unwrap_or_default();
        tiles.sort_unstable();
        for tile in tiles.into_iter().map(Antichain::from_elem) {
            let is_within = PartialOrder::less_than(&self.sealed, &tile)
                && PartialOrder::less_than(&tile, &upper);
            if is_within {
                self.seal(capability, tile, emit);
            }
        }
        self.seal(capability, upper, emit);
    }

    fn seal(
        &mut self,
        capability: &Capability<T>,
        upper: Antichain<T>,
        emit: &mut impl FnMut(Sealed<'_, T>),
    ) {
        let batch = self.buffer.seal(describe(&self.sealed, &upper));
        self.sealed = upper;
        emit(Sealed::Batch(capability, batch));
    }
}

/// The interval from `lower` to `upper`, with exact times.
pub(crate) fn describe<T: PageTime>(lower: &Antichain<T>, upper: &Antichain<T>) -> Description<T> {
    Description::new(lower.clone(), upper.clone(), Antichain::from_elem(T::minimum()))
}
