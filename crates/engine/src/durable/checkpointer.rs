//! Taking checkpoints.
//!
//! 1. All workers pin the state of their dataflows at the same epoch. They finish the epochs in flight for that, and continue at
//!    once: a pin is a list of batches, and batches never change.
//!    Outputs of changes are marked after that epoch.
//! 2. Batches that are only in memory are copied to a blob for each worker. Batches in files, and those that were copied
//!    before, are there already.
//! 3. When all changes up to the mark are durable in each output, the new blobs are made durable, and a manifest is published
//!    that names all.
//! 4. Checkpoints are given up but for the last ones, with the blobs that only they name, and the journal up to where
//!    replaying from the oldest one begins.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Thread;
use std::time::Instant;

use alluvium_storage::{ClaimedStorage, Manifests, Position, Published, Storage};
use alluvium_trace::memory::StateContext;
use alluvium_trace::{Batch, BlobRange, Epoch, Pack};
use parking_lot::Mutex;

use super::Durable;
use super::checkpoint::{
    Checkpoint, DataflowName, SavedBatch, SavedDataflow, SavedShard, SavedState,
};
use super::followed::Following;
use super::persisted::ConnectorFacts;
use crate::error::{Error, Result};
use crate::log;
use crate::sequencer::{Kept, Pin, Sequencer};
use crate::worker::{DataflowId, Shard};

/// Takes the checkpoints of an engine, one at a time.
pub(crate) struct Checkpointer {
    engine: Pinned,
    manifests: Arc<dyn Manifests>,
    blobs: Arc<ClaimedStorage>,
    context: StateContext,
    /// How many are kept.
    retained: u32,
    /// Whether the engine ends.
    is_ending: Arc<AtomicBool>,
    last: Mutex<Last>,
}

/// The parts of an engine that a checkpoint is taken of.
pub(crate) struct Pinned {
    pub(crate) sequencer: Arc<Sequencer>,
    /// Held while relations and outputs come and go.
    pub(crate) definitions: Arc<Mutex<()>>,
    pub(crate) connectors: ConnectorFacts,
}

/// The parts of a checkpoint.
struct Taken {
    pin: Pin,
    /// The state of each worker.
    shards: Vec<BTreeMap<DataflowId, Shard>>,
}

/// The checkpoints that are kept.
#[derive(Default)]
pub(crate) struct Last {
    /// The number of the last one; 0 if there is none.
    pub(crate) number: u64,
    /// The first record of the journal that it does not have.
    pub(crate) end: u64,
    /// The number of workers that its state is partitioned for.
    pub(crate) workers: u32,
    /// Where replaying from each begins.
    pub(crate) replays: BTreeMap<u64, u64>,
    /// Those of an older version of the format.
    pub(crate) older: BTreeSet<u64>,
    /// Its blobs, which are durable.
    pub(crate) blobs: HashSet<String>,
}

impl Checkpointer {
    /// Takes checkpoints of a running engine, of which these are there.
    pub(crate) fn new(
        engine: Pinned,
        manifests: Arc<dyn Manifests>,
        blobs: Arc<ClaimedStorage>,
        context: StateContext,
        retained: u32,
        last: Last,
    ) -> Self {
        // It does not wait for room on the disk: the journal has everything, and a later one may succeed.
        let (context, last) = (context.for_job(&Arc::new(AtomicBool::new(true))), Mutex::new(last));
        Self { engine, manifests, blobs, context, retained, is_ending: Arc::default(), last }
    }

    /// Ends the one that is being taken, if it has not been published.
    pub(crate) fn end(&self) {
        self.is_ending.store(true, Ordering::Relaxed);
    }

    /// Wakes a thread when the first byte is recorded after a checkpoint, and when so many are.
    pub(crate) fn wake_at(&self, bytes: u64, thread: Thread) {
        self.durable().wake_at(bytes, thread);
    }

    /// Whether the engine has stopped.
    pub(crate) fn has_stopped(&self) -> bool {
        self.engine.sequencer.poison().is_spread()
    }

    /// How many bytes were recorded since the last checkpoint.
    pub(crate) fn recorded(&self) -> u64 {
        self.durable().recorded()
    }

