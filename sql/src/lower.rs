//! From plans to dataflows: what a worker builds for a table, a view, a subscription.
//!
//! All workers build the same dataflows in the same order.

use alluvium_dataflow::contents::Contents;
use alluvium_dataflow::input::Input;
use alluvium_trace::Epoch;
use arrow::array::RecordBatch;
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::SchemaRef;
use timely::dataflow::operators::probe::Handle as Probe;
use timely::worker::Worker;

use crate::plan::IncrementalPlan;

/// A table as a worker runs it.
pub struct TableDataflow {
    /// Where its changes enter.
    pub input: Input,
    /// What it holds.
    pub contents: Contents,
    /// How far it has come.
    pub probe: Probe<Epoch>,
    /// Deletions of absent rows, which are refused; counts copies. Only unkeyed tables refuse.
    pub refused: std::sync::Arc<std::sync::atomic::AtomicU64>,
}

/// A view as a worker runs it. Dropping it ends the dataflow; what is on its way is let go.
pub struct ViewDataflow {
    /// Its rows, if it was asked to keep them.
    pub contents: Option<Contents>,
    /// Rows of its errors, if any of its expressions can fail: (expression, row, message: Utf8; epoch: UInt64).
    pub errors: Option<Contents>,
    /// How far it has come.
    pub probe: Probe<Epoch>,
}

/// Takes what comes out of a view, on one worker.
pub trait Sink: 'static {
    /// The changes of one complete epoch on this worker, consolidated, never empty; epochs ascend.
    /// The first epoch's changes are the view's contents as of the epoch it was built at.
    fn changes(&mut self, epoch: Epoch, rows: RecordBatch, weights: ScalarBuffer<i64>);
    /// All epochs before `frontier` are complete on this worker; `None`: there will be no more.
    fn frontier(&mut self, frontier: Option<Epoch>);
}

/// What a dataflow that is being built may read.
pub trait Relations {
    /// The contents of a table or materialized view, if there is one of this name.
    fn contents(&self, relation: &str) -> Option<Contents>;
}

/// Builds a table that starts empty before `start`. `primary_key` is empty for an unkeyed table.
pub fn table(_worker: &mut Worker, _name: &str, _schema: SchemaRef, _primary_key: &[usize], _start: Epoch) -> TableDataflow {
    todo!()
}

/// Builds a view as of `as_of`, the last complete epoch: what its relations hold then enters at that
/// epoch, later changes at theirs.
pub fn view(
    _worker: &mut Worker,
    _name: &str,
    _plan: &IncrementalPlan,
    _as_of: Epoch,
    _relations: &dyn Relations,
    _keep: bool,
    _sink: Option<Box<dyn Sink>>,
) -> ViewDataflow {
    todo!()
}
