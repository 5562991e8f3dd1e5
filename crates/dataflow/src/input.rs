//! Where changes enter a dataflow.

use alluvium_trace::Epoch;
use arrow::array::RecordBatch;
use arrow::buffer::ScalarBuffer;

/// The worker's end of a table's input.
///
/// Sends are in epoch order. Dropping it closes the table: its dataflow, and all that reads from
/// it, finishes what is on its way and ends.
pub struct Input {}

impl Input {
    /// Rows that enter (weight one, or above for copies) or leave (weight below zero) at `epoch`,
    /// which must not be before the last [`Input::advance_to`]. Without weights, all enter.
    ///
    /// For a keyed table a row that enters replaces the row of its key, and of a row that leaves only
    /// the key counts; `sequence` numbers the first row, the others follow, and within an epoch the
    /// highest number wins over all workers.
    pub fn send(
        &mut self,
        _epoch: Epoch,
        _rows: RecordBatch,
        _weights: Option<ScalarBuffer<i64>>,
        _sequence: u64,
    ) {
        todo!()
    }

    /// Promises to send nothing before `epoch`.
    pub fn advance_to(&mut self, _epoch: Epoch) {
        todo!()
    }
}
