//! The contents of a table or a materialized view: an arrangement of whole rows that any thread can read.

use std::cell::Cell;
use std::rc::Rc;

use alluvium_trace::memory::StateContext;
use alluvium_trace::{Batch, Cursors, Epoch, Spine, Version};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use differential_dataflow::operators::arrange::TraceAgent;
use differential_dataflow::trace::TraceReader;
use timely::dataflow::Scope;
use timely::progress::Antichain;

use crate::arrangement::Kept;
use crate::delta::EncodedDelta;
use crate::import::Imports;
use crate::layout::Layout;
use crate::weight::add;

/// One worker's share of a relation's rows, kept by a dataflow of that worker.
///
/// It holds compaction back: until [`Contents::allow_compaction`] moves it on, every epoch can be read apart
/// from the next. Lives on its worker's thread; clones hold compaction back on their own.
#[derive(Clone)]
pub struct Contents {
    context: StateContext,
    trace: TraceAgent<Spine<Epoch>>,
    layout: Layout,
    /// No rows before this epoch will enter its dataflow.
    promised: Rc<Cell<Epoch>>,
}

impl Contents {
    /// The rows behind an arrangement.
    pub fn new(arrangement: &Kept<'_>, context: &StateContext) -> Self {
        Self {
            context: context.clone(),
            trace: arrangement.arranged.trace.trace().clone(),
            layout: arrangement.layout.clone(),
            promised: Rc::default(),
        }
    }

    /// Promises that no rows before `epoch` will enter its dataflow. Once they are complete as of the last promise, its
    /// contents are complete as of every later epoch, until the next one: imports need not wait for it to advance.
    pub fn advance_to(&mut self, epoch: Epoch) {
        self.promised.set(epoch);
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

    /// Pins the present batches, for reading on any thread, as of any epoch that is complete and that compaction has not
    /// passed.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            version: Version::of(&self.trace),
            layout: self.layout.clone(),
            context: self.context.clone(),
        }
    }

    /// The rows and their changes in another dataflow of the same worker, as of the end of `as_of`;
    /// until `imports` is dropped.
    pub fn import<'scope>(
        &self,
        scope: Scope<'scope, Epoch>,
        as_of: Epoch,
        imports: &mut Imports,
    ) -> Kept<'scope> {
        let promised = Rc::clone(&self.promised);
        imports.import(self.trace.clone(), self.layout.clone(), promised, scope, as_of)
    }
}

/// A pinned version of the batches.
#[derive(Clone)]
pub struct Snapshot {
    version: Version<Epoch>,
    layout: Layout,
    context: StateContext,
}

impl Snapshot {
    /// The rows in these batches, of this layout.
    pub fn of(batches: Vec<Batch<Epoch>>, layout: Layout, context: &StateContext) -> Self {
        Self { version: Version::new(batches), layout, context: context.clone() }
    }

    /// The columns of the rows.
    pub fn schema(&self) -> &SchemaRef {
        self.layout.schema()
    }

    /// The number of updates at all epochs: at least the number of rows.
    pub fn updates(&self) -> usize {
        self.version.batches().map(Batch::len).sum()
    }

    /// The bytes of the updates, in memory and in files.
    pub fn bytes(&self) -> usize {
        self.version.batches().map(Batch::bytes).sum()
    }

    /// The rows as of the end of `epoch`, each as often as its weight says, in batches of bounded
    /// size, ordered by nothing. `columns` selects and orders the columns.
    pub fn read(&self, epoch: Epoch, columns: &[usize]) -> Rows {
        Rows {
            cursors: Cursors::scan(self.version.batches().cloned()),
            copies: 0,
            output: EncodedDelta::new(&self.context),
            layout: self.layout.clone(),
            columns: columns.to_vec(),
            epoch,
        }
    }
}

/// The rows of a snapshot as they are read.
pub struct Rows {
    cursors: Cursors<Epoch>,
    /// How many copies of the current row are still to be emitted.
    copies: i64,
    output: EncodedDelta<Epoch>,
    layout: Layout,
    columns: Vec<usize>,
    epoch: Epoch,
}

impl Rows {
    /// Moves to the next row with a positive weight; returns whether there is one.
    fn advance(&mut self) -> bool {
        while let Some(_key) = self.cursors.key() {
            if self.cursors.val().is_none() {
                self.cursors.step_key();
                continue;
            }
            if self.copies > 0 {
                return true;
            }
            let (mut weight, epoch) = (0, self.epoch);
            self.cursors.updates(|time, change| {
                if time <= epoch {
                    weight = add(weight, change);
                }
            });
            if weight > 0 {
                self.copies = weight;
                return true;
            }
            self.cursors.step_val();
        }
        false
    }
}

impl Iterator for Rows {
    type Item = RecordBatch;

    fn next(&mut self) -> Option<RecordBatch> {
        while !self.output.is_full() && self.advance() {
            if let (Some(key), Some(value)) = (self.cursors.key(), self.cursors.val()) {
                self.output.push(key, value, self.epoch, 1);
            }
            self.copies -= 1;
            if self.copies == 0 {
                self.cursors.step_val();
            }
        }
        Some(self.output.decode(&self.layout, &self.columns)?.rows)
    }
}
