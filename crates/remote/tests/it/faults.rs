//! What may happen between a writer and its server, and at the server.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use alluvium_remote::{JournalPlace, RemoteJournal};
use alluvium_storage::{Disk, Error, Expected, Journal, Position};

use crate::disks::SimulatedDisks;
use crate::journal::twins::{SMALL, append_all, place, range, record, replay, server};
use crate::proxy::Proxy;

/// Through a proxy, for so long.
fn through(proxy: &Proxy, patience: Duration) -> JournalPlace {
    let url = format!("http://{}/orders", proxy.address);
    JournalPlace::new(&url, None).unwrap().patience(patience)
}

const LONG: Duration = Duration::from_secs(60);

fn length(number: u64) -> usize {
    [0, 250, 40, 3000, 10][number as usize % 5]
}

/// Appends records from a number on: some are synced, some are written, and some are sent when the queue is full.
fn work(journal: &RemoteJournal, numbers: std::ops::Range<u64>) {
    let end = numbers.end;
    for number in numbers {
        let position = journal.append(&record(number, length(number))).unwrap();
        assert_eq!(position, Position(number));
        match number % 4 {
            0 => journal.sync(position).unwrap(),
            2 => journal.write(position).unwrap(),
            _ => {}
        }
    }
    journal.sync(Position(end - 1)).unwrap();
}

fn expected(end: u64) -> Vec<Vec<u8>> {
    (0..end).map(|number| record(number, length(number))).collect()
}

#[test]
fn a_connection_that_is_cut_after_any_byte_loses_and_doubles_nothing() {
    let whole = {
        let server = server().start_on(SimulatedDisks::new(1)).unwrap();
        let proxy = Proxy::new(server.address());
        let journal = through(&proxy, LONG).open(&Expected::default()).unwrap();
        let opened = proxy.forwarded();
        work(&journal, 0..20);
        opened..proxy.forwarded()
    };
    assert!(whole.end - whole.start > 10_000, "{whole:?}");
    let mut cuts = 0;
    // Both sides send some bytes whenever they like: where exactly it is cut differs from run to run.
    for after in (1..whole.end - whole.start).step_by(397) {
        let server = server().start_on(SimulatedDisks::new(after)).unwrap();
        let proxy = Proxy::new(server.address());
        let journal = through(&proxy, LONG).open(&Expected::default()).unwrap();
        proxy.cut_after(after);
        work(&journal, 0..20);
        cuts += proxy.cuts();
        assert_eq!(journal.term(), 1);
        let again = place(&server, "orders").open(&Expected::default()).unwrap();
        assert!(replay(&again, 0).unwrap() == expected(20), "cut after {after} bytes");
    }
    assert!(cuts > 20, "{cuts} connections were cut");
}

#[test]
fn connections_that_are_cut_all_the_time_only_take_time() {
    let server = server().options(SMALL).start_on(SimulatedDisks::new(2)).unwrap();
    let proxy = Proxy::new(server.address());
    let journal = through(&proxy, LONG).open(&Expected::default()).unwrap();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(15));
                proxy.cut();
            }
        });
        work(&journal, 0..300);
        // Reading, too.
        assert!(replay(&journal, 0).unwrap() == expected(300));
        is_done.store(true, Ordering::SeqCst);
    });
    let again = place(&server, "orders").open(&Expected::default()).unwrap();
    assert!(replay(&again, 0).unwrap() == expected(300));
}

#[test]
fn a_server_that_ends_is_waited_for_and_one_whose_machine_crashes_loses_nothing_durable() {
    for (seed, crashes) in [(1, false), (2, true), (3, true), (4, true)] {
        let disks = SimulatedDisks::new(seed);
        let mut running = server().options(SMALL).start_on(disks.clone()).unwrap();
        let proxy = Proxy::new(running.address());
        let journal = through(&proxy, LONG).open(&Expected::default()).unwrap();
        for round in 0..5 {
            work(&journal, 30 * round..30 * round + 20);
            // Written and not durable: a crash of the machine may take it away, and the writer has it.
            let written = append_all_of(&journal, 30 * round + 20..30 * round + 30);
            journal.write(written).unwrap();
            if crashes {
                // What the server does when it ends is lost, as in a crash.
                disks.of("orders").crash();
            }
            drop(running);
            if crashes {
                disks.of("orders").crash();
            }
            running = server().options(SMALL).start_on(disks.clone()).unwrap();
            proxy.forward_to(running.address());
        }
        journal.sync(Position(149)).unwrap();
        assert_eq!(journal.term(), 1);
        let again = place(&running, "orders").open(&Expected::default()).unwrap();
        assert!(replay(&again, 0).unwrap() == expected(150), "with the seed {seed}");
    }
}

fn append_all_of(journal: &RemoteJournal, numbers: std::ops::Range<u64>) -> Position {
    let records: Vec<_> = numbers.map(|number| (number, length(number))).collect();
    append_all(journal, &records)
}

