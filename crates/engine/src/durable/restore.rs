//! Reading a checkpoint.

use std::collections::HashMap;
use std::fmt::Display;
use std::sync::Arc;

use alluvium_dataflow::state::states::{Saved, Share, StateName};
use alluvium_sql::physical::PhysicalPlan;
use alluvium_storage::{
    Blob, BlobSlice, ClaimedStorage, Error as StorageError, Journal, Manifests, Position, Storage,
    TemporaryBlob,
};
use alluvium_trace::memory::StateContext;
use alluvium_trace::{Batch, BlobRange, Epoch};
use timely::progress::Antichain;

use super::checkpoint::{
    self, Checkpoint, DataflowKey, DataflowName, SavedBatch, SavedDataflow, SavedShard,
};
use super::checkpointer::Last;
use super::damage;
use crate::clock::Moment;
use crate::error::{Error, Result};
use crate::sequencer::Kept;
use crate::worker::{Resumed, Shard};

/// The state that an engine starts with.
pub(crate) struct Restored {
    /// The checkpoint, without its dataflows.
    pub(crate) checkpoint: Checkpoint,
    pub(crate) dataflows: HashMap<DataflowName, RestoredDataflow>,
}

/// A dataflow of a checkpoint, or one whose place another takes.
pub(crate) struct RestoredDataflow {
    /// The fingerprint of its plan.
    fingerprint: String,
    /// As in [`SavedDataflow`](super::checkpoint::SavedDataflow).
    pub(crate) since: Epoch,
    /// As in [`SavedDataflow`](super::checkpoint::SavedDataflow).
    built_for: Option<usize>,
    /// The state of each worker.
    shards: Vec<Shard>,
}

impl RestoredDataflow {
    /// The state of a running dataflow on each worker. Changes before the epoch `first` are forgotten.
    pub(crate) fn of(kept: &Kept, first: Epoch, shards: Vec<Shard>) -> Self {
        Self {
            fingerprint: kept.key.fingerprint.clone(),
            since: kept.since.max(first),
            built_for: kept.built_for,
            shards,
        }
    }

    /// The same bytes, for a plan that says the same in other words.
    pub(crate) fn of_plan(mut self, fingerprint: &str) -> Self {
        let states = self.shards.iter_mut().flat_map(|shard| &mut shard.states);
        for (state, _) in states.filter(|(state, _)| state.fingerprint == self.fingerprint) {
            state.fingerprint = fingerprint.to_owned();
        }
        Self { fingerprint: fingerprint.to_owned(), ..self }
    }

    /// The same bytes, for a dataflow that keeps the same under other names of relations; `None` if it keeps something else.
    pub(crate) fn of_names(mut self, plan: &PhysicalPlan) -> Option<Self> {
        let of_id: HashMap<&str, String> =
            plan.states().map(|state| (&*state.id, state.fingerprint.to_string())).collect();
        for (name, _) in self.shards.iter_mut().flat_map(|shard| &mut shard.states) {
            name.fingerprint = of_id.get(&*name.id)?.clone();
        }
        Some(Self { fingerprint: plan.fingerprint().to_string(), ..self })
    }

    /// The initial state of each of `workers` workers, who have everything before `upper`. With another number of workers than before each
    /// takes its share of the state of all of those. Returns also the number it was first built for, if its rows have ever been
    /// repartitioned.
    pub(crate) fn deal(self, workers: usize, upper: Epoch) -> (Option<usize>, Vec<Resumed>) {
        let Self { built_for, shards, .. } = self;
        if shards.len() == workers {
            let resumed = shards.into_iter().map(|Shard { refused, late, states }| {
                let batches = states.into_iter().map(|(name, batches)| (name, vec![batches]));
                let saved = Saved { upper, batches: batches.collect(), share: None, built_for };
                Resumed { refused, late, saved }
            });
            return (built_for, resumed.collect());
        }
        let built_for = Some(built_for.unwrap_or(shards.len()));
        let (mut refused, mut late) = (0, 0);
        let mut batches: HashMap<StateName, Vec<_>> = HashMap::new();
        for shard in shards {
            refused += shard.refused;
            late += shard.late;
            for (name, kept) in shard.states {
                batches.entry(name).or_default().push(kept);
            }
        }
        let resumed = (0..workers).map(|worker| {
            let share = Some(Share { worker, workers });
            let saved = Saved { upper, batches: batches.clone(), share, built_for };
            // The sums of all workers' counts are kept.
            let (refused, late) = (std::mem::take(&mut refused), std::mem::take(&mut late));
            Resumed { refused, late, saved }
        });
        (built_for, resumed.collect())
    }
}

