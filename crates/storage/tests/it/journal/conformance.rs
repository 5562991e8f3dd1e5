//! The behaviour of every journal.

use alluvium_storage::{Error, Position};

use super::twins::{append_all, each, range, record, replay};

#[test]
fn a_new_journal_has_no_records() {
    each(|open| {
        let journal = open();
        assert_eq!(range(&*journal), 0..0);
        assert!(replay(&*journal, 0).unwrap().is_empty());
        journal.release(Position(0)).unwrap();
    });
}

#[test]
fn records_take_positions_in_order_and_are_replayed_when_they_are_synced() {
    each(|open| {
        let journal = open();
        for number in 0..3 {
            assert_eq!(journal.append(&record(number, 10)).unwrap(), Position(number));
        }
        assert_eq!(range(&*journal), 0..3);
        journal.sync(Position(1)).unwrap();
        let replayed = replay(&*journal, 0).unwrap();
        // Whether the last one is durable is not said.
        assert!(replayed.len() >= 2);
        assert_eq!(replayed[..2], [record(0, 10), record(1, 10)]);
        journal.sync(Position(2)).unwrap();
        assert_eq!(replay(&*journal, 0).unwrap().len(), 3);
        assert_eq!(replay(&*journal, 2).unwrap(), [record(2, 10)]);
        assert!(replay(&*journal, 3).unwrap().is_empty());
        // Durable records can be synced once more.
        journal.sync(Position(0)).unwrap();
    });
}

#[test]
fn a_journal_goes_on_where_it_ended_when_it_is_opened_again() {
    each(|open| {
        for round in 0..5_u64 {
            // Nothing is written by a journal that is only opened.
            drop(open());
            let journal = open();
            assert_eq!(range(&*journal), 0..2 * round);
            let last = append_all(&*journal, &[(2 * round, 100), (2 * round + 1, 0)]);
            journal.sync(last).unwrap();
        }
        let replayed = replay(&*open(), 0).unwrap();
        let expected = |number| record(number, if number % 2 == 0 { 100 } else { 0 });
        assert_eq!(replayed, (0..10).map(expected).collect::<Vec<_>>());
    });
}

#[test]
fn what_was_written_is_there_when_a_journal_is_opened_again() {
    each(|open| {
        let journal = open();
        let last = append_all(&*journal, &[(0, 100), (1, 5000), (2, 0)]);
        journal.write(last).unwrap();
        journal.write(Position(0)).unwrap();
        assert!(matches!(journal.write(Position(3)), Err(Error::NoRecord { position: 3, .. })));
        let _queued = journal.append(&record(3, 10)).unwrap();
        drop(journal);
        let replayed = replay(&*open(), 0).unwrap();
        assert_eq!(replayed[..3], [record(0, 100), record(1, 5000), record(2, 0)]);
    });
}

#[test]
fn a_record_has_any_length() {
    each(|open| {
        let lengths = [0, 1, 511, 512, 900, 1023, 1024, 1025, 5000, 0, 3 << 20, 7, 9 << 20, 0];
        let records: Vec<_> = (0..).zip(lengths).collect();
        let journal = open();
        let last = append_all(&*journal, &records);
        journal.sync(last).unwrap();
        for journal in [journal, open()] {
            let replayed = replay(&*journal, 0).unwrap();
            assert_eq!(replayed.len(), records.len());
            for ((number, length), found) in records.iter().zip(replayed) {
                // Not `assert_eq`, which would print megabytes.
                assert!(found == record(*number, *length), "record {number} has other bytes");
            }
        }
    });
}

#[test]
fn released_records_are_gone_and_the_others_stay() {
    each(|open| {
        let journal = open();
        let records: Vec<_> = (0..100).map(|number| (number, 200)).collect();
        let last = append_all(&*journal, &records);
        journal.sync(last).unwrap();
        for before in [0, 10, 9, 50, 100] {
            let was = range(&*journal).start;
            journal.release(Position(before)).unwrap();
            let kept = range(&*journal);
            assert!((was..=was.max(before)).contains(&kept.start), "{kept:?} before {before}");
            assert_eq!(kept.end, 100);
            for from in [kept.start, kept.end - 1, kept.end] {
                let expected: Vec<_> =
                    (from.max(kept.start)..100).map(|n| record(n, 200)).collect();
                if kept.contains(&from) || from == kept.end {
                    assert_eq!(replay(&*journal, from).unwrap(), expected);
                }
            }
        }
        // Positions continue, also when everything was released and the journal is opened again.
        drop(journal);
        for number in 100..103 {
            let journal = open();
            assert_eq!(journal.append(&record(number, 3)).unwrap(), Position(number));
            journal.sync(Position(number)).unwrap();
            assert_eq!(replay(&*journal, number).unwrap(), [record(number, 3)]);
        }
    });
}

#[test]
fn records_that_are_not_there_are_refused_by_position() {
    each(|open| {
        let journal = open();
        let refused = |error: Error| {
            assert!(matches!(error, Error::NoRecord { .. }), "{error}");
            error.to_string()
        };
        assert!(
            refused(journal.sync(Position(0)).unwrap_err()).starts_with("cannot sync record 0")
        );
        let records: Vec<_> = (0..100).map(|number| (number, 200)).collect();
        let last = append_all(&*journal, &records);
        journal.sync(last).unwrap();
        refused(journal.sync(Position(100)).unwrap_err());
        let said = refused(journal.replay(Position(101)).err().unwrap());
        assert!(said.starts_with("cannot replay record 101 of "), "{said}");
        assert!(said.ends_with(", which has records 0 to 99"), "{said}");
        journal.release(Position(100)).unwrap();
        let first = range(&*journal).start;
        if first > 0 {
            refused(journal.replay(Position(first - 1)).err().unwrap());
        }
    });
}

#[test]
fn a_replay_ends_where_the_journal_was_durable_when_it_began() {
    each(|open| {
        let journal = open();
        let last = append_all(&*journal, &[(0, 2000), (1, 3000), (2, 10)]);
        journal.sync(last).unwrap();
        let replay = journal.replay(Position(0)).unwrap();
        let more: Vec<_> = (3..60).map(|number| (number, 300)).collect();
        let last = append_all(&*journal, &more);
        journal.sync(last).unwrap();
        assert_eq!(replay.count(), 3);
    });
}
