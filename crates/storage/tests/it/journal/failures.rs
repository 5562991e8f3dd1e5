//! Calls of the disk that fail.

use std::sync::Arc;

use alluvium_storage::{Disk, Error, Journal, Position, SimulatedDisk};

use super::twins::{SMALL, open, range, record, replay};

/// The results that a run of a journal has returned.
#[derive(Default)]
struct Told {
    appended: u64,
    synced: u64,
}

/// Opens a journal and goes through three segments; some records are synced, some are released.
fn run(disk: &Arc<dyn Disk>, told: &mut Told) -> Result<(), Error> {
    let journal = open(disk, SMALL)?;
    for number in 0..30 {
        let length = [3, 700, 1500][number as usize % 3];
        told.appended = number + 1;
        let used = journal.append(&record(number, length)).and_then(|position| {
            if number % 4 == 3 {
                journal.sync(position)?;
                told.synced = number + 1;
            }
            Ok(())
        });
        if let Err(error) = used {
            let again = journal.append(b"").unwrap_err();
            assert_eq!(again.to_string(), error.to_string());
            let again = journal.sync(Position(0)).unwrap_err();
            assert_eq!(again.to_string(), error.to_string());
            return Err(error);
        }
    }
    journal.release(Position(15))
}

/// Opens a journal after a failure, and continues.
fn check(disk: &Arc<dyn Disk>, told: &Told) {
    let journal = open(disk, SMALL).unwrap();
    let range = range(&journal);
    assert!((told.synced..=told.appended).contains(&range.end), "{range:?}");
    let expected: Vec<_> =
        range.clone().map(|number| record(number, [3, 700, 1500][number as usize % 3])).collect();
    assert!(replay(&journal, range.start).unwrap() == expected);
    let position = journal.append(b"more").unwrap();
    assert_eq!(position, Position(range.end));
    journal.sync(position).unwrap();
    let journal = open(disk, SMALL).unwrap();
    assert_eq!(replay(&journal, range.end).unwrap(), [b"more"]);
}

fn for_every_call(fail: impl Fn(&SimulatedDisk, u64), after: impl Fn(&SimulatedDisk)) {
    let whole = SimulatedDisk::new(0);
    let disk: Arc<dyn Disk> = Arc::new(whole.clone());
    run(&disk, &mut Told::default()).unwrap();
    assert!(whole.calls() > 50, "{} calls", whole.calls());
    for call in 1..=whole.calls() {
        println!("call {call}");
        let simulated = SimulatedDisk::new(call);
        let disk: Arc<dyn Disk> = Arc::new(simulated.clone());
        fail(&simulated, call);
        let mut told = Told::default();
        let error = run(&disk, &mut told).unwrap_err();
        assert!(matches!(error, Error::Io { .. }), "{error}");
        assert!(error.to_string().ends_with(&format!("call {call} fails on command")), "{error}");
        after(&simulated);
        check(&disk, &told);
    }
}

#[test]
fn when_all_calls_fail_from_one_on_the_error_is_final_and_nothing_synced_is_lost() {
    for_every_call(SimulatedDisk::fail_from, SimulatedDisk::crash);
    for_every_call(SimulatedDisk::fail_from, SimulatedDisk::mend);
}

#[test]
fn when_a_single_call_fails_nothing_is_tried_again() {
    for_every_call(SimulatedDisk::fail_at, SimulatedDisk::crash);
    for_every_call(SimulatedDisk::fail_at, SimulatedDisk::mend);
}

/// Linux reports a failed write-back once, and takes the bytes to be on the disk from then on. A journal that is opened
/// again reads them, so it must write them again: its own sync would succeed without them.
#[test]
fn what_is_replayed_after_a_failed_sync_is_durable() {
    for seed in 0..50 {
        let simulated = SimulatedDisk::new(seed);
        let disk: Arc<dyn Disk> = Arc::new(simulated.clone());
        let journal = open(&disk, SMALL).unwrap();
        let first = journal.append(&record(0, 100)).unwrap();
        journal.sync(first).unwrap();
        let second = journal.append(&record(1, 2000)).unwrap();
        simulated.fail_at(simulated.calls() + 1);
        journal.sync(second).unwrap_err();
        drop(journal);
        let journal = open(&disk, SMALL).unwrap();
        assert_eq!(range(&journal), 0..2);
        drop(journal);
        simulated.crash();
        let journal = open(&disk, SMALL).unwrap();
        assert!(replay(&journal, 0).unwrap() == [record(0, 100), record(1, 2000)]);
    }
}

/// A segment was begun, and the sync of the directory failed. The journal was opened again, and found it. Everything before
/// it was released, the computer crashed, and took the name of the only segment that was left, and with it all positions.
#[test]
fn a_segment_whose_name_may_not_be_durable_does_not_replace_the_one_before_it() {
    for seed in 0..50 {
        let simulated = SimulatedDisk::new(seed);
        let disk: Arc<dyn Disk> = Arc::new(simulated.clone());
        let journal = open(&disk, SMALL).unwrap();
        let first = journal.append(&record(0, 3000)).unwrap();
        journal.sync(first).unwrap();
        // Set the size, sync; create, write, sync, rename, sync the directory.
        simulated.fail_at(simulated.calls() + 7);
        journal.append(&record(1, 3000)).unwrap_err();
        drop(journal);
        let journal = open(&disk, SMALL).unwrap();
        assert_eq!(range(&journal), 0..1);
        journal.release(Position(1)).unwrap();
        drop(journal);
        simulated.crash();
        assert_eq!(range(&open(&disk, SMALL).unwrap()).end, 1);
    }
}

#[test]
fn a_full_disk_is_said_and_is_final_until_the_journal_is_opened_again() {
    for capacity in (64..20_000).step_by(97) {
        let simulated = SimulatedDisk::new(capacity);
        let disk: Arc<dyn Disk> = Arc::new(simulated.clone());
        simulated.limit(capacity);
        let mut told = Told::default();
        let error = run(&disk, &mut told).unwrap_err();
        assert!(matches!(error, Error::Full { .. }), "{error}");
        simulated.mend();
        check(&disk, &told);
    }
}

#[test]
fn zeros_are_not_needed_where_there_is_no_room_for_them() {
    let simulated = SimulatedDisk::new(1);
    let disk: Arc<dyn Disk> = Arc::new(simulated.clone());
    // The header, and one record with its headers.
    simulated.limit(64 + 48 + 16 + 100);
    let journal = open(&disk, SMALL).unwrap();
    let position = journal.append(&record(0, 100)).unwrap();
    journal.sync(position).unwrap();
    assert!(matches!(
        journal.append(&[1]).and_then(|position| journal.sync(position)),
        Err(Error::Full { .. })
    ));
}