impl Restored {
    /// The epoch that an engine starts after, and its time.
    pub(crate) fn start(&self, now: Moment) -> (Epoch, Moment) {
        (self.checkpoint.epoch, self.checkpoint.time.unwrap_or(now))
    }

    /// Whether the state is partitioned for so many workers.
    pub(crate) fn is_for(&self, workers: usize) -> bool {
        self.checkpoint.workers as usize == workers
    }

    /// Fails if a table has not taken the rows that it had: their bytes mean something else than it makes of them.
    pub(crate) fn check_taken(&self) -> Result<()> {
        let has_rows = |name: &&String| {
            let left = self.dataflows.get(&DataflowName::Relation((*name).clone()));
            let states = left.iter().flat_map(|left| &left.shards).flat_map(|shard| &shard.states);
            states.into_iter().any(|(_, batches)| !batches.is_empty())
        };
        match self.checkpoint.changed.iter().find(has_rows) {
            None => Ok(()),
            Some(table) => Err(Error::Start {
                message: format!(
                    "the rows of \"{table}\" were written by another version of Alluvium, which keeps them in another way: open \
                     the directory with that version"
                ),
            }),
        }
    }

    /// The state of a dataflow on each worker, unless it was another one.
    pub(crate) fn take(&mut self, key: &DataflowKey) -> Option<RestoredDataflow> {
        match self.dataflows.get(&key.name)?.fingerprint == key.fingerprint {
            true => self.dataflows.remove(&key.name),
            false => None,
        }
    }
}

/// Claims the blobs of all checkpoints that are kept, and reads the last one, if there is one. Deletes all other blobs.
pub(crate) fn restore(
    journal: &dyn Journal,
    manifests: &dyn Manifests,
    blobs: &Arc<ClaimedStorage>,
    context: &StateContext,
) -> Result<(Option<Restored>, Last)> {
    let mut last = Last::default();
    let mut current = None;
    let read = |number: u64| {
        let bytes = manifests.read(number).map_err(|error| failed(&damage::of_storage(&error)))?;
        Checkpoint::read(&bytes)
            .map_err(|what| failed(&format_args!("{}: {what}", manifests.place(number))))
    };
    let list = || manifests.list().map_err(|error| failed(&damage::of_storage(&error)));
    if let Some(number) = list()?.last() {
        // One that was to be deleted when the last engine ended may have lost blobs.
        let retained = read(*number)?.1.retained as usize;
        manifests.retain(retained).map_err(|error| failed(&damage::of_storage(&error)))?;
    }
    for number in list()? {
        let (version, checkpoint) = read(number)?;
        blobs.claim(number, checkpoint.blobs.iter().cloned());
        last.replays.insert(number, checkpoint.replay);
        if version != checkpoint::VERSION {
            last.older.insert(number);
        }
        current = Some((number, checkpoint));
    }
    check_journal(journal, manifests, current.as_ref())?;
    let restored = match current {
        None => None,
        Some((number, mut checkpoint)) => {
            (last.number, last.end) = (number, checkpoint.end);
            last.workers = checkpoint.workers;
            last.blobs = checkpoint.blobs.iter().cloned().collect();
            let manifest = manifests.place(number);
            let opened = Opened::open(&checkpoint.blobs, &manifest, blobs, context)?;
            let mut dataflows = HashMap::new();
            for dataflow in std::mem::take(&mut checkpoint.dataflows) {
                let SavedDataflow { key, since, built_for, shards } = dataflow;
                let DataflowKey { name, fingerprint } = key;
                let shards = shards.into_iter().map(|shard| opened.shard(shard));
                let shards = shards.collect::<Result<Vec<_>>>()?;
                let built_for = built_for.map(|workers| workers as usize);
                dataflows.insert(name, RestoredDataflow { fingerprint, since, built_for, shards });
            }
            Some(Restored { checkpoint, dataflows })
        }
    };
    blobs.sweep().map_err(|error| failed(&damage::of_storage(&error)))?;
    Ok((restored, last))
}

