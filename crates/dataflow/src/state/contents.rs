//! The contents of a table or a materialized view: an arrangement of whole rows that any thread can read.

use std::cell::Cell;
use std::rc::Rc;

use alluvium_trace::memory::StateContext;
use alluvium_trace::{Epoch, Spine, Version};
use arrow::datatypes::SchemaRef;
use differential_dataflow::operators::arrange::TraceAgent;
use differential_dataflow::trace::TraceReader;
use timely::dataflow::Scope;
use timely::progress::Antichain;

use crate::movement::delta::DeltaStream;
use crate::movement::import::{Imports, Published};
use crate::movement::publication::Publication;
use crate::rows::layout::Layout;
use crate::state::arrangement::Kept;
use crate::state::snapshot::Snapshot;

/// One worker's share of a relation's rows, kept by a dataflow of that worker.
///
/// It holds compaction back: until [`Contents::allow_compaction`] moves it on, every epoch can be read apart
/// from the next. Lives on its worker's thread; clones hold compaction back on their own.
#[derive(Clone)]
pub struct Contents {
    context: StateContext,
    trace: TraceAgent<Spine<Epoch>>,
    layout: Layout,
    /// Where its changes are published, if it is a table.
    publication: Option<Publication>,
    /// No rows before this epoch will enter its dataflow.
    promised: Rc<Cell<Epoch>>,
}

impl Contents {
    /// The rows of an arrangement.
    pub fn new(arrangement: &Kept<'_>, context: &StateContext) -> Self {
        Self {
            context: context.clone(),
            trace: arrangement.arranged.trace.trace().clone(),
            layout: arrangement.layout.clone(),
            publication: None,
            promised: Rc::default(),
        }
    }

    /// The same, whose changes are published.
    #[must_use]
    pub fn published(self, publication: Publication) -> Self {
        Self { promised: publication.begins(), publication: Some(publication), ..self }
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

    /// Promises not to ask for the contents as of an epoch before `epoch`, nor for changes of epochs up to `first`.
    pub fn allow_compaction(&mut self, epoch: Epoch, first: Epoch) {
        let logical = Antichain::from_elem(epoch.min(first));
        self.trace.set_logical_compaction(logical.borrow());
        self.trace.set_physical_compaction(Antichain::from_elem(epoch).borrow());
    }

    /// Pins the present batches, for reading on any thread, as of any epoch that is complete and that compaction has not
    /// passed.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(Version::of(&self.trace), self.layout.clone(), self.context.clone())
    }

    /// The columns `columns` of its rows and their changes in another dataflow of the same worker, as of the end of `as_of`, the
    /// last epoch that it is promised to have; until `imports` is dropped. `None` if its changes are not published.
    pub fn listen<'scope>(
        &self,
        scope: Scope<'scope, Epoch>,
        columns: &[usize],
        as_of: Epoch,
        imports: &mut Imports,
        context: &StateContext,
    ) -> Option<DeltaStream<'scope, Epoch>> {
        let table = Published {
            publication: self.publication.as_ref()?,
            trace: &self.trace,
            layout: &self.layout,
            promised: &self.promised,
        };
        Some(imports.listen(&table, columns, scope, as_of, context))
    }

    /// The rows and their changes, sorted, in another dataflow of the same worker, as of the end of `as_of`;
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
