//! Many threads that append and sync.

use std::sync::Arc;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};

use alluvium_storage::{Disk, FileJournalOptions, Journal, Position, SimulatedDisk};

use super::twins::{SMALL, each, open, range, replay};

/// A record that names its thread.
fn owned(thread: u64, number: u64) -> Vec<u8> {
    let mut record = vec![thread as u8; 16 + (number as usize * 37) % 1500];
    record[..8].copy_from_slice(&thread.to_le_bytes());
    record[8..16].copy_from_slice(&number.to_le_bytes());
    record
}

#[test]
fn threads_find_their_records_at_their_positions() {
    each(|reopen| {
        let journal = reopen();
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let journal = &journal;
                scope.spawn(move || {
                    let mut last = None;
                    for number in 0..50 {
                        let position = journal.append(&owned(thread, number)).unwrap();
                        assert!(last < Some(position));
                        last = Some(position);
                        if number % 3 == (thread + 1) % 3 {
                            journal.write(position).unwrap();
                        }
                        if number % 3 == thread % 3 {
                            journal.sync(position).unwrap();
                            let found = journal.replay(position).unwrap().next();
                            let (at, found) = found.unwrap().unwrap();
                            assert_eq!((at, &found[..]), (position, &owned(thread, number)[..]));
                        }
                    }
                    journal.sync(last.unwrap()).unwrap();
                });
            }
        });
        let replayed = replay(&*reopen(), 0).unwrap();
        assert_eq!(replayed.len(), 400);
        let mut next = [0; 8];
        for record in replayed {
            let thread = u64::from(record[0]);
            assert!(record == owned(thread, next[thread as usize]), "a thread's records in order");
            next[thread as usize] += 1;
        }
    });
}

#[test]
fn segments_are_released_while_others_append() {
    each(|reopen| {
        let journal = reopen();
        let synced = AtomicU64::new(0);
        std::thread::scope(|scope| {
            let appending = scope.spawn(|| {
                for number in 0..300 {
                    let position = journal.append(&owned(0, number)).unwrap();
                    journal.sync(position).unwrap();
                    synced.store(position.0, Ordering::Relaxed);
                }
            });
            while !appending.is_finished() {
                let before = synced.load(Ordering::Relaxed);
                journal.release(Position(before)).unwrap();
                assert!(range(&*journal).start <= before);
            }
        });
        let kept = range(&*journal);
        let replayed = replay(&*reopen(), kept.start).unwrap();
        let expected: Vec<_> = kept.map(|number| owned(0, number)).collect();
        assert!(replayed == expected);
    });
}

/// The calls of a disk are counted: 64 committers that arrive together need one write and one sync.
#[test]
fn committers_that_wait_share_a_sync() {
    let simulated = SimulatedDisk::new(1);
    let disk: Arc<dyn Disk> = Arc::new(simulated.clone());
    let options = FileJournalOptions { queue_size: 1 << 20, ..SMALL };
    let journal = open(&disk, options).unwrap();
    let first = journal.append(b"begins the segment").unwrap();
    journal.sync(first).unwrap();
    let before = simulated.calls();
    let barrier = Barrier::new(64);
    std::thread::scope(|scope| {
        for thread in 0..64_u8 {
            let (journal, barrier) = (&journal, &barrier);
            scope.spawn(move || {
                let position = journal.append(&[thread]).unwrap();
                barrier.wait();
                journal.sync(position).unwrap();
            });
        }
    });
    // One more write may put zeros ahead.
    let calls = simulated.calls() - before;
    assert!((2..=3).contains(&calls), "{calls} calls");
    assert_eq!(replay(&journal, 1).unwrap().len(), 64);
}
