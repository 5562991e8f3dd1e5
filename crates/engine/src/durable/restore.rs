//! Reading a checkpoint.

use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::sync::Arc;

use alluvium_dataflow::states::StateName;
use alluvium_storage::{
    Blob, BlobSlice, ClaimedStorage, Error as StorageError, Journal, Manifests, Position, Storage,
    TemporaryBlob,
};
use alluvium_trace::memory::StateContext;
use alluvium_trace::{Batch, BlobRange, Epoch};
use timely::progress::Antichain;

use super::checkpoint::{
    Checkpoint, DataflowKey, DataflowName, SavedBatch, SavedShard, SavedWaterlines,
};
use super::checkpointer::Last;
use super::damage;
use crate::clock::Moment;
use crate::error::{Error, Result};
use crate::worker::Shard;

/// What an engine starts with.
pub(crate) struct Restored {
    /// The checkpoint, without its dataflows.
    pub(crate) checkpoint: Checkpoint,
    pub(crate) dataflows: HashMap<DataflowName, RestoredDataflow>,
}

/// A dataflow of a checkpoint.
pub(crate) struct RestoredDataflow {
    /// The fingerprint of its plan.
    fingerprint: String,
    /// As in [`SavedDataflow`](super::checkpoint::SavedDataflow).
    pub(crate) since: Epoch,
    /// What each worker keeps.
    pub(crate) shards: Vec<Shard>,
}

impl Restored {
    /// The epoch that an engine with so many workers starts after, and its time. With as many as before that is the epoch
    /// of the checkpoint. Else it is one or two before: the clock and then the rows of all tables enter again.
    pub(crate) fn start(&self, workers: usize, now: Moment) -> (Epoch, Moment) {
        let Checkpoint { epoch, time, clock, .. } = &self.checkpoint;
        let again = match self.is_for(workers) {
            true => 0,
            false => (u64::from(clock.is_some()) + 1).min(*epoch),
        };
        (epoch - again, time.unwrap_or(now))
    }

    /// Whether the state is dealt out to so many workers.
    pub(crate) fn is_for(&self, workers: usize) -> bool {
        self.checkpoint.workers as usize == workers
    }

    /// Fails if a table has passed rows on that nobody has any more: then views cannot be computed again.
    pub(crate) fn check_rows(&self) -> Result<()> {
        let has_rows = |name: &&String| {
            let dataflow = self.dataflows.get(&DataflowName::Relation((*name).clone()));
            dataflow.is_none_or(|saved| saved.shards.iter().any(|shard| !shard.states.is_empty()))
        };
        match self.checkpoint.changed.iter().find(|name| !has_rows(name)) {
            None => Ok(()),
            Some(table) => {
                let workers = self.checkpoint.workers;
                let message = format!(
                    "the state is of {workers} workers, and cannot be dealt out to another number of them, because the \
                     rows of \"{table}\" are not kept: open it with {workers} workers"
                );
                Err(Error::Start { message })
            }
        }
    }

    /// Takes the waterlines of all tables, with what each worker counts.
    pub(crate) fn waterlines(&mut self) -> Vec<SavedWaterlines> {
        let mut waterlines = std::mem::take(&mut self.checkpoint.waterlines);
        for SavedWaterlines { table, late, .. } in &mut waterlines {
            let dataflow = self.dataflows.get(&DataflowName::Relation(table.clone()));
            let shards = dataflow.into_iter().flat_map(|saved| &saved.shards);
            *late += shards.map(|shard| shard.late).sum::<u64>();
        }
        waterlines
    }

    /// Takes the batches of a relation, of all workers.
    pub(crate) fn batches(&mut self, relation: &str) -> Vec<Batch<Epoch>> {
        let dataflow = self.dataflows.remove(&DataflowName::Relation(relation.to_owned()));
        let shards = dataflow.into_iter().flat_map(|saved| saved.shards);
        shards.flat_map(|shard| shard.states).flat_map(|(_, batches)| batches).collect()
    }

    /// What each worker keeps of a dataflow, unless it was another one.
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
    let mut last = Last { number: 0, end: 0, replays: Default::default(), blobs: HashSet::new() };
    let mut current = None;
    let read = |number: u64| {
        let bytes = manifests.read(number).map_err(|error| failed(&damage::of_storage(&error)))?;
        Checkpoint::decode(&bytes)
            .map_err(|what| failed(&format_args!("{}: {what}", manifests.place(number))))
    };
    let list = || manifests.list().map_err(|error| failed(&damage::of_storage(&error)));
    if let Some(number) = list()?.last() {
        // One that was to be deleted when the last engine ended may have lost blobs.
        let retained = read(*number)?.retained as usize;
        manifests.retain(retained).map_err(|error| failed(&damage::of_storage(&error)))?;
    }
    for number in list()? {
        let checkpoint = read(number)?;
        blobs.claim(number, checkpoint.blobs.iter().cloned());
        last.replays.insert(number, checkpoint.replay);
        current = Some((number, checkpoint));
    }
    check_journal(journal, manifests, current.as_ref())?;
    let restored = match current {
        None => None,
        Some((number, mut checkpoint)) => {
            (last.number, last.end) = (number, checkpoint.end);
            last.blobs = checkpoint.blobs.iter().cloned().collect();
            let manifest = manifests.place(number);
            let opened = Opened::open(&checkpoint.blobs, &manifest, blobs, context)?;
            let mut dataflows = HashMap::new();
            for dataflow in std::mem::take(&mut checkpoint.dataflows) {
                let (DataflowKey { name, fingerprint }, since) = (dataflow.key, dataflow.since);
                let shards = dataflow.shards.into_iter().map(|shard| opened.shard(shard));
                let shards = shards.collect::<Result<Vec<_>>>()?;
                dataflows.insert(name, RestoredDataflow { fingerprint, since, shards });
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
