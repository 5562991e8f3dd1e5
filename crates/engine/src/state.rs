//! How much state an engine holds.

/// The state of tables, views and indexes, of all workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct State {
    /// The number of rows: those of tables and views, and those that operators keep to maintain them. A change that is
    /// not compacted yet counts beside the row it changes.
    pub rows: u64,
    /// The size of these rows in bytes, in memory and in files.
    pub bytes: u64,
    /// The bytes of memory counted against the budget: state that is not in files, rows between operators, transactions, and
    /// the buffers of operators, merges and file writers.
    pub memory_bytes: u64,
    /// The largest value `memory_bytes` has had.
    pub memory_peak_bytes: u64,
    /// The bytes of free memory that are kept for state to come; they do not count against the budget.
    pub kept_bytes: u64,
    /// The resident bytes of mapped state files.
    pub mapped_bytes: u64,
    /// The size of the state files.
    pub disk_bytes: u64,
    /// The bytes ever written to state files.
    pub spilled_bytes: u64,
}
