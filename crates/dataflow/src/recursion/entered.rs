//! An arrangement of the dataflow around a recursion, read inside of it.
//!
//! Its rows are the same in all rounds. Batches stay what they are: only their descriptions, and the times that are read, get a
//! round.

use alluvium_trace::{Batch, Cursors, Epoch};
use differential_dataflow::operators::arrange::Arranged;
use differential_dataflow::trace::{BatchReader, Description, TraceReader};
use timely::dataflow::operators::Enter;
use timely::dataflow::operators::vec::Map;
use timely::order::Product;
use timely::progress::Antichain;
use timely::progress::frontier::AntichainRef;

use super::boundary::before;
use super::{Round, Rounds};
use crate::joins::join::{ReadAs, Rows};
use crate::state::arrangement::{Arrangement, Kept};
use crate::state::reader::Reader;

/// Brings an arrangement into all rounds of a recursion.
pub(super) fn enter<'inner>(
    kept: Kept<'_>,
    rounds: Rounds<'inner>,
) -> Arrangement<'inner, EnteredTrace> {
    let Kept { arranged: Arranged { stream, trace }, layout } = kept;
    let stream = stream.enter(rounds).map(EnteredBatch::new);
    let trace = EnteredTrace { trace, logical: Antichain::new(), physical: Antichain::new() };
    Arrangement { arranged: Arranged { stream, trace }, layout }
}

/// A frontier of epochs in all rounds.
fn inner(frontier: AntichainRef<'_, Epoch>) -> Antichain<Round> {
    frontier.iter().map(|epoch| Product::new(*epoch, 0)).collect()
}

/// The epochs of a frontier.
fn outer(frontier: AntichainRef<'_, Round>) -> Antichain<Epoch> {
    frontier.iter().map(|time| time.outer).collect()
}

/// A trace of the dataflow around.
#[derive(Clone)]
pub(super) struct EnteredTrace {
    trace: Reader,
    logical: Antichain<Round>,
    physical: Antichain<Round>,
}

impl TraceReader for EnteredTrace {
    type Time = Round;
    type Batch = EnteredBatch;

    fn batches_through(&mut self, upper: AntichainRef<'_, Round>) -> Option<Vec<EnteredBatch>> {
        let batches = self.trace.batches_through(outer(upper).borrow())?;
        Some(batches.into_iter().map(EnteredBatch::new).collect())
    }

    fn set_logical_compaction(&mut self, frontier: AntichainRef<'_, Round>) {
        self.trace.set_logical_compaction(before(outer(frontier).borrow()).borrow());
    }

    fn get_logical_compaction(&mut self) -> AntichainRef<'_, Round> {
        self.logical = inner(self.trace.get_logical_compaction());
        self.logical.borrow()
    }

    fn set_physical_compaction(&mut self, frontier: AntichainRef<'_, Round>) {
        self.trace.set_physical_compaction(outer(frontier).borrow());
    }

    fn get_physical_compaction(&mut self) -> AntichainRef<'_, Round> {
        self.physical = inner(self.trace.get_physical_compaction());
        self.physical.borrow()
    }

    fn map_batches<F: FnMut(&EnteredBatch)>(&self, mut visit: F) {
        self.trace.map_batches(|batch| visit(&EnteredBatch::new(batch.clone())));
    }
}

/// A batch of the dataflow around.
#[derive(Clone)]
pub(super) struct EnteredBatch {
    batch: Batch<Epoch>,
    description: Description<Round>,
}

impl EnteredBatch {
    fn new(batch: Batch<Epoch>) -> Self {
        let [lower, upper, since] = {
            let description = batch.description();
            [description.lower(), description.upper(), description.since()]
                .map(|frontier| inner(frontier.borrow()))
        };
        Self { batch, description: Description::new(lower, upper, since) }
    }
}

impl BatchReader for EnteredBatch {
    type Time = Round;

    fn len(&self) -> usize {
        self.batch.len()
    }

    fn description(&self) -> &Description<Round> {
        &self.description
    }
}

/// The rows of one side of a join inside of a recursion.
pub(super) enum RoundRows {
    /// Of rows that differ by round.
    Own(Cursors<Round>),
    /// Of rows of the dataflow around.
    Entered(Cursors<Epoch>),
}

impl ReadAs<RoundRows> for Batch<Round> {
    fn read(batches: Vec<Self>) -> RoundRows {
        RoundRows::Own(Cursors::new(batches))
    }
}

impl ReadAs<RoundRows> for EnteredBatch {
    fn read(batches: Vec<Self>) -> RoundRows {
        RoundRows::Entered(Cursors::new(batches.into_iter().map(|entered| entered.batch)))
    }
}

/// Does the same with either kind of rows.
macro_rules! either {
    ($rows:expr, $cursors:ident => $does:expr) => {
        match $rows {
            RoundRows::Own($cursors) => $does,
            RoundRows::Entered($cursors) => $does,
        }
    };
}

impl Rows for RoundRows {
    type Time = Round;

    fn key(&self) -> Option<&[u8]> {
        either!(self, cursors => cursors.key())
    }

    fn step_key(&mut self) {
        either!(self, cursors => cursors.step_key());
    }

    fn seek_key(&mut self, key: &[u8]) {
        either!(self, cursors => cursors.seek_key(key));
    }

    fn val(&self) -> Option<&[u8]> {
        either!(self, cursors => cursors.val())
    }

    fn step_val(&mut self) {
        either!(self, cursors => cursors.step_val());
    }

    fn rewind_vals(&mut self) {
        either!(self, cursors => cursors.rewind_vals());
    }

    fn updates(&self, mut visit: impl FnMut(Round, i64)) {
        match self {
            RoundRows::Own(cursors) => cursors.updates(visit),
            RoundRows::Entered(cursors) => {
                cursors.updates(|epoch, weight| visit(Product::new(epoch, 0), weight));
            }
        }
    }

    /// Rows of the two kinds have nothing in common by which one could announce the keys of the other.
    fn prefetch_hint(&mut self, keys: Self) {
        match (self, keys) {
            (RoundRows::Own(cursors), RoundRows::Own(keys)) => cursors.prefetch_hint(keys),
            (RoundRows::Entered(cursors), RoundRows::Entered(keys)) => cursors.prefetch_hint(keys),
            _ => {}
        }
    }
}
