//! All implementations of a journal.

use std::sync::Arc;

use alluvium_storage::{
    Disk, Error, FileJournal, FileJournalOptions, Journal, LocalDisk, MemoryJournal, SimulatedDisk,
};

pub use super::records::{append_all, range, record, replay};

/// Small sizes, so that few records reach every branch.
pub const SMALL: FileJournalOptions =
    FileJournalOptions { segment_size: 4096, write_ahead: 1024, queue_size: 1024 };

/// A way to open the same journal again.
pub type Reopen = Box<dyn Fn() -> Arc<dyn Journal>>;

/// Runs a test on a new journal of every kind.
pub fn each(test: impl Fn(Reopen)) {
    let directory = tempfile::tempdir().unwrap();
    let memory = MemoryJournal::new();
    let path = directory.path().join("usual");
    let local: Arc<dyn Disk> = Arc::new(LocalDisk::open(directory.path().join("small")).unwrap());
    let simulated: Arc<dyn Disk> = Arc::new(SimulatedDisk::new(1));
    let twins: [Reopen; 4] = [
        Box::new(move || Arc::new(memory.clone())),
        Box::new(move || Arc::new(FileJournal::open(&path).unwrap())),
        Box::new(move || Arc::new(open(&local, SMALL).unwrap())),
        Box::new(move || Arc::new(open(&simulated, SMALL).unwrap())),
    ];
    for twin in twins {
        // Seen if the test fails.
        println!("on {:?}", twin());
        test(twin);
    }
}

pub fn open(disk: &Arc<dyn Disk>, options: FileJournalOptions) -> Result<FileJournal, Error> {
    FileJournal::open_with(Arc::clone(disk), options)
}
