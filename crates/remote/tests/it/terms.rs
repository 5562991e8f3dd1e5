//! Who may write.

use alluvium_storage::{Error, Journal, Position};

use crate::disks::SimulatedDisks;
use crate::journal::twins::{SMALL, append_all, place, range, record, replay, server};

fn refused(result: Result<(), Error>) -> String {
    let error = result.unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error}");
    error.to_string()
}

#[test]
fn a_writer_is_refused_once_another_has_opened_the_journal() {
    let directory = tempfile::tempdir().unwrap();
    let server = server().start(directory.path()).unwrap();
    let former = place(&server, "orders").open(None).unwrap();
    former.sync(append_all(&former, &[(0, 100), (1, 10)])).unwrap();
    let writer = place(&server, "orders").open(None).unwrap();
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
        let opening = (0..8).map(|_| scope.spawn(|| place(&server, "orders").open(None).unwrap()));
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
    let journal = place(&server, "orders").open(None).unwrap();
    assert_eq!(range(&journal), 0..1);
}

#[test]
fn a_term_outlives_the_server_and_its_machine() {
    let disks = SimulatedDisks::new(5);
    let mut former = None;
    for number in 1..4 {
        let server = server().options(SMALL).start_on(disks.clone()).unwrap();
        let writer = place(&server, "orders").open(None).unwrap();
        assert_eq!(writer.term(), number);
        assert_eq!(*former.get_or_insert(writer.identity().to_owned()), writer.identity());
        drop(server);
        disks.of("orders").crash();
    }
}

#[test]
fn another_journal_of_the_same_name_is_refused_and_its_writer_stays() {
    let server = server().start_on(SimulatedDisks::new(1)).unwrap();
    let orders = place(&server, "orders").open(None).unwrap();
    let other = place(&server, "other").open(None).unwrap();
    assert_ne!(orders.identity(), other.identity());
    let error = place(&server, "orders").open(Some(other.identity())).unwrap_err().to_string();
    assert!(error.contains("\"orders\" is another one"), "{error}");
    orders.sync(append_all(&orders, &[(0, 10)])).unwrap();
    // One that is expected is not made.
    let error = place(&server, "third").open(Some(other.identity())).unwrap_err().to_string();
    assert!(error.ends_with("the server has no journal \"third\""), "{error}");
    assert_eq!(place(&server, "other").open(Some(other.identity())).unwrap().term(), 2);
}
