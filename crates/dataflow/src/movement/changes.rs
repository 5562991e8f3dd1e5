//! The changes of a relation between two epochs, read from pinned batches on any thread.

use alluvium_trace::{Cursors, Epoch};

use crate::movement::delta::{Delta, EncodedDelta};
use crate::rows::weight::consolidate;
use crate::state::snapshot::Snapshot;

/// The changes of a relation after one epoch and up to another, by key, in deltas of bounded size: a row occurs at most once
/// for each epoch, and never with the weight zero.
pub struct Changes {
    cursors: Cursors<Epoch>,
    output: EncodedDelta<Epoch>,
    /// The weights of the current row, by epoch, while they are added up.
    weights: Vec<(Epoch, i64)>,
    range: Range,
    snapshot: Snapshot,
    columns: Vec<usize>,
}

/// Which changes are read.
#[derive(Clone, Copy)]
enum Range {
    /// All rows as of the end of an epoch, as if it had made them.
    UpTo(Epoch),
    /// Those of the epochs after the first one, up to the second.
    Between(Epoch, Epoch),
}

impl Changes {
    /// All rows as of the end of `epoch`, as changes of that epoch. The snapshots are of one relation, pinned on each worker;
    /// `None` if there is none.
    pub fn of_all(snapshots: &[Snapshot], epoch: Epoch) -> Option<Self> {
        Self::new(snapshots, Range::UpTo(epoch))
    }

    /// The changes after the epoch `after`, to which the batches are not compacted further, up to and with `epoch`.
    pub fn between(snapshots: &[Snapshot], after: Epoch, epoch: Epoch) -> Option<Self> {
        Self::new(snapshots, Range::Between(after, epoch))
    }

    fn new(snapshots: &[Snapshot], range: Range) -> Option<Self> {
        let snapshot = snapshots.first()?.clone();
        Some(Self {
            cursors: Cursors::scan(snapshots.iter().flat_map(Snapshot::batches).cloned()),
            output: EncodedDelta::new(snapshot.context()),
            weights: Vec::new(),
            range,
            columns: (0..snapshot.schema().fields().len()).collect(),
            snapshot,
        })
    }

    /// Adds the changes of the current row to the output.
    fn push_row(&mut self) {
        let (Some(key), Some(value)) = (self.cursors.key(), self.cursors.val()) else { return };
        let (weights, range) = (&mut self.weights, self.range);
        self.cursors.updates(|time, weight| match range {
            Range::UpTo(last) if time <= last => weights.push((last, weight)),
            Range::Between(after, last) if after < time && time <= last => {
                weights.push((time, weight));
            }
            Range::UpTo(_) | Range::Between(..) => {}
        });
        consolidate(weights);
        for (time, weight) in weights.drain(..) {
            self.output.push(key, value, time, weight);
        }
    }
}

impl Iterator for Changes {
    type Item = Delta<Epoch>;

    fn next(&mut self) -> Option<Delta<Epoch>> {
        while !self.output.is_full() && self.cursors.key().is_some() {
            match self.cursors.val() {
                None => self.cursors.step_key(),
                Some(_) => {
                    self.push_row();
                    self.cursors.step_val();
                }
            }
        }
        self.output.decode(self.snapshot.layout(), &self.columns)
    }
}
