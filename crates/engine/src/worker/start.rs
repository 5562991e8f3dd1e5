//! The epoch that a dataflow begins with.

use alluvium_trace::Epoch;

/// Where a dataflow starts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    /// The epoch that it is built as of.
    pub(crate) as_of: Epoch,
    /// Whether only changes after that are of use.
    pub(crate) later: bool,
}
