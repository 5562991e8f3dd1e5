//! Records to append, and what is replayed.

use alluvium_storage::{Error, Journal, Position};

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