    /// Takes a checkpoint, unless nothing was recorded since the last one, which is of as many workers, and all that are kept
    /// are of the newest version. If the storage fails, and not because it is full, the engine stops: it is unknown what is on the
    /// disk.
    pub(crate) fn take(&self) -> Result<()> {
        let _span = log::call!("checkpoint");
        let taken = catch_unwind(AssertUnwindSafe(|| self.take_one()));
        let taken = taken.unwrap_or_else(|panic| {
            Err(self.engine.sequencer.poison().spread_panic("a checkpoint", &*panic))
        });
        taken.inspect_err(|error| {
            // One that was being taken when the engine ends is not missed.
            if !self.is_ending.load(Ordering::Relaxed) {
                log::checkpoint_failed(error);
            }
        })
    }

    fn take_one(&self) -> Result<()> {
        let mut last = self.last.lock();
        let begun = Instant::now();
        let Taken { mut pin, shards } = self.pin()?;
        self.durable().forget_recorded();
        let is_same = (pin.end.0, pin.workers) == (last.end, last.workers);
        if last.number > 0 && is_same && last.older.is_empty() {
            return Ok(());
        }
        for shards in &shards {
            // A candidate is in no checkpoint, and a temporary table in none ever.
            let kept = shards.iter().filter(|(id, _)| pin.kept.contains_key(id));
            self.copy(kept.map(|(_, shard)| shard))?;
        }
        // A manifest must not name a position that the journal may lose.
        self.durable().sync_all()?;
        // Outputs wait for epochs to be durable, and may have no other thread to make them so.
        self.engine.sequencer.sync(pin.epoch)?;
        let failures = self.engine.sequencer.failures();
        // Failed dataflows are filled again, if at all.
        pin.kept.retain(|id, _| failures.get(*id).is_none());
        let checkpoint = checkpoint(pin, &shards, self.retained)?;
        let bytes = checkpoint.encode()?;
        let number = last.number + 1;
        self.blobs.claim(number, checkpoint.blobs.iter().cloned());
        match self.publish(number, &bytes, &checkpoint.blobs, &last) {
            Ok(Published::Done) => {}
            Ok(Published::Conflict { current }) => {
                // Another engine writes to the same directory: if both recorded further commits, one part would be lost.
                let error = failed(&format_args!(
                    "manifest {current} is of another engine, which writes to the same directory"
                ));
                self.engine.sequencer.poison().spread(error.to_string());
                return Err(error);
            }
            Err(error) => {
                // After any other failure it is unknown what is published.
                if let alluvium_storage::Error::Full { .. } = error
                    && self.manifests.current().is_ok()
                {
                    self.blobs.release(number).map_err(|error| self.fail(&error))?;
                }
                return Err(self.fail(&error));
            }
        }
        log::checkpoint_taken(number, checkpoint.epoch, checkpoint.blobs.len(), begun.elapsed());
        last.number = number;
        (last.end, last.workers) = (checkpoint.end, checkpoint.workers);
        last.replays.insert(number, checkpoint.replay);
        last.blobs = checkpoint.blobs.into_iter().collect();
        self.release(&mut last).map_err(|error| self.fail(&error))
    }

    /// The error of storage that failed.
    fn fail(&self, error: &alluvium_storage::Error) -> Error {
        let is_passing = match error {
            alluvium_storage::Error::Full { .. } => true,
            _ => self.is_ending.load(Ordering::Relaxed),
        };
        let error = failed(error);
        if !is_passing {
            self.engine.sequencer.poison().spread(error.to_string());
        }
        error
    }

    /// The state of all workers at the last epoch, and all facts.
    fn pin(&self) -> Result<Taken> {
        let Pinned { sequencer, definitions, connectors } = &self.engine;
        let following = self.durable().following();
        let _replayed = following.map(Following::hold);
        // Relations and outputs neither come nor go meanwhile.
        let _definitions = definitions.lock();
        let pin = sequencer.pin(&connectors.list())?;
        let mut shards = vec![BTreeMap::new(); sequencer.workers()];
        for _ in 0..shards.len() {
            let Ok((worker, pinned)) = pin.shards.recv() else {
                sequencer.poison().check()?;
                return Err(failed(&"a worker has ended"));
            };
            shards[worker] = pinned;
        }
        pin.facts.iter().for_each(|fact| fact.pinned());
        Ok(Taken { pin, shards })
    }

    fn durable(&self) -> &Durable {
        self.engine.sequencer.durable()
    }