/// Fails unless the journal has what the last checkpoint needs of it.
fn check_journal(
    journal: &dyn Journal,
    manifests: &dyn Manifests,
    current: Option<&(u64, Checkpoint)>,
) -> Result<()> {
    let range = journal.range();
    let what = match current {
        None if range.start == Position(0) => return Ok(()),
        None => format!(
            "the journal begins with {}, and there is no checkpoint with what came before: the manifests are missing; put them \
             back, or restore the directory from a backup",
            journal.place(range.start)
        ),
        Some((_, Checkpoint { replay, end, .. }))
            if (range.start.0..=range.end.0).contains(replay) && *end <= range.end.0 =>
        {
            return Ok(());
        }
        Some((number, Checkpoint { replay, end, .. })) => {
            let missing = if *replay < range.start.0 { *replay } else { end.saturating_sub(1) };
            format!(
                "{} is missing, and {} needs it: the journal goes from record {} up to record {}, without that; put the missing \
                 file back, or restore the directory from a backup",
                journal.place(Position(missing)),
                manifests.place(*number),
                range.start,
                range.end
            )
        }
    };
    Err(Error::Start { message: damage::of(&what) })
}

/// The blobs of a checkpoint.
struct Opened<'a> {
    blobs: Vec<(Arc<dyn Blob>, TemporaryBlob)>,
    context: &'a StateContext,
}

impl<'a> Opened<'a> {
    fn open(
        names: &[String],
        manifest: &str,
        storage: &Arc<ClaimedStorage>,
        context: &'a StateContext,
    ) -> Result<Self> {
        let open = |name: &String| {
            let blob = storage.open(name).map_err(|error| {
                let needed_by = manifest.to_owned();
                failed(&damage::of_storage(&match error {
                    StorageError::Missing { place, .. } => StorageError::Lost { place, needed_by },
                    error => error,
                }))
            })?;
            let owner: Arc<dyn Storage> = storage.clone();
            Ok((blob.clone(), TemporaryBlob::new(owner, blob)))
        };
        Ok(Self { blobs: names.iter().map(open).collect::<Result<_>>()?, context })
    }

    fn shard(&self, SavedShard { refused, states, late }: SavedShard) -> Result<Shard> {
        let mut read = Vec::with_capacity(states.len());
        for state in states {
            let name = StateName {
                id: state.id,
                fingerprint: state.fingerprint,
                operator: state.operator,
                number: state.number,
            };
            let batches = state.batches.iter().map(|batch| self.batch(batch));
            read.push((name, batches.collect::<Result<_>>()?));
        }
        Ok(Shard { refused, late, states: read })
    }

    fn batch(&self, saved: &SavedBatch) -> Result<Batch<Epoch>> {
        let Some((blob, owner)) = self.blobs.get(saved.blob as usize) else {
            return Err(failed(&"a batch is in a blob that the checkpoint does not name"));
        };
        let range = saved.range.0..saved.range.1;
        let file: Arc<dyn Blob> = match range == (0..blob.len()) {
            true => blob.clone(),
            false => {
                let slice = BlobSlice::new(blob.clone(), range.clone());
                Arc::new(slice.map_err(|error| failed(&damage::of_storage(&error)))?)
            }
        };
        let owner = BlobRange { blob: owner.clone(), range };
        let batch = Batch::open_owned(file, owner, self.context.budget());
        let batch: Batch<Epoch> = batch.map_err(|error| failed(&damage::of_file(&error)))?;
        let frontier = |epoch: Option<Epoch>| -> Antichain<Epoch> { epoch.into_iter().collect() };
        let lower = batch.description().lower().clone();
        let (upper, since) = (frontier(saved.upper), frontier(saved.since));
        Ok(batch.spanning(lower, upper, since))
    }
}

fn failed(error: &dyn Display) -> Error {
    Error::Start { message: format!("the last checkpoint cannot be read: {error}") }
}
