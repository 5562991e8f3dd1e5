//! What others than writers may send to a server, and where it is used.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use alluvium_storage::{Expected, Journal};

use crate::disks::SimulatedDisks;
use crate::journal::twins::{append_all, place, record, replay, server};

#[test]
fn what_is_no_http_2_is_closed_and_nothing_at_all_keeps_nobody_waiting() {
    let server = server().start_on(SimulatedDisks::new(1)).unwrap();
    let silent: Vec<_> = (0..40).map(|_| TcpStream::connect(server.address()).unwrap()).collect();
    let mut noise = fastrand::Rng::with_seed(1);
    for _ in 0..20 {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        let bytes: Vec<u8> = (0..2000).map(|_| noise.u8(..)).collect();
        let _ = stream.write_all(&bytes);
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut answer = Vec::new();
        // It is closed, or reset.
        if let Err(error) = stream.read_to_end(&mut answer) {
            assert_ne!(error.kind(), std::io::ErrorKind::WouldBlock, "the server keeps it open");
        }
    }
    let journal = place(&server, "orders").open(&Expected::default()).unwrap();
    journal.sync(append_all(&journal, &[(0, 100)])).unwrap();
    assert_eq!(replay(&journal, 0).unwrap(), [record(0, 100)]);
    drop(silent);
}

#[test]
fn a_directory_is_used_by_one_server() {
    let directory = tempfile::tempdir().unwrap();
    let first = server().start(directory.path()).unwrap();
    let refused = server().start(directory.path()).unwrap_err().to_string();
    assert!(refused.ends_with("is used by another process"), "{refused}");
    drop(first);
    server().start(directory.path()).unwrap();
}

#[test]
fn threads_of_an_asynchronous_runtime_may_commit() {
    let server = server().start_on(SimulatedDisks::new(1)).unwrap();
    let place = place(&server, "orders");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let journal = place.open(&Expected::default()).unwrap();
        journal.sync(append_all(&journal, &[(0, 100)])).unwrap();
        assert_eq!(replay(&journal, 0).unwrap(), [record(0, 100)]);
    });
}
