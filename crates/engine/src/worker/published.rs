//! What a worker shows to other threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use alluvium_dataflow::state::snapshot::Snapshot;
use alluvium_dataflow::time::waterlines::Waterlines;
use alluvium_trace::Epoch;

use super::command::DataflowId;

/// The part of one dataflow that has caught up, as one worker publishes it.
#[derive(Clone, Default)]
pub(crate) struct Published {
    /// It can be read as of this epoch and later ones.
    pub(crate) since: Epoch,
    /// Its rows, if it keeps them.
    pub(crate) contents: Option<Snapshot>,
    /// Its errors, if it can have any.
    pub(crate) errors: Option<Snapshot>,
    /// How many deletions of absent rows were refused, if it is a table.
    pub(crate) refused: Option<Arc<AtomicU64>>,
    /// How many writes to rows below a waterline were dropped, if it is a table, or changes, if it is a view with lateness.
    pub(crate) late: Option<Arc<AtomicU64>>,
    /// The waterlines of such a view.
    pub(crate) waterlines: Option<Waterlines>,
}

impl Published {
    /// How many deletions were refused.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.as_ref().map_or(0, |count| count.load(Ordering::Relaxed))
    }

    /// How many writes or changes were dropped.
    pub(crate) fn late(&self) -> u64 {
        self.late.as_ref().map_or(0, |count| count.load(Ordering::Relaxed))
    }
}

/// How far a worker has come.
pub(crate) struct Reached {
    /// All epochs before this one are complete on the worker.
    pub(crate) frontier: Epoch,
    /// All epochs before this one have been sent to its dataflows.
    pub(crate) sent: Epoch,
    /// The dataflows that do not have all that was sent to them, and the first epoch that is not complete in each.
    pub(crate) behind: Vec<(DataflowId, Epoch)>,
}
