//! How much the engine holds.

/// What tables, views and indexes keep, of all workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// How many rows: those of the tables and views, and what operators keep to maintain them. A change that is
    /// not compacted yet counts beside the row it changes.
    pub rows: u64,
    /// How many bytes they take, in memory or in files.
    pub bytes: u64,
    /// How many bytes of memory are counted against the budget: state that is not in files, rows on their way, transactions,
    /// and what operators, merges and writers of files have in hand.
    pub memory_bytes: u64,
    /// The most that ever was.
    pub memory_peak_bytes: u64,
    /// How many bytes of memory are free and kept for state to come, which are not counted against the budget.
    pub kept_bytes: u64,
    /// How many bytes of the files with state were touched through their mappings, so that they are in memory as well.
    pub mapped_bytes: u64,
    /// How many bytes the files with state take.
    pub disk_bytes: u64,
    /// How many bytes were ever written to such files.
    pub spilled_bytes: u64,
}
