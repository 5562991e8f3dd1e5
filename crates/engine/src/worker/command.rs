//! The commands of a worker.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use alluvium_dataflow::movement::sink::Sink;
use alluvium_dataflow::state::states::{Saved, StateName};
use alluvium_dataflow::time::waterlines::TimeColumn;
use alluvium_sql::physical::{PhysicalPlan, Table};
use alluvium_sql::plan::Fingerprint;
use alluvium_trace::{Batch, Epoch};
use crossbeam_channel::Sender;

use crate::changes::TableChange;

/// Names a dataflow, the same on all workers; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct DataflowId(pub u64);

impl DataflowId {
    /// The name of the dataflow if it is that of an index.
    pub(crate) fn of_index(self) -> String {
        format!("index {}", self.0)
    }
}

/// The state of a dataflow on one worker.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shard {
    /// How many deletions of absent rows were refused, if it is a table.
    pub(crate) refused: u64,
    /// How many writes to rows below a waterline were dropped, if it is a table, or changes, if it is a view with lateness.
    pub(crate) late: u64,
    /// The batches of each trace, in the order of their times.
    pub(crate) states: Vec<(StateName, Vec<Batch<Epoch>>)>,
}

/// The initial state of a dataflow on one worker.
#[derive(Clone, Debug, Default)]
pub(crate) struct Resumed {
    /// As in [`Shard`].
    pub(crate) refused: u64,
    /// As in [`Shard`].
    pub(crate) late: u64,
    pub(crate) saved: Saved,
}

impl Resumed {
    /// Without state: it has had all changes up to an epoch.
    pub(crate) fn behind(epoch: Epoch) -> Self {
        Self { saved: Saved { upper: epoch + 1, ..Saved::default() }, ..Self::default() }
    }
}

/// One command, as one worker gets it.
pub(crate) enum Command {
    /// Builds a dataflow.
    Install {
        /// Its name from now on.
        id: DataflowId,
        /// The last committed epoch, or an earlier one.
        as_of: Epoch,
        /// The dataflow to build.
        dataflow: Dataflow,
        /// Its initial state: everything up to `as_of` has passed through it.
        resumed: Option<Resumed>,
    },
    /// Removes a dataflow, and drops the changes on their way in it.
    Remove(DataflowId),
    /// Sends an epoch's changes into its tables, and ends the epoch.
    Commit {
        /// The epoch.
        epoch: Epoch,
        /// The tables that advance past it, with all that reads them.
        advance: Advance,
        /// How many changes all workers have of it.
        rows: usize,
        /// This worker's share of the changes of each table.
        changes: Vec<(DataflowId, Vec<TableChange>)>,
    },
    /// Waterlines hold from an epoch on, which is not committed yet.
    Raise {
        /// The epoch.
        epoch: Epoch,
        /// Their values.
        raised: Arc<[(TimeColumn, i64)]>,
    },
    /// Waits until all dataflows have what was sent to them, and sends what they keep, with the number of the worker.
    Pin(Sender<(usize, BTreeMap<DataflowId, Shard>)>),
    /// Removes all dataflows and ends the thread.
    Shutdown,
    /// Runs a function on the worker's thread.
    #[cfg(test)]
    Run(fn()),
}

/// The tables that a commit advances. All workers advance the same ones.
#[derive(Clone, Debug)]
pub(crate) enum Advance {
    /// Those it changes, on this worker or another.
    Changed(Arc<[DataflowId]>),
    /// All: operators spill their state when they run, so all of them run while memory is short.
    All,
}

/// The dataflows that another one reads: of all that have been ordered before it, whether or not they have caught up.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    /// Those of tables and views, by name.
    pub(crate) relations: BTreeMap<String, DataflowId>,
    /// Those of indexes, also of such as are only parts of others.
    pub(crate) indexes: BTreeMap<Fingerprint, DataflowId>,
    /// Those of views whose waterlines it may ask for, by name, whether it reads them itself or through an index.
    pub(crate) waterlines: BTreeMap<String, DataflowId>,
}

impl Reads {
    /// Each whose rows it reads once.
    pub(super) fn ids(&self) -> Vec<DataflowId> {
        let all = self.relations.values().chain(self.indexes.values());
        all.copied().collect::<BTreeSet<_>>().into_iter().collect()
    }
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
        /// The dataflows it reads.
        reads: Arc<Reads>,
    },
    /// A view, or a subscription to one.
    View {
        /// Its name.
        name: String,
        /// How it runs.
        plan: Arc<PhysicalPlan>,
        /// The dataflows it reads.
        reads: Arc<Reads>,
        /// Where this worker sends its changes.
        sink: Option<Box<dyn Sink + Send>>,
        /// Whether commits and checkpoints wait for it also while it is filled.
        counts: bool,
    },
}