#[test]
fn a_server_that_stays_away_fails_the_journal_and_nothing_that_was_synced_is_lost() {
    let server = server().start_on(SimulatedDisks::new(1)).unwrap();
    let proxy = Proxy::new(server.address());
    let journal = through(&proxy, Duration::from_millis(300)).open(&Expected::default()).unwrap();
    work(&journal, 0..10);
    proxy.refuse(true);
    proxy.cut();
    let position = journal.append(b"late").unwrap();
    let error = journal.sync(position).unwrap_err();
    let said = error.to_string();
    assert!(matches!(error, Error::Io { .. }), "{said}");
    assert!(
        said.starts_with(&format!("cannot append to http://{}/orders: ", proxy.address)),
        "{said}"
    );
    assert!(said.contains("the server could not be reached for 300ms"), "{said}");
    proxy.refuse(false);
    assert_eq!(journal.append(b"later").unwrap_err().to_string(), said);
    let again = through(&proxy, LONG).open(&Expected::default()).unwrap();
    assert!(replay(&again, 0).unwrap() == expected(10));
}

#[test]
fn a_server_that_is_not_there_is_said_at_once() {
    let nobody = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let place = JournalPlace::new(&format!("http://{nobody}/orders"), None).unwrap();
    let said = place.open(&Expected::default()).unwrap_err().to_string();
    let expected = format!("cannot open http://{nobody}/orders: the server cannot be reached: ");
    assert!(said.starts_with(&expected), "{said}");
}

#[test]
fn a_full_disk_of_the_server_is_said_and_is_final_until_the_journal_is_opened_again() {
    let disks = SimulatedDisks::new(1);
    let server = server().options(SMALL).start_on(disks.clone()).unwrap();
    let journal = place(&server, "orders").open(&Expected::default()).unwrap();
    work(&journal, 0..10);
    disks.of("orders").limit(0);
    let position = append_all_of(&journal, 10..20);
    let error = journal.sync(position).unwrap_err();
    assert!(matches!(error, Error::Full { .. }), "{error}");
    assert!(error.to_string().contains("the server says: "), "{error}");
    disks.of("orders").mend();
    assert_eq!(journal.sync(position).unwrap_err().to_string(), error.to_string());
    let again = place(&server, "orders").open(&Expected::default()).unwrap();
    let kept = range(&again);
    assert!((10..=20).contains(&kept.end), "{kept:?}");
    assert!(replay(&again, 0).unwrap() == expected(kept.end));
    work(&again, kept.end..30);
    assert!(replay(&again, 0).unwrap() == expected(30));
}

#[test]
fn a_damaged_file_of_the_server_is_named_to_who_reads_it() {
    let directory = tempfile::tempdir().unwrap();
    let server = server().options(SMALL).start(directory.path()).unwrap();
    let journal = place(&server, "orders").open(&Expected::default()).unwrap();
    work(&journal, 0..40);
    let file = directory.path().join("orders").join("00000000000000000000.journal");
    let mut bytes = fs::read(&file).unwrap();
    let at = bytes.len() / 2;
    bytes[at] ^= 1;
    fs::write(&file, &bytes).unwrap();
    let read: Vec<_> = journal.replay(Position(0)).unwrap().collect();
    let (whole, error) = (read.len() - 1, read.last().unwrap().as_ref().unwrap_err().to_string());
    assert!(whole > 0 && whole < 40);
    for (number, found) in read[..whole].iter().enumerate() {
        let (position, found) = found.as_ref().unwrap();
        assert_eq!(*position, Position(number as u64));
        assert!(*found == record(number as u64, length(number as u64)));
    }
    assert!(error.contains(&file.display().to_string()), "{error}");
    assert!(error.contains("is damaged at byte"), "{error}");
}

#[test]
fn a_journal_that_has_become_shorter_than_a_writer_has_seen_it_is_not_opened() {
    let disks = SimulatedDisks::new(1);
    let running = server().start_on(disks.clone()).unwrap();
    let journal = place(&running, "orders").open(&Expected::default()).unwrap();
    work(&journal, 0..10);
    drop((journal, running));
    let disk = disks.of("orders");
    disk.remove("00000000000000000000.journal").unwrap();
    let running = server().start_on(disks).unwrap();
    let said = place(&running, "orders").open(&Expected::default()).unwrap_err().to_string();
    assert!(said.contains("with record 9") && said.contains("term needs it"), "{said}");
}

#[test]
fn a_record_of_many_pieces_and_a_group_of_many_records_are_sent() {
    let server = server().start_on(SimulatedDisks::new(1)).unwrap();
    let journal = place(&server, "orders").open(&Expected::default()).unwrap();
    let large = record(0, 16 << 20);
    journal.sync(journal.append(&large).unwrap()).unwrap();
    for number in 1..=10_000_u64 {
        journal.append(&number.to_le_bytes()).unwrap();
    }
    journal.sync(Position(10_000)).unwrap();
    let again = place(&server, "orders").open(&Expected::default()).unwrap();
    let replayed = replay(&again, 0).unwrap();
    assert_eq!(replayed.len(), 10_001);
    assert!(replayed[0] == large);
    assert!((1..=10_000_u64).all(|number| replayed[number as usize] == number.to_le_bytes()));
}

#[test]
fn names_that_could_be_paths_reach_no_server() {
    for name in ["..", ".lock", "a/b", "A", "a%2fb", ""] {
        assert!(JournalPlace::new(&format!("http://127.0.0.1:1/{name}"), None).is_err(), "{name}");
    }
}
