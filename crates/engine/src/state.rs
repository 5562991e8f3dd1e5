//! How much the engine holds.

/// What tables, views and indexes keep, of all workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// How many rows: those of the tables and views, and what operators keep to maintain them. A change that is
    /// not compacted yet counts beside the row it changes.
    pub rows: u64,
    /// How many bytes they take.
    pub bytes: u64,
}
