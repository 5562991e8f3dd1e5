//! What a table or a materialized view holds: a readable arrangement of whole rows.

use alluvium_trace::Epoch;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

/// One worker's share of a relation's rows, kept by a dataflow of that worker.
///
/// It holds compaction back: until [`Contents::allow_compaction`] says so, every epoch can be told
/// from the next. Lives on its worker's thread; clones hold compaction back on their own.
#[derive(Clone)]
pub struct Contents {
    schema: SchemaRef,
}

impl Contents {
    /// The columns of the rows.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// All epochs before this one are complete here; `None` once no epoch can come any more.
    pub fn frontier(&mut self) -> Option<Epoch> {
        todo!()
    }

    /// Promises not to ask for the contents as of an epoch before `epoch`.
    pub fn allow_compaction(&mut self, _epoch: Epoch) {
        todo!()
    }

    /// Pins what is here now, for reading on any thread, as of any epoch that was not yet given up
    /// to compaction and is complete.
    pub fn snapshot(&self) -> Snapshot {
        todo!()
    }
}

/// An immutable list of batches, pinned.
#[derive(Clone)]
pub struct Snapshot {
    schema: SchemaRef,
}

impl Snapshot {
    /// The columns of the rows.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The rows as of the end of `epoch`, each as often as its weight says, in batches of bounded
    /// size, ordered by nothing. `columns` selects and orders the columns.
    pub fn read(&self, _epoch: Epoch, _columns: &[usize]) -> Vec<RecordBatch> {
        todo!()
    }
}
