//! The state that the sequencer orders.

use std::collections::BTreeMap;

use alluvium_trace::Epoch;

use super::Stream;
use super::facts::{
    Applied, ChangedTables, Clock, Comments, CommittedKeys, DefinedRelations, Effects,
    FailedRelations, LastTime, PausedSources, Persisted, Positions, RecordedSequences, SavePoint,
    Saving, Waterlines,
};
use super::writes::Writes;
use crate::durable::checkpoint::{Checkpoint, DataflowKey};
use crate::durable::record::Recorded;
use crate::durable::restore::{Restored, RestoredDataflow};
use crate::error::Result;
use crate::roles::LiveRoles;
use crate::worker::DataflowId;

/// Guarded by the lock under which everything is broadcast.
#[derive(Default)]
pub(super) struct State {
    pub(super) time: LastTime,
    pub(super) changed: ChangedTables,
    pub(super) positions: Positions,
    pub(super) committed: CommittedKeys,
    pub(super) clock: Clock,
    pub(super) waterlines: Waterlines,
    pub(super) definitions: DefinedRelations,
    pub(super) comments: Comments,
    pub(super) roles: LiveRoles,
    pub(super) paused: PausedSources,
    pub(super) failed: FailedRelations,
    pub(super) recorded_sequences: RecordedSequences,
    pub(super) next_dataflow: u64,
    /// The writes of the last epochs.
    pub(super) writes: Writes,
    /// The dataflows, apart from those of subscriptions.
    pub(super) kept: BTreeMap<DataflowId, Kept>,
    /// Those that are filled to replace others.
    pub(super) candidates: BTreeMap<DataflowId, Kept>,
    /// Nothing before this epoch is known of dataflows that are not restored: it is that of the checkpoint.
    pub(super) since: Epoch,
    /// The initial state of the dataflows of a checkpoint, until all of them are there again.
    pub(super) restored: Option<Restored>,
}

/// A dataflow that is part of checkpoints.
#[derive(Clone)]
pub(crate) struct Kept {
    pub(crate) key: DataflowKey,
    /// Its changes after this epoch are those of the relation; earlier ones come from filling it.
    pub(crate) since: Epoch,
    /// The number of workers it was first built for, if its rows were repartitioned since.
    pub(crate) built_for: Option<usize>,
}

/// All facts of a state that outlive the engine, as references of its kind. Comments, roles and pauses come after the
/// definitions that they are about.
macro_rules! facts {
    ($state:expr) => {{
        let State {
            time,
            changed,
            positions,
            committed,
            clock,
            waterlines,
            definitions,
            comments,
            roles,
            paused,
            failed,
            recorded_sequences: sequences,
            ..
        } = $state;
        [
            time,
            changed,
            positions,
            committed,
            clock,
            waterlines,
            definitions,
            comments,
            roles,
            paused,
            failed,
            sequences,
        ]
    }};
}

impl State {
    fn facts(&self) -> [&dyn Persisted; 12] {
        facts!(self)
    }

    fn facts_mut(&mut self) -> [&mut dyn Persisted; 12] {
        facts!(self)
    }

    /// The part of a checkpoint as of an epoch, the last one, that saves all facts.
    pub(super) fn save(&self, epoch: Epoch) -> Vec<Box<dyn Saving>> {
        let at = SavePoint { epoch, dataflows: &self.kept };
        self.facts().map(|fact| fact.save(&at)).into()
    }

    /// Restores all facts from a checkpoint.
    pub(super) fn restore(&mut self, checkpoint: &mut Checkpoint) -> Result<()> {
        self.facts_mut().into_iter().try_for_each(|fact| fact.restore(checkpoint))
    }

    /// Applies a commit to all facts.
    pub(super) fn apply(&mut self, commit: &Applied<'_>) -> Result<Effects> {
        let mut effects = Effects::default();
        for fact in self.facts_mut() {
            fact.apply(commit, &mut effects)?;
        }
        Ok(effects)
    }

    /// A number for a dataflow.
    pub(super) fn next_id(&mut self) -> DataflowId {
        let id = DataflowId(self.next_dataflow);
        self.next_dataflow += 1;
        id
    }

    /// A candidate is part of checkpoints from now on.
    pub(super) fn promote(&mut self, id: DataflowId) {
        let candidate = self.candidates.remove(&id);
        self.kept.extend(candidate.map(|kept| (id, kept)));
    }

    /// Notes the definition of a statement.
    pub(super) fn define(&mut self, recorded: &Recorded) {
        self.definitions.define(recorded);
        let Recorded { name, before, adds, .. } = recorded;
        match before {
            Some(before) => self.failed.rename(before, name),
            // A definition that is made again is the one that has failed.
            None if *adds || self.restored.is_some() => {}
            None => self.failed.forget(name),
        }
    }

    /// Forgets all definitions of a relation.
    pub(super) fn forget(&mut self, name: &str) {
        self.definitions.forget(name);
        self.comments.forget(name);
        self.roles.change(|roles| roles.forget(name));
        self.paused.set(name, false);
        self.failed.forget(name);
    }

    /// The state that a dataflow starts with on each worker, if it is in a checkpoint.
    pub(super) fn saved(&mut self, key: &DataflowKey) -> Option<RestoredDataflow> {
        self.restored.as_mut()?.take(key)
    }

    /// Whether rows have passed through a table that does not keep them.
    pub(super) fn has_passed(&self, stream: &Stream) -> bool {
        self.changed.has(stream.id) || self.changed.had(&stream.name)
    }
}
