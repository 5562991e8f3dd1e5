//! Journals of servers.

use std::sync::Arc;

use alluvium_remote::{JournalPlace, JournalServer, Running};
use alluvium_storage::{Expected, FileJournalOptions, Journal};

pub use super::records::{append_all, range, record, replay};
use crate::disks::SimulatedDisks;

/// Small sizes, so that few records reach every branch.
pub const SMALL: FileJournalOptions =
    FileJournalOptions { segment_size: 4096, write_ahead: 1024, queue_size: 1024 };

/// A way to open the same journal again.
pub type Reopen = Box<dyn Fn() -> Arc<dyn Journal>>;

/// Runs a test on a new journal of every kind of server.
pub fn each(test: impl Fn(Reopen)) {
    let directory = tempfile::tempdir().unwrap();
    let usual = server().start(directory.path()).unwrap();
    let small = server().options(SMALL).start_on(SimulatedDisks::new(1)).unwrap();
    for server in [usual, small] {
        // Seen if the test fails.
        println!("on {server:?}");
        test(Box::new(move || {
            Arc::new(place(&server, "orders").open(&Expected::default()).unwrap())
        }));
    }
}

/// A server on a free port.
pub fn server() -> JournalServer {
    JournalServer::new("127.0.0.1:0".parse().unwrap())
}

/// The place of a journal of a server.
pub fn place(server: &Running, name: &str) -> JournalPlace {
    JournalPlace::new(&format!("http://{}/{name}", server.address()), None).unwrap()
}
