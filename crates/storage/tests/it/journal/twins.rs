//! All implementations of a journal, and records to append.

use std::sync::Arc;

use alluvium_storage::{
    Disk, Error, FileJournal, FileJournalOptions, Journal, LocalDisk, MemoryJournal, Position,
    SimulatedDisk,
};

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

/// A record that no other number has.
pub fn record(number: u64, length: usize) -> Vec<u8> {
    let mut record = vec![0; length];
    fastrand::Rng::with_seed(number).fill(&mut record);
    record
}

/// Appends the records of these numbers and lengths, and returns the last position.
pub fn append_all(journal: &dyn Journal, records: &[(u64, usize)]) -> Position {
    let positions = records.iter().map(|(number, length)| {
        let position = journal.append(&record(*number, *length)).unwrap();
        assert_eq!(position, Position(*number));
        position
    });
    positions.last().unwrap()
}

/// All records from a position on.
pub fn replay(journal: &dyn Journal, from: u64) -> Result<Vec<Vec<u8>>, Error> {
    let mut expected = from;
    let records = journal.replay(Position(from))?.map(|found| {
        let (position, record) = found?;
        assert_eq!(position, Position(expected));
        expected += 1;
        Ok(record.to_vec())
    });
    records.collect()
}

/// The positions that a journal has.
pub fn range(journal: &dyn Journal) -> std::ops::Range<u64> {
    let range = journal.range();
    range.start.0..range.end.0
}
