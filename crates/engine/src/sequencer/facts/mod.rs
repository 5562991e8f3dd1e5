//! Facts about what was committed, which outlive the engine.
//!
//! A fact is one file here, and one [`Persisted`]: a checkpoint saves it, an engine that resumes from the checkpoint restores it,
//! and each commit is applied to it, also when it is replayed. [`State`](super::state::State) lists them. Facts that are kept
//! elsewhere, as rows that sources refused and lengths of outputs, are [`Persisted`] as well
//! ([`durable::persisted`](crate::durable::persisted)).
//!
//! | fact | contents |
//! |---|---|
//! | [`clock`] | the time that the relation of the clock has |
//! | [`time`] | the time of the last epoch |
//! | [`definitions`] | the statements that made the existing relations |
//! | [`comments`] | the comments on relations, columns and indexes |
//! | [`paused`] | the tables whose sources pause |
//! | [`roles`] | the roles, and their rights |
//! | [`failed`] | which relations have failed |
//! | [`changed`] | which tables have been changed |
//! | [`positions`] | how far inputs were read |
//! | [`committed`] | the keys of transactions, with [`owned_keys`] |
//! | [`sequences`] | how far sequences have come |
//! | [`waterlines`] | how far rows may come late |

mod changed;
mod clock;
mod comments;
mod committed;
mod definitions;
mod failed;
mod owned_keys;
mod paused;
mod positions;
mod roles;
mod sequences;
mod time;
mod waterlines;

use std::collections::BTreeMap;

use alluvium_trace::Epoch;
pub(super) use changed::ChangedTables;
pub(super) use clock::{Clock, RunningClock};
pub(crate) use comments::{Comments, Said, with_columns};
pub(super) use committed::CommittedKeys;
pub(super) use definitions::DefinedRelations;
pub(super) use failed::FailedRelations;
pub use owned_keys::owned_key;
pub(super) use paused::PausedSources;
pub(super) use positions::Positions;
pub(super) use sequences::RecordedSequences;
pub(super) use time::LastTime;
pub(crate) use waterlines::{LateRows, TableWaterlines};
pub(super) use waterlines::{Raised, Sifted, Waterlines};

use super::state::Kept;
use crate::changes::TableChange;
use crate::clock::Moment;
use crate::durable::checkpoint::Checkpoint;
use crate::durable::portion::{InputName, SavedPosition};
use crate::error::Result;
use crate::worker::DataflowId;

/// A fact about what was committed, which outlives the engine.
pub(crate) trait Persisted {
    /// Its part of a checkpoint as of the last epoch. The caller holds the lock that orders epochs, so work that takes
    /// time is left to what this returns.
    fn save(&self, at: &SavePoint<'_>) -> Box<dyn Saving>;

    /// Restores it from a checkpoint, and takes that part out. No relation is there yet.
    fn restore(&mut self, checkpoint: &mut Checkpoint) -> Result<()>;

    /// A commit makes an epoch.
    fn apply(&mut self, _commit: &Applied<'_>, _effects: &mut Effects) -> Result<()> {
        Ok(())
    }
}

/// The part of a checkpoint that saves a fact.
pub(crate) trait Saving {
    /// All workers have pinned what they keep.
    fn pinned(&self) {}

    /// Puts it into the checkpoint. Everything up to the checkpoint's epoch is durable.
    fn finish(self: Box<Self>, checkpoint: &mut Checkpoint) -> Result<()>;
}

impl<F: FnOnce(&mut Checkpoint)> Saving for F {
    fn finish(self: Box<Self>, checkpoint: &mut Checkpoint) -> Result<()> {
        self(checkpoint);
        Ok(())
    }
}

/// When facts are saved.
pub(crate) struct SavePoint<'a> {
    /// The last epoch.
    pub(crate) epoch: Epoch,
    /// The dataflows, apart from those of subscriptions.
    pub(super) dataflows: &'a BTreeMap<DataflowId, Kept>,
}

/// A commit that makes an epoch.
pub(crate) struct Applied<'a> {
    pub(super) epoch: Epoch,
    pub(super) time: Moment,
    /// The tables that it changes.
    pub(super) tables: &'a [DataflowId],
    /// Its effect on the waterlines of tables.
    pub(super) sifted: &'a [Sifted],
    /// The input that it reads, and where that has come to with it, if it can go on from there.
    pub(super) end: Option<(&'a InputName, &'a SavedPosition)>,
    /// The key of the transaction.
    pub(super) key: Option<&'a str>,
    /// The table that is created with its rows.
    pub(super) completes: Option<&'a str>,
}

/// Further effects of a commit.
#[derive(Default)]
pub(crate) struct Effects {
    /// Changes of tables of the engine's own, in the same epoch.
    pub(super) changes: Vec<(DataflowId, TableChange)>,
    /// Waterlines that rise with the next epoch.
    pub(super) raised: Raised,
    /// Other tables whose readers may have something to do in this epoch.
    pub(super) risen: Vec<DataflowId>,
}
