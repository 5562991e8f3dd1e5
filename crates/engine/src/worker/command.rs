//! What a worker is told to do.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium_dataflow::sink::Sink;
use alluvium_sql::physical::{PhysicalPlan, Table};
use alluvium_sql::plan::Fingerprint;
use alluvium_trace::Epoch;
use arrow::buffer::ScalarBuffer;

use crate::transaction::Rows;

/// Names a dataflow, the same on all workers; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct DataflowId(pub u64);

/// One command, as one worker gets it.
pub(crate) enum Command {
    /// Builds a dataflow.
    Install {
        /// What it is called from now on.
        id: DataflowId,
        /// The last epoch before the dataflow's own changes: of all that can come later, nothing is in
        /// flight.
        as_of: Epoch,
        /// What to build.
        dataflow: Dataflow,
    },
    /// Takes a dataflow down, and lets go of what is on its way in it.
    Remove(DataflowId),
    /// Sends an epoch's changes into its tables, and ends the epoch for all tables.
    Commit {
        /// The epoch.
        epoch: Epoch,
        /// This worker's share of the changes.
        changes: Vec<(DataflowId, Vec<Portion>)>,
    },
    /// Takes all dataflows down and ends the thread.
    Shutdown,
    /// Does something on the worker's thread.
    #[cfg(test)]
    Run(fn()),
}

/// A dataflow to build.
pub(crate) enum Dataflow {
    /// A table, empty at first.
    Table {
        /// Its name.
        name: String,
        /// How it runs.
        table: Arc<Table>,
    },
    /// A table that keeps nothing: its rows enter the views that read it.
    Stream {
        /// Its name.
        name: String,
    },
    /// An index: rows that several views share.
    Index {
        /// How it runs.
        plan: Arc<PhysicalPlan>,
        /// The dataflows of the indexes it is made of, among others.
        indexes: Arc<BTreeMap<Fingerprint, DataflowId>>,
    },
    /// A view, or a subscription to one.
    View {
        /// Its name.
        name: String,
        /// How it runs.
        plan: Arc<PhysicalPlan>,
        /// The dataflows of the indexes it reads.
        indexes: Arc<BTreeMap<Fingerprint, DataflowId>>,
        /// Where its changes go on this worker.
        sink: Option<Box<dyn Sink + Send>>,
    },
}

/// Some rows of a transaction that all enter or all leave a table.
#[derive(Clone, Debug)]
pub(crate) struct Portion {
    /// The rows.
    pub rows: Rows,
    /// Their weights; `None` when all enter once.
    pub weights: Option<ScalarBuffer<i64>>,
    /// The place of the first row among the transaction's rows for this table; the others follow.
    pub sequence: u64,
}
