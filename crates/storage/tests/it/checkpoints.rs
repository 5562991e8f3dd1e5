//! A journal and manifests together, as a state uses them, on a computer that crashes at any call.
//!
//! The state is a hash of all records. A checkpoint publishes it with the position up to which it includes the journal,
//! and then releases that. `ALLUVIUM_CRASHES` sets the number of crashes.

use std::sync::Arc;

use alluvium_storage::{
    Error, FileJournal, FileJournalOptions, FileManifests, Journal, Manifests, Position, Published,
    SimulatedDisk,
};
use fastrand::Rng;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::journal::crashes;

/// How many crashes a computer has.
const ROUNDS: u64 = 25;

/// A state that lasts.
struct State {
    journal: FileJournal,
    manifests: FileManifests,
    /// The hash of all records, and how many there are.
    hash: u64,
    records: u64,
}

fn apply(hash: u64, record: &[u8]) -> u64 {
    xxh3_64_with_seed(record, hash)
}

impl State {
    /// The state of the last checkpoint and all records since.
    fn open(computer: &SimulatedDisk, options: FileJournalOptions) -> Result<State, Error> {
        let manifests = FileManifests::open_on(Arc::new(computer.directory("manifests")))?;
        let journal = FileJournal::open_with(Arc::new(computer.directory("journal")), options)?;
        let (mut hash, mut records) = (0, 0);
        if let Some(manifest) = manifests.current()? {
            let [stored, position] =
                [0, 8].map(|at| u64::from_le_bytes(manifest.bytes[at..at + 8].try_into().unwrap()));
            (hash, records) = (stored, position);
        }
        let included = Position(records);
        for found in journal.replay(included)? {
            let (position, record) = found?;
            assert_eq!(position, Position(records));
            (hash, records) = (apply(hash, &record), records + 1);
        }
        // Files that a crash has brought back.
        manifests.retain(2)?;
        journal.release(included)?;
        Ok(State { journal, manifests, hash, records })
    }

    fn append(&mut self, record: &[u8]) -> Result<(), Error> {
        (self.hash, self.records) = (apply(self.hash, record), self.records + 1);
        let position = self.journal.append(record)?;
        assert_eq!(position, Position(self.records - 1));
        Ok(())
    }

    fn sync(&self) -> Result<(), Error> {
        match self.records {
            0 => Ok(()),
            records => self.journal.sync(Position(records - 1)),
        }
    }

    /// Records that a manifest includes must be durable in the journal: else positions would be given twice.
    fn checkpoint(&self) -> Result<(), Error> {
        self.sync()?;
        let next = self.manifests.list()?.last().map_or(1, |last| last + 1);
        let manifest = [self.hash.to_le_bytes(), self.records.to_le_bytes()].concat();
        assert_eq!(self.manifests.publish(next, &manifest)?, Published::Done);
        self.manifests.retain(2)?;
        self.journal.release(Position(self.records))
    }
}

/// The hashes after every number of records, as far as the state may have got, and how many records it has for certain.
struct Reference {
    hashes: Vec<u64>,
    durable: u64,
}

fn use_state(mut state: State, random: &mut Rng, reference: &mut Reference) -> Result<(), Error> {
    for _ in 0..random.u64(1..50) {
        match random.u8(..8) {
            0..5 => {
                let mut record = vec![0; random.usize(..1200)];
                random.fill(&mut record);
                let hash = apply(state.hash, &record);
                reference.hashes.push(hash);
                state.append(&record)?;
            }
            5..7 => state.sync().inspect(|()| reference.durable = state.records)?,
            _ => state.checkpoint().inspect(|()| reference.durable = state.records)?,
        }
    }
    Ok(())
}

fn run(seed: u64) {
    println!("seed {seed}");
    let computer = SimulatedDisk::new(seed);
    let mut random = Rng::with_seed(seed);
    let mut reference = Reference { hashes: vec![0], durable: 0 };
    for round in 0..=ROUNDS {
        let options = FileJournalOptions {
            segment_size: random.u64(600..8000),
            write_ahead: random.usize(..3000),
            queue_size: random.usize(1..2000),
        };
        let call = computer.calls() + random.u64(1..100);
        match random.u8(..2) {
            _ if round == ROUNDS => {}
            0 => computer.fail_from(call),
            _ => computer.fail_at(call),
        }
        match State::open(&computer, options) {
            Ok(state) => {
                let possible = reference.durable..reference.hashes.len() as u64;
                assert!(possible.contains(&state.records), "{} of {possible:?}", state.records);
                assert_eq!(state.hash, reference.hashes[state.records as usize]);
                reference.hashes.truncate(state.records as usize + 1);
                reference.durable = state.records;
                let _ = use_state(state, &mut random, &mut reference);
            }
            Err(error) => {
                assert!(round < ROUNDS, "{error}");
                assert!(matches!(error, Error::Io { .. }), "only by a failure: {error}");
            }
        }
        match random.u8(..4) {
            // Only the process has ended.
            0 => computer.mend(),
            _ => computer.crash(),
        }
    }
}

#[test]
fn after_every_crash_a_state_is_the_one_after_some_record_since_the_last_that_was_synced() {
    for seed in 0..crashes().div_ceil(ROUNDS) {
        run(seed);
    }
}
