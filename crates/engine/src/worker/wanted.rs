//! The epoch that a reader wants of dataflows.

use alluvium_trace::Epoch;

use super::command::DataflowId;

/// Whether an epoch has to be durable to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Durable {
    /// The reader shows its results to others.
    Yes,
    /// The reader's own results are durable only after the epoch is.
    No,
}

/// Which epoch is read.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    pub(super) at_least: Epoch,
    pub(super) durable: Durable,
    /// Whether nothing is compacted beyond it.
    pub(super) is_held: bool,
}

impl Wanted {
    pub(super) fn new(at_least: Epoch, durable: Durable) -> Self {
        Self { at_least, durable, is_held: false }
    }
}

/// Whether dataflows can be read.
pub(super) enum Readable {
    /// All of them as of this epoch.
    At(Epoch),
    /// Not before this epoch is complete in this one.
    Later(DataflowId, Epoch),
    /// Not before this one has caught up.
    Filling(DataflowId),
    /// One of them is gone.
    Never,
}
