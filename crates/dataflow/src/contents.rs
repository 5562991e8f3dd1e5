//! What a table or a materialized view holds: a readable arrangement of whole rows.

use alluvium_trace::{Batch, Cursors, Epoch, Spine};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use differential_dataflow::operators::arrange::TraceAgent;
use differential_dataflow::trace::TraceReader;
use timely::dataflow::Scope;
use timely::progress::Antichain;

use crate::arrangement::Kept;
use crate::codec::Encoded;
use crate::fold::add;
use crate::import::Imports;
use crate::layout::Layout;

/// How many rows [`Snapshot::read`] puts into one record batch.
const READ_ROWS: usize = 8192;

/// One worker's share of a relation's rows, kept by a dataflow of that worker.
///
/// It holds compaction back: until [`Contents::allow_compaction`] says so, every epoch can be told
/// from the next. Lives on its worker's thread; clones hold compaction back on their own.
#[derive(Clone)]
pub struct Contents {
    trace: TraceAgent<Spine<Epoch>>,
    layout: Layout,
}

impl Contents {
    /// The rows behind an arrangement.
    pub fn new(arrangement: &Kept<'_, Epoch>) -> Self {
        Self { trace: arrangement.arranged.trace.clone(), layout: arrangement.layout.clone() }
    }

    /// The columns of the rows.
    pub fn schema(&self) -> &SchemaRef {
        self.layout.schema()
    }

    /// All epochs before this one are complete here; `None` once no epoch can come any more.
    pub fn frontier(&mut self) -> Option<Epoch> {
        let mut upper = Antichain::new();
        self.trace.read_upper(&mut upper);
        upper.into_option()
    }

    /// Promises not to ask for the contents as of an epoch before `epoch`.
    pub fn allow_compaction(&mut self, epoch: Epoch) {
        let frontier = Antichain::from_elem(epoch);
        self.trace.set_logical_compaction(frontier.borrow());
        self.trace.set_physical_compaction(frontier.borrow());
    }

    /// Pins what is here now, for reading on any thread, as of any epoch that was not yet given up
    /// to compaction and is complete.
    pub fn snapshot(&self) -> Snapshot {
        let mut batches = Vec::new();
        self.trace.map_batches(|batch| batches.push(batch.clone()));
        Snapshot { batches, layout: self.layout.clone() }
    }

    /// The rows and their changes in another dataflow of the same worker, as of the end of `as_of`;
    /// until `imports` is dropped.
    pub fn import<'scope>(
        &self,
        scope: Scope<'scope, Epoch>,
        as_of: Epoch,
        imports: &mut Imports,
    ) -> Kept<'scope, Epoch> {
        imports.import(self.trace.clone(), self.layout.clone(), scope, as_of)
    }
}

/// An immutable list of batches, pinned.
#[derive(Clone)]
pub struct Snapshot {
    batches: Vec<Batch<Epoch>>,
    layout: Layout,
}

impl Snapshot {
    /// The columns of the rows.
    pub fn schema(&self) -> &SchemaRef {
        self.layout.schema()
    }

    /// The rows as of the end of `epoch`, each as often as its weight says, in batches of bounded
    /// size, ordered by nothing. `columns` selects and orders the columns.
    pub fn read(&self, epoch: Epoch, columns: &[usize]) -> Vec<RecordBatch> {
        let mut cursors = Cursors::new(self.batches.iter().cloned());
        let mut keys = Encoded::default();
        let mut values = Encoded::default();
        let mut batches = Vec::new();
        let mut finish = |keys: &mut Encoded, values: &mut Encoded| {
            let batch = self.layout.decode_batch(keys, values, columns);
            batches.push(batch.expect("a batch holds what its layout encoded"));
            keys.clear();
            values.clear();
        };
        while let Some(key) = cursors.key() {
            let Some(value) = cursors.val() else {
                cursors.step_key();
                continue;
            };
            let mut weight = 0;
            cursors.updates(|time, change| {
                if time <= epoch {
                    weight = add(weight, change);
                }
            });
            for _ in 0..weight {
                keys.push(key);
                values.push(value);
                if keys.len() == READ_ROWS {
                    finish(&mut keys, &mut values);
                }
            }
            cursors.step_val();
        }
        if !keys.is_empty() {
            finish(&mut keys, &mut values);
        }
        batches
    }
}
