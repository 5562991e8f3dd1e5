//! Followers of a journal: they have every durable record once, and what they need is kept.

use std::sync::Arc;
use std::time::{Duration, Instant};

use alluvium_remote::{JournalPlace, Running};
use alluvium_storage::{Arriving, Elsewhere, Error, Expected, Followed, Journal, Position};

use crate::disks::SimulatedDisks;
use crate::journal::twins::{SMALL, append_all, place, range, record, server};
use crate::proxy::Proxy;

/// How long a test waits for what has to come.
const LONG: Duration = Duration::from_secs(60);

/// How long it waits for what must not.
const SHORT: Duration = Duration::from_millis(50);

fn follow(place: &JournalPlace, first: u64) -> Arc<dyn Followed> {
    let records = Some(Position(first)..Position(first));
    let expected = Expected { records, ..Expected::default() };
    place.follow(&expected, "standby").unwrap().1
}

fn refused(place: &JournalPlace, first: u64) -> String {
    let records = Some(Position(first)..Position(first));
    let followed = place.follow(&Expected { records, ..Expected::default() }, "standby");
    followed.err().unwrap().to_string()
}

/// The next records, which have to be these.
fn expect(arriving: &mut dyn Arriving, numbers: std::ops::Range<u64>, bytes: usize) {
    for number in numbers {
        let (position, found) = arriving.next(LONG).unwrap().unwrap();
        assert_eq!((position, &found[..]), (Position(number), &record(number, bytes)[..]));
    }
}

fn append(journal: &dyn Journal, numbers: std::ops::Range<u64>, bytes: usize) -> Position {
    let records: Vec<_> = numbers.map(|number| (number, bytes)).collect();
    append_all(journal, &records)
}

#[test]
fn records_come_once_they_are_durable_and_not_before() {
    let server = server().options(SMALL).start_on(SimulatedDisks::new(1)).unwrap();
    let writer = place(&server, "orders").open(&Expected::default()).unwrap();
    writer.sync(append(&writer, 0..10, 100)).unwrap();
    let followed = follow(&place(&server, "orders"), 0);
    assert_eq!(range(&*followed), 0..10);
    let mut arriving = followed.follow(Position(4));
    expect(&mut *arriving, 4..10, 100);
    let last = append(&writer, 10..12, 100);
    writer.write(last).unwrap();
    assert!(arriving.next(SHORT).unwrap().is_none());
    writer.sync(last).unwrap();
    expect(&mut *arriving, 10..12, 100);
    // More than is kept in memory, and in one message.
    writer.sync(append(&writer, 12..40, 400_000)).unwrap();
    expect(&mut *arriving, 12..40, 400_000);
    assert_eq!(range(&*followed), 0..40);
    let heard = followed.heard();
    assert_eq!((heard.term, heard.end, heard.released), (1, Position(40), Position(0)));
    assert!(followed.append(b"mine").unwrap_err().to_string().contains("another process writes"));
    // Another writer goes on, and nobody who follows minds.
    let other = place(&server, "orders").open(&Expected::default()).unwrap();
    other.sync(append(&other, 40..43, 10)).unwrap();
    expect(&mut *arriving, 40..43, 10);
    assert_eq!(followed.heard().term, 2);
}

#[test]
fn a_follower_that_is_cut_off_or_whose_server_restarts_has_every_record_once() {
    let disks = SimulatedDisks::new(7);
    let start = || server().options(SMALL).start_on(disks.clone()).unwrap();
    let mut running: Running = start();
    let proxy = Proxy::new(running.address());
    let through = JournalPlace::new(&format!("http://{}/orders", proxy.address), None).unwrap();
    let mut writer = place(&running, "orders").open(&Expected::default()).unwrap();
    let followed = follow(&through, 0);
    let mut arriving = followed.follow(Position(0));
    for round in 0..20 {
        match round % 5 {
            1 => proxy.cut(),
            3 => proxy.cut_after(700),
            4 => {
                drop(running);
                disks.of("orders").crash();
                running = start();
                proxy.forward_to(running.address());
                writer = place(&running, "orders").open(&Expected::default()).unwrap();
            }
            _ => {}
        }
        let (first, end) = (10 * round, 10 * round + 10);
        writer.sync(append(&writer, first..end, 150)).unwrap();
        expect(&mut *arriving, first..end, 150);
    }
    assert!(arriving.next(SHORT).unwrap().is_none());
}

