//! The commands of a worker.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium_dataflow::sink::Sink;
use alluvium_sql::physical::{PhysicalPlan, Table};
use alluvium_sql::plan::Fingerprint;
use alluvium_trace::Epoch;

use crate::transaction::TableChange;

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
    /// Removes a dataflow, and drops the changes on their way in it.
    Remove(DataflowId),
    /// Sends an epoch's changes into its tables, and ends the epoch for all tables.
    Commit {
        /// The epoch.
        epoch: Epoch,
        /// This worker's share of the changes of each table.
        changes: Vec<(DataflowId, Vec<TableChange>)>,
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
