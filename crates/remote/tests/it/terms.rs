//! Who may write.

use alluvium_remote::RemoteJournal;
use alluvium_storage::{Error, Expected, Journal, Position};

use crate::disks::SimulatedDisks;
use crate::journal::twins::{SMALL, append_all, place, range, record, replay, server};

/// The journal of this writer.
fn of(writer: &RemoteJournal) -> Expected {
    Expected { identity: Some(writer.identity().to_owned()), ..Expected::default() }
}

fn refused(result: Result<(), Error>) -> String {
    let error = result.unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error}");
    error.to_string()
}

#[test]
fn a_writer_is_refused_once_another_has_opened_the_journal() {
    let directory = tempfile::tempdir().unwrap();
    let server = server().start(directory.path()).unwrap();
    let former = place(&server, "orders").open(&Expected::default()).unwrap();
    former.sync(append_all(&former, &[(0, 100), (1, 10)])).unwrap();
    let writer = place(&server, "orders").open(&Expected::default()).unwrap();
    assert_eq!((former.term(), writer.term()), (1, 2));
    assert_eq!(former.identity(), writer.identity());
    let position = former.append(&record(2, 10)).unwrap();
    let said = refused(former.sync(position));
    assert!(said.contains("another process has opened the journal \"orders\""), "{said}");
    assert!(said.contains("the term 2, and this one had the term 1"), "{said}");
    // It is final, as that of a disk.
    assert_eq!(refused(former.sync(position)), said);
    assert_eq!(refused(former.release(Position(1))), said);
    assert_eq!(range(&writer), 0..2);
    writer.sync(append_all(&writer, &[(2, 30)])).unwrap();
    assert_eq!(replay(&writer, 0).unwrap(), [record(0, 100), record(1, 10), record(2, 30)]);
    // What was read before may still be read.
    assert_eq!(replay(&former, 0).unwrap().len(), 2);
}

#[test]
fn of_writers_that_race_the_last_one_writes_and_all_others_learn_it() {
    let server = server().options(SMALL).start_on(SimulatedDisks::new(3)).unwrap();
    let writers: Vec<_> = std::thread::scope(|scope| {
        let opening = (0..8)
            .map(|_| scope.spawn(|| place(&server, "orders").open(&Expected::default()).unwrap()));
        let opening: Vec<_> = opening.collect();
        opening.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut terms: Vec<_> = writers.iter().map(|writer| writer.term()).collect();
    terms.sort_unstable();
    assert_eq!(terms, [1, 2, 3, 4, 5, 6, 7, 8]);
    for writer in &writers {
        let position = writer.append(b"mine").unwrap();
        assert_eq!(writer.sync(position).is_ok(), writer.term() == 8);
    }
    let journal = place(&server, "orders").open(&Expected::default()).unwrap();
    assert_eq!(range(&journal), 0..1);
}

#[test]
fn a_term_outlives_the_server_and_its_machine() {
    let disks = SimulatedDisks::new(5);
    let mut former = None;
    for number in 1..4 {
        let server = server().options(SMALL).start_on(disks.clone()).unwrap();
        let writer = place(&server, "orders").open(&Expected::default()).unwrap();
        assert_eq!(writer.term(), number);
        assert_eq!(*former.get_or_insert(writer.identity().to_owned()), writer.identity());
        drop(server);
        disks.of("orders").crash();
    }
}

#[test]
fn another_journal_of_the_same_name_is_refused_and_its_writer_stays() {
    let server = server().start_on(SimulatedDisks::new(1)).unwrap();
    let orders = place(&server, "orders").open(&Expected::default()).unwrap();
    let other = place(&server, "other").open(&Expected::default()).unwrap();
    assert_ne!(orders.identity(), other.identity());
    let error = place(&server, "orders").open(&of(&other)).unwrap_err().to_string();
    assert!(error.contains("\"orders\" is another one"), "{error}");
    orders.sync(append_all(&orders, &[(0, 10)])).unwrap();
    // One that is expected is not made.
    let error = place(&server, "third").open(&of(&other)).unwrap_err().to_string();
    assert!(error.ends_with("the server has no journal \"third\""), "{error}");
    assert_eq!(place(&server, "other").open(&of(&other)).unwrap().term(), 2);
}

#[test]
fn a_journal_without_the_records_that_are_expected_is_refused_and_its_writer_stays() {
    let server = server().options(SMALL).start_on(SimulatedDisks::new(1)).unwrap();
    let writer = place(&server, "orders").open(&Expected::default()).unwrap();
    let records: Vec<_> = (0..100).map(|number| (number, 200)).collect();
    writer.sync(append_all(&writer, &records)).unwrap();
    writer.release(Position(60)).unwrap();
    let start = range(&writer).start;
    assert!(start > 0 && start <= 60);
    let open = |records: std::ops::Range<u64>| {
        let records = Position(records.start)..Position(records.end);
        place(&server, "orders").open(&Expected { records: Some(records), ..of(&writer) })
    };
    let said = open(0..10).unwrap_err().to_string();
    assert!(
        said.contains(&format!("it begins with record {start}, and record 0 is needed")),
        "{said}"
    );
    let said = open(start..101).unwrap_err().to_string();
    assert!(said.contains("it ends before record 100, and had records up to 101"), "{said}");
    writer.sync(append_all(&writer, &[(100, 10)])).unwrap();
    assert_eq!(open(start..101).unwrap().term(), 2);
}