#[test]
fn what_a_follower_needs_is_kept_also_while_it_is_away_and_the_server_restarts() {
    let disks = SimulatedDisks::new(9);
    let start = || server().options(SMALL).start_on(disks.clone()).unwrap();
    let mut running = start();
    let mut writer = place(&running, "orders").open(&Expected::default()).unwrap();
    writer.sync(append(&writer, 0..100, 300)).unwrap();
    drop(follow(&place(&running, "orders"), 20));
    writer.release(Position(90)).unwrap();
    assert!(range(&writer).start <= 20 && range(&writer).start > 0, "{writer:?}");
    drop(running);
    disks.of("orders").crash();
    running = start();
    writer = place(&running, "orders").open(&Expected::default()).unwrap();
    writer.release(Position(95)).unwrap();
    let followed = follow(&place(&running, "orders"), 20);
    expect(&mut *followed.follow(Position(20)), 20..100, 300);
    // It has taken a checkpoint: the next release deletes what that does not need.
    followed.release(Position(60)).unwrap();
    writer.release(Position(95)).unwrap();
    let start = range(&writer).start;
    assert!(start > 20 && start <= 60, "{start}");
    let said = refused(&place(&running, "orders"), 20);
    assert!(said.contains(&format!("begins with record {start}")), "{said}");
    assert!(said.contains("\"standby\" needs record 20: that is not kept any more"), "{said}");
    followed.leave().unwrap();
    writer.release(Position(95)).unwrap();
    assert!(range(&writer).start > 60, "{writer:?}");
}

#[test]
fn beyond_a_number_of_bytes_nothing_is_kept_for_the_follower_that_is_farthest_behind() {
    let server = server().options(SMALL).followed_bytes(20_000);
    let server = server.start_on(SimulatedDisks::new(2)).unwrap();
    let writer = place(&server, "orders").open(&Expected::default()).unwrap();
    let slow = follow(&place(&server, "orders"), 0);
    let mut arriving = slow.follow(Position(0));
    writer.sync(append(&writer, 0..30, 300)).unwrap();
    expect(&mut *arriving, 0..30, 300);
    writer.release(Position(30)).unwrap();
    assert_eq!(range(&writer).start, 0);
    writer.sync(append(&writer, 30..100, 300)).unwrap();
    writer.release(Position(100)).unwrap();
    let start = range(&writer).start;
    assert!(start > 90, "{start}");
    let said = refused(&place(&server, "orders"), 30);
    assert!(said.contains("as the journal had more bytes than it keeps for followers"), "{said}");
    let error = slow.release(Position(50)).unwrap_err().to_string();
    assert!(error.contains("\"standby\" needs record 50"), "{error}");
    // From where the journal begins it may follow again.
    let again = follow(&place(&server, "orders"), start);
    expect(&mut *again.follow(Position(start)), start..100, 300);
}

#[test]
fn a_follower_is_not_dropped_for_bytes_that_it_does_not_hold_and_all_that_hold_too_many_are() {
    let server = server().options(SMALL).followed_bytes(20_000);
    let server = server.start_on(SimulatedDisks::new(2)).unwrap();
    let place = place(&server, "orders");
    let writer = place.open(&Expected::default()).unwrap();
    let followed = follow(&place, 0);
    writer.sync(append(&writer, 0..100, 300)).unwrap();
    followed.release(Position(98)).unwrap();
    writer.release(Position(100)).unwrap();
    writer.sync(append(&writer, 100..130, 300)).unwrap();
    writer.release(Position(130)).unwrap();
    assert!((80..=98).contains(&range(&writer).start), "{writer:?}");
    let records = Some(Position(98)..Position(98));
    place.follow(&Expected { records, ..Expected::default() }, "other").unwrap();
    writer.sync(append(&writer, 130..200, 300)).unwrap();
    writer.release(Position(200)).unwrap();
    assert!(range(&writer).start > 180, "{writer:?}");
}

#[test]
fn who_reads_too_late_learns_that_the_record_is_gone() {
    let server = server().options(SMALL).start_on(SimulatedDisks::new(2)).unwrap();
    let writer = place(&server, "orders").open(&Expected::default()).unwrap();
    let followed = follow(&place(&server, "orders"), 0);
    writer.sync(append(&writer, 0..100, 300)).unwrap();
    followed.leave().unwrap();
    writer.release(Position(100)).unwrap();
    let mut arriving = followed.follow(Position(5));
    let begun = Instant::now();
    let error = loop {
        match arriving.next(SHORT) {
            Ok(None) => assert!(begun.elapsed() < LONG),
            Ok(Some(record)) => panic!("{record:?}"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Io { .. }) && error.to_string().contains("record 5"), "{error}");
}

#[test]
fn only_a_journal_that_is_there_and_is_the_right_one_is_followed() {
    let server = server().start_on(SimulatedDisks::new(2)).unwrap();
    assert!(refused(&place(&server, "orders"), 0).contains("no journal \"orders\""));
    drop(place(&server, "orders").open(&Expected::default()).unwrap());
    let expected = Expected { identity: Some("another".to_owned()), records: None };
    let said = place(&server, "orders").follow(&expected, "b").err().unwrap().to_string();
    assert!(said.contains("is another one"), "{said}");
    let said = place(&server, "orders").follow(&Expected::default(), "a b").err().unwrap();
    assert!(said.to_string().contains("cannot name"), "{said}");
    // Nobody of them has taken the term.
    assert_eq!(place(&server, "orders").open(&Expected::default()).unwrap().term(), 2);
}
