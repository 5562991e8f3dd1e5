//! The settings of an engine, fixed when it starts.

use std::time::Duration;

/// The settings of an engine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// How many threads the dataflows run on.
    pub(crate) workers: usize,
    /// How many rows an input's transaction has at most.
    pub(crate) batch_rows: usize,
    /// How many bytes an input's transaction has at most, give or take one row.
    pub(crate) batch_bytes: usize,
    /// For how many epochs the changes of relations are kept.
    pub(crate) history: u64,
    /// For how long they are kept, if that is longer.
    pub(crate) history_time: Duration,
    /// How many bytes of rows may have been committed since the oldest one that is kept.
    pub(crate) history_bytes: u64,
    /// A statement that takes so long is logged; zero: none is.
    pub(crate) slow_statement: Duration,
    /// Makes the verifier of a password.
    pub(crate) password_verifier: Option<fn(&str) -> String>,
    /// Whether the first row that is refused, or fails in a view, is fatal.
    pub(crate) strict: bool,
    /// Whether the rows of inputs are recorded that could be read again: another machine may not have the files.
    pub(crate) records_rows: bool,
}
