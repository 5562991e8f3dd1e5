//! Operations of a store that are measured.

use crate::Result;

/// The event that a commit waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Until the row is on the disk.
    Disk,
    /// The store's default without a request to sync: at most until the operating system has the row.
    System,
}

/// Where rows are committed, from any thread.
pub trait Store: Send + Sync {
    /// Its name.
    fn name(&self) -> &'static str;

    /// Commits one row, in place of the row with the same key.
    fn put(&self, key: u64, value: &[u8]) -> Result<()>;
}

/// A store that also reads.
pub trait Table: Store {
    /// Commits these rows, thousands at a time.
    fn load(&self, rows: &mut dyn Iterator<Item = (u64, &[u8])>) -> Result<()>;

    /// Copies the value of a key, and returns whether there is one.
    fn get(&self, key: u64, value: &mut Vec<u8>) -> Result<bool>;

    /// Copies the values of up to so many rows, from this key on in the order of the keys, and returns how many there are.
    fn scan(&self, key: u64, rows: usize, values: &mut Vec<u8>) -> Result<usize>;
}
