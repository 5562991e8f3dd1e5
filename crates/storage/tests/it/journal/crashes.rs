//! A journal whose computer crashes at any call, is opened again, and continues.
//!
//! `ALLUVIUM_CRASHES=100000` sets the number of crashes.

use std::sync::Arc;

use alluvium_storage::{Disk, FileJournal, FileJournalOptions, Journal, Position, SimulatedDisk};
use fastrand::Rng;

use super::twins::{open, range, record, replay};

/// How many crashes a computer has.
const ROUNDS: u64 = 25;

/// How many crashes a test has.
pub fn crashes() -> u64 {
    let given = std::env::var("ALLUVIUM_CRASHES").ok();
    given.map_or(2_000, |crashes| crashes.parse().unwrap())
}

/// The records that a journal must have.
struct Model {
    random: Rng,
    /// All records since the journal was new, as far as it may have them.
    records: Vec<Vec<u8>>,
    /// How many of them it has for certain.
    durable: u64,
    /// Records before this one may be gone.
    released: u64,
    /// Numbers the records.
    next: u64,
}

impl Model {
    /// Asserts that a journal has what it must have, and nothing else.
    fn check(&mut self, journal: &FileJournal) {
        let range = range(journal);
        assert!(range.start <= self.released, "{range:?} has {}", self.released);
        let possible = self.durable..=self.records.len() as u64;
        assert!(possible.contains(&range.end), "{range:?} ends in {possible:?}");
        let replayed = replay(journal, range.start).unwrap();
        assert!(replayed == self.records[range.start as usize..range.end as usize]);
        self.records.truncate(range.end as usize);
        self.durable = range.end;
    }

    /// Uses a journal until a call fails, and asserts that this is final.
    fn run(&mut self, journal: &FileJournal) {
        for _ in 0..self.random.u64(1..60) {
            let used = match self.random.u8(..10) {
                0..6 => self.append(journal),
                6..9 => self.sync(journal),
                _ => {
                    // A segment that cannot be deleted stays, and nothing else is wrong.
                    let _ = self.release(journal);
                    Ok(())
                }
            };
            let Err(error) = used else { continue };
            for _ in 0..3 {
                assert_eq!(journal.append(b"").unwrap_err().to_string(), error);
                assert_eq!(journal.sync(Position(0)).unwrap_err().to_string(), error);
                assert_eq!(journal.release(Position(0)).unwrap_err().to_string(), error);
            }
            return;
        }
    }

    fn append(&mut self, journal: &FileJournal) -> Result<(), String> {
        let longest = [1, 40, 300, 1500, 6000][self.random.usize(..5)];
        let record = record(self.next, self.random.usize(..longest));
        self.next += 1;
        let position = Position(self.records.len() as u64);
        self.records.push(record.clone());
        let appended = journal.append(&record).map_err(|error| error.to_string())?;
        assert_eq!(appended, position);
        Ok(())
    }

    fn sync(&mut self, journal: &FileJournal) -> Result<(), String> {
        let last = self.records.len().saturating_sub(1) as u64;
        let upto = if self.random.bool() { last } else { self.random.u64(..=last) };
        if self.records.is_empty() {
            return Ok(());
        }
        journal.sync(Position(upto)).map_err(|error| error.to_string())?;
        self.durable = self.durable.max(upto + 1);
        Ok(())
    }

    fn release(&mut self, journal: &FileJournal) -> Result<(), String> {
        let before = self.random.u64(..=self.durable);
        self.released = self.released.max(before);
        journal.release(Position(before)).map_err(|error| error.to_string())
    }
}

/// A computer that crashes some times.
fn run(seed: u64) {
    println!("seed {seed}");
    let simulated = SimulatedDisk::new(seed);
    let disk: Arc<dyn Disk> = Arc::new(simulated.clone());
    let random = Rng::with_seed(seed);
    let mut model = Model { random, records: Vec::new(), durable: 0, released: 0, next: 0 };
    for _ in 0..ROUNDS {
        let random = &mut model.random;
        let options = FileJournalOptions {
            segment_size: random.u64(600..8000),
            write_ahead: random.usize(..3000),
            queue_size: random.usize(1..2000),
        };
        let call = simulated.calls() + random.u64(1..80);
        match random.bool() {
            true => simulated.fail_from(call),
            false => simulated.fail_at(call),
        }
        // Opening may fail, too.
        if let Ok(journal) = open(&disk, options) {
            model.check(&journal);
            model.run(&journal);
        }
        match model.random.u8(..4) {
            // Only the process has ended.
            0 => simulated.mend(),
            _ => simulated.crash(),
        }
    }
    let journal = open(&disk, FileJournalOptions::default()).unwrap();
    model.check(&journal);
}

#[test]
fn after_every_crash_a_journal_has_what_was_synced_and_a_prefix_of_the_rest() {
    for seed in 0..crashes().div_ceil(ROUNDS) {
        run(seed);
    }
}
