//! Cutting the last records off a journal.

use std::sync::Arc;

use alluvium_storage::{Disk, Error, Journal, Position, SimulatedDisk, cut_journal};

use super::twins::{SMALL, append_all, open, range, record, replay};

/// The lengths of records that make groups and segments of several sizes.
fn length(number: u64) -> usize {
    [0, 250, 40, 900, 10][number as usize % 5]
}

const RECORDS: u64 = 40;

/// A journal of several segments, with up to four records in a group.
fn written(seed: u64) -> (SimulatedDisk, Arc<dyn Disk>) {
    let simulated = SimulatedDisk::new(seed);
    let disk: Arc<dyn Disk> = Arc::new(simulated.clone());
    let journal = open(&disk, SMALL).unwrap();
    let all: Vec<_> = (0..RECORDS).map(|number| (number, length(number))).collect();
    for (number, group) in all.chunks(3).enumerate() {
        let last = append_all(&journal, group);
        if number % 4 != 1 {
            journal.sync(last).unwrap();
        }
    }
    journal.sync(Position(RECORDS - 1)).unwrap();
    assert!(disk.list().unwrap().len() > 2);
    (simulated, disk)
}

fn expected(end: u64) -> Vec<Vec<u8>> {
    (0..end).map(|number| record(number, length(number))).collect()
}

#[test]
fn a_journal_that_was_cut_has_the_records_before_and_goes_on() {
    for end in 0..=RECORDS {
        let (_, disk) = written(1);
        cut_journal(&*disk, Position(end)).unwrap();
        for round in 0..2 {
            let journal = open(&disk, SMALL).unwrap();
            assert_eq!(range(&journal), 0..end, "opened {round} times before");
            assert_eq!(replay(&journal, 0).unwrap(), expected(end));
        }
        let journal = open(&disk, SMALL).unwrap();
        let last = append_all(&journal, &[(end, 700), (end + 1, 3)]);
        journal.sync(last).unwrap();
        drop(journal);
        let mut all = expected(end);
        all.extend([record(end, 700), record(end + 1, 3)]);
        assert_eq!(replay(&open(&disk, SMALL).unwrap(), 0).unwrap(), all);
    }
}

#[test]
fn a_position_that_a_journal_does_not_have_is_refused_and_changes_nothing() {
    let (simulated, disk) = written(1);
    open(&disk, SMALL).unwrap().release(Position(20)).unwrap();
    let start = range(&open(&disk, SMALL).unwrap()).start;
    assert!(start > 0);
    let before: Vec<_> = disk.list().unwrap().iter().map(|name| simulated.bytes(name)).collect();
    for end in [0, start - 1, RECORDS + 1] {
        let error = cut_journal(&*disk, Position(end)).unwrap_err();
        assert!(matches!(error, Error::NoRecord { .. }), "{error}");
    }
    let after: Vec<_> = disk.list().unwrap().iter().map(|name| simulated.bytes(name)).collect();
    assert!(before == after);
    cut_journal(&*disk, Position(start)).unwrap();
    assert_eq!(range(&open(&disk, SMALL).unwrap()), start..start);
    let empty: Arc<dyn Disk> = Arc::new(SimulatedDisk::new(1));
    cut_journal(&*empty, Position(0)).unwrap();
    assert!(cut_journal(&*empty, Position(1)).is_err());
}

#[test]
fn after_a_crash_at_any_call_a_journal_ends_at_the_cut_or_later_and_can_be_cut_again() {
    for end in [0, 1, 9, 17, 31, RECORDS - 1] {
        for call in 1.. {
            let (simulated, disk) = written(call);
            simulated.fail_from(simulated.calls() + call);
            let is_cut = cut_journal(&*disk, Position(end)).is_ok();
            simulated.crash();
            let journal = open(&disk, SMALL).unwrap();
            let found = range(&journal).end;
            assert!((end..=RECORDS).contains(&found), "{found} records, cut at {end}");
            assert!(!is_cut || found == end);
            assert_eq!(replay(&journal, 0).unwrap(), expected(found));
            drop(journal);
            cut_journal(&*disk, Position(end)).unwrap();
            assert_eq!(replay(&open(&disk, SMALL).unwrap(), 0).unwrap(), expected(end));
            if is_cut {
                break;
            }
        }
    }
}
