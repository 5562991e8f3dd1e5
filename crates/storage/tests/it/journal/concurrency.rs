//! Many threads that append and sync.

use std::sync::atomic::{AtomicU64, Ordering};

use alluvium_storage::Position;

use super::twins::{each, range, replay};

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