    /// Copies batches that are only in memory to a blob.
    fn copy<'a>(&self, shards: impl Iterator<Item = &'a Shard>) -> Result<()> {
        let batches = shards.flat_map(|shard| &shard.states).flat_map(|(_, batches)| batches);
        let mut pack: Option<Pack<Epoch>> = None;
        for batch in batches.filter(|batch| batch.stored().is_none()) {
            if self.is_ending.load(Ordering::Relaxed) {
                return Err(failed(&"the engine ends"));
            }
            let pushed = match &mut pack {
                Some(pack) => pack.push(batch),
                None => Pack::create(&self.context).and_then(|new| pack.insert(new).push(batch)),
            };
            pushed.map_err(|error| self.fail(&error))?;
        }
        pack.map_or(Ok(()), Pack::seal).map_err(|error| self.fail(&error))
    }

    fn publish(
        &self,
        number: u64,
        bytes: &[u8],
        blobs: &[String],
        last: &Last,
    ) -> alluvium_storage::Result<Published> {
        let new = blobs.iter().filter(|name| !last.blobs.contains(*name));
        self.blobs.barrier(&new.map(String::as_str).collect::<Vec<_>>())?;
        self.manifests.publish(number, bytes)
    }

    /// Gives up old checkpoints.
    fn release(&self, last: &mut Last) -> alluvium_storage::Result<()> {
        self.manifests.retain(self.retained as usize)?;
        let retained = self.manifests.list()?;
        let Some(oldest) = retained.first() else { return Ok(()) };
        last.replays = last.replays.split_off(oldest);
        last.older = last.older.split_off(oldest);
        self.blobs.release_before(*oldest)?;
        match last.replays.values().min() {
            Some(replay) => self.durable().release(Position(*replay)),
            None => Ok(()),
        }
    }
}

fn failed(error: &dyn Display) -> Error {
    Error::source(format!("no checkpoint could be taken: {error}"))
}

/// The checkpoint of all facts and of the state of the workers, all of which is in blobs.
fn checkpoint(
    pin: Pin,
    shards: &[BTreeMap<DataflowId, Shard>],
    retained: u32,
) -> Result<Checkpoint> {
    let mut blobs = Blobs::default();
    let mut dataflows = Vec::with_capacity(pin.kept.len());
    for (id, Kept { key, since, built_for }) in pin.kept {
        // A view or an index that is being filled is filled again after a restart.
        let is_full = shards.iter().all(|shard| shard.contains_key(&id));
        if !is_full && !matches!(key.name, DataflowName::Output(_)) {
            continue;
        }
        let mut saved = Vec::with_capacity(shards.len());
        for shard in shards {
            let Some(shard) = shard.get(&id) else {
                return Err(failed(&format_args!("{:?} is not there", key.name)));
            };
            saved.push(blobs.shard(shard)?);
        }
        let built_for = built_for.map(|workers| workers as u32);
        dataflows.push(SavedDataflow { key, since, built_for, shards: saved });
    }
    let mut checkpoint = Checkpoint {
        epoch: pin.epoch,
        workers: pin.workers,
        retained,
        end: pin.end.0,
        replay: pin.replay.0,
        blobs: blobs.names,
        dataflows,
        ..Checkpoint::default()
    };
    pin.facts.into_iter().try_for_each(|fact| fact.finish(&mut checkpoint))?;
    Ok(checkpoint)
}

/// The blobs of a checkpoint.
#[derive(Default)]
struct Blobs {
    names: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl Blobs {
    fn shard(&mut self, Shard { refused, late, states }: &Shard) -> Result<SavedShard> {
        let state = |(name, batches): &(_, Vec<Batch<Epoch>>)| {
            let alluvium_dataflow::state::states::StateName { id, fingerprint, operator, number } =
                name;
            Ok(SavedState {
                id: id.clone(),
                fingerprint: fingerprint.clone(),
                operator: operator.clone(),
                number: *number,
                batches: batches.iter().map(|batch| self.batch(batch)).collect::<Result<_>>()?,
            })
        };
        let states = states.iter().map(state).collect::<Result<_>>()?;
        Ok(SavedShard { refused: *refused, states, late: *late })
    }

    fn batch(&mut self, batch: &Batch<Epoch>) -> Result<SavedBatch> {
        let Some(BlobRange { blob, range }) = batch.stored() else {
            return Err(failed(&"a batch is in no blob"));
        };
        let blob = match self.numbers.get(blob.name()) {
            Some(number) => *number,
            None => {
                let number = self.names.len() as u32;
                self.names.push(blob.name().to_owned());
                self.numbers.insert(blob.name().to_owned(), number);
                number
            }
        };
        Ok(SavedBatch {
            blob,
            range: (range.start, range.end),
            upper: batch.description().upper().first().copied(),
            since: batch.description().since().first().copied(),
        })
    }
}
