//! The one version of the database that a transaction reads.
//!
//! It has everything that anyone knew to be committed when the transaction first read. Later the transaction may move to the last
//! version. Each relation is pinned when it is first read. Until
//! then nothing is compacted beyond the epoch, for [`MOST_HELD`] at most.

use std::collections::BTreeMap;
use std::time::Duration;

use alluvium_dataflow::state::snapshot::Snapshot;
use alluvium_trace::Epoch;

use crate::error::{Conflict, Error, Result};
use crate::query::Reader;
use crate::sequencer::Observed;
use crate::worker::{DataflowId, Durable, Held, Published};

/// For how long a relation that has not been read yet can still be read as of an epoch.
const MOST_HELD: Duration = Duration::from_secs(30);

/// A version, with the relations of it that have been read.
pub(super) struct ReadVersion {
    held: Held,
    /// From an epoch on that is not later.
    observed: Observed,
    /// Whether those who learn of it learn of a later epoch as well.
    is_superseded: bool,
    pinned: BTreeMap<DataflowId, Vec<Published>>,
}

/// The published state of dataflows, by worker.
pub(super) type Parts = Vec<Vec<Published>>;

impl ReadVersion {
    /// A version that has all that is reported, of which dataflows are pinned, and those of `others` that can be read. Waits until it is
    /// computed in these, and durable if it has to be. `None` if one of the first is gone.
    pub(super) fn reported(
        reader: &Reader,
        relations: (&[DataflowId], &[DataflowId]),
        durable: Durable,
    ) -> Result<Option<(Self, Parts)>> {
        let observed = reader.sequencer.observe_reported();
        // Later reads of the transaction do not wait for the disk either.
        let durable = match reader.progress.is_durable(observed.from) {
            true => Durable::Yes,
            false => durable,
        };
        Self::from(reader, observed, relations, durable)
    }

    /// As [`ReadVersion::reported`], the last version.
    pub(super) fn last(
        reader: &Reader,
        relations: (&[DataflowId], &[DataflowId]),
        durable: Durable,
    ) -> Result<Option<(Self, Parts)>> {
        Self::from(reader, reader.sequencer.observe_last(), relations, durable)
    }

    fn from(
        reader: &Reader,
        observed: Observed,
        (ids, others): (&[DataflowId], &[DataflowId]),
        durable: Durable,
    ) -> Result<Option<(Self, Parts)>> {
        if durable == Durable::Yes {
            reader.sequencer.sync(observed.from)?;
        }
        let from = (observed.from, durable);
        let pinned = reader.progress.pin_and_hold(ids, others, from, MOST_HELD)?;
        let Some((held, parts)) = pinned else { return Ok(None) };
        let (pinned, is_superseded) = Default::default();
        let mut version = Self { held, observed, is_superseded, pinned };
        version.keep(ids.iter().chain(others), &parts);
        Ok(Some((version, parts)))
    }

    /// Ends it, after which the transaction has a later epoch.
    pub(super) fn supersede(mut self) {
        self.is_superseded = true;
    }

    /// The epoch.
    pub(super) fn epoch(&self) -> Epoch {
        self.held.epoch
    }

    /// The state of a dataflow as of it, if it has been read.
    pub(super) fn pinned(&self, id: DataflowId) -> Option<&[Published]> {
        self.pinned.get(&id).map(Vec::as_slice)
    }

    /// Dataflows as of it, and those of `others` that can be read. `None` if one of the first is not as old, or cannot be read
    /// any more.
    pub(super) fn pin(
        &mut self,
        reader: &Reader,
        (ids, others): (&[DataflowId], &[DataflowId]),
        durable: Durable,
    ) -> Result<Option<Parts>> {
        if durable == Durable::Yes {
            reader.sequencer.sync(self.epoch())?;
        }
        let is_new = |id: &&DataflowId| !self.pinned.contains_key(id);
        let new: Vec<DataflowId> = ids.iter().filter(is_new).copied().collect();
        let new_others: Vec<DataflowId> = others.iter().filter(is_new).copied().collect();
        // Those that are pinned wait as well: an answer is of durable epochs.
        if !new.is_empty() || !new_others.is_empty() {
            let pinned = reader.progress.pin_held(&self.held, &new, &new_others, durable)?;
            let Some(mut parts) = pinned else { return Ok(None) };
            let is_as_old =
                |parts: &Vec<Published>| parts.iter().all(|part| part.since <= self.epoch());
            let mut of_others = parts.split_off(new.len());
            if !parts.iter().all(is_as_old) {
                return Ok(None);
            }
            of_others.iter_mut().filter(|parts| !is_as_old(parts)).for_each(Vec::clear);
            self.keep(&new, &parts);
            self.keep(&new_others, &of_others);
        }
        let of = |id: &DataflowId| self.pinned.get(id).cloned().unwrap_or_default();
        Ok(Some(ids.iter().chain(others).map(of).collect()))
    }

    fn keep<'a>(
        &mut self,
        ids: impl IntoIterator<Item = &'a DataflowId>,
        parts: &[Vec<Published>],
    ) {
        for (id, parts) in ids.into_iter().zip(parts) {
            if !parts.is_empty() {
                self.pinned.insert(*id, parts.clone());
            }
        }
    }
}

impl Drop for ReadVersion {
    fn drop(&mut self) {
        // The client of a transaction that ends without an epoch knows what it was told.
        if !self.is_superseded {
            self.observed.report(self.epoch());
        }
    }
}

/// The rows that each worker has published.
pub(super) fn snapshots(parts: &[Published]) -> Vec<Snapshot> {
    parts.iter().filter_map(|part| part.contents.clone()).collect()
}

/// The error of a transaction that reads a relation which does not exist as of its version.
pub(super) fn too_new() -> Error {
    Error::conflict(
        Conflict::Serialization,
        "the transaction reads a relation that was created, dropped or altered after it began, or that it could have read only \
         until 30 seconds after it first read; run the transaction again",
    )
}
