//! What the sequencer orders.

use std::collections::{BTreeMap, BTreeSet};

use alluvium_sql::plan::LowerBound;
use alluvium_sql::planner::CLOCK;
use alluvium_trace::Epoch;

use super::Stream;
use super::clock::RunningClock;
use super::committed::CommittedKeys;
use super::facts::FailedRelations;
use super::waterlines::Waterlines;
use crate::clock::Moment;
use crate::durable::checkpoint::DataflowKey;
use crate::durable::portion::{InputName, SavedPosition};
use crate::durable::record::{Record, Recorded};
use crate::durable::restore::{Restored, RestoredDataflow};
use crate::worker::DataflowId;

/// Guarded by the lock under which everything is broadcast.
#[derive(Default)]
pub(super) struct State {
    /// The time of the last epoch; `None` before the first.
    pub(super) time: Option<Moment>,
    pub(super) next_dataflow: u64,
    /// The tables that have been changed since they were made.
    pub(super) changed: BTreeSet<DataflowId>,
    /// How far inputs were read, if they can be read from there.
    pub(super) positions: BTreeMap<InputName, SavedPosition>,
    pub(super) committed: CommittedKeys,
    pub(super) clock: Option<RunningClock>,
    pub(super) waterlines: Waterlines,
    /// The bounds of the state of dataflows that are the least of several waterlines.
    pub(super) leasts: BTreeMap<DataflowId, Vec<LowerBound>>,
    /// The dataflows, apart from those of subscriptions.
    pub(super) kept: BTreeMap<DataflowId, Kept>,
    /// Nothing before this epoch is known of dataflows that are not restored: it is that of the checkpoint.
    pub(super) since: Epoch,
    /// The definitions of all relations, in order, if there is a journal.
    pub(super) definitions: Vec<(String, Record)>,
    pub(super) failed: FailedRelations,
    /// What the dataflows of a checkpoint start with, until all of them are there again.
    pub(super) restored: Option<Restored>,
}

/// A dataflow that is part of checkpoints.
#[derive(Clone)]
pub(crate) struct Kept {
    pub(crate) key: DataflowKey,
    /// Its changes behind this epoch are those of the relation; earlier ones are of how it was built.
    pub(crate) since: Epoch,
    /// For how many workers it was first built, if its rows were dealt out to others since.
    pub(crate) built_for: Option<usize>,
}

impl State {
    /// Notes what a statement has defined, in the place of what was known of the relation, also by the name that it had before,
    /// or in addition to that.
    pub(super) fn define(&mut self, Recorded { name, before, whole, adds, .. }: &Recorded) {
        let is_replaced = |known: &String| known == name || Some(known) == before.as_ref();
        self.definitions.retain(|(known, _)| *adds || !is_replaced(known));
        self.definitions.push((name.clone(), whole.clone()));
        match before {
            Some(before) => self.failed.rename(before, name),
            // A definition that is made again is the one that has failed.
            None if *adds || self.restored.is_some() => {}
            None => self.failed.forget(name),
        }
    }

    /// What has been said of a relation is no more.
    pub(super) fn forget(&mut self, name: &str) {
        self.definitions.retain(|(known, _)| known != name);
        self.failed.forget(name);
    }

    /// Notes that a table which is created with its rows has them.
    pub(super) fn complete_table(&mut self, table: &str) {
        let definitions = self.definitions.iter_mut().filter(|(known, _)| known == table);
        definitions.for_each(|(_, definition)| definition.complete());
    }

    /// Notes that the clock is a relation.
    pub(super) fn define_clock(&mut self, now: Moment) {
        self.definitions.push((CLOCK.to_owned(), Record::Clock { now }));
    }

    /// What a dataflow starts with on each worker, if it is in a checkpoint.
    pub(super) fn saved(&mut self, key: &DataflowKey) -> Option<RestoredDataflow> {
        self.restored.as_mut()?.take(key)
    }

    /// Whether rows have passed through a table that does not keep them.
    pub(super) fn has_passed(&self, stream: &Stream) -> bool {
        let restored = self.restored.as_ref();
        self.changed.contains(&stream.id)
            || restored.is_some_and(|restored| restored.checkpoint.changed.contains(&stream.name))
    }
}
