//! The dataflow of a physical plan, on one worker.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use alluvium_dataflow::movement::delta::{Delta, DeltaStream, Times, concatenated};
use alluvium_dataflow::movement::exchange::{exchange, exchange_by_key};
use alluvium_dataflow::movement::import::Imports;
use alluvium_dataflow::movement::input::{Input, input};
use alluvium_dataflow::movement::sink::{self, Sink};
use alluvium_dataflow::state::arrangement::{Kept, keep};
use alluvium_dataflow::state::contents::Contents;
use alluvium_dataflow::state::errors::keep_errors;
use alluvium_dataflow::state::states;
use alluvium_dataflow::time::waterlines::Waterlines;
use alluvium_trace::memory::StateContext;
use alluvium_trace::metrics::OperatorLabel;
use alluvium_trace::{Epoch, Origin};
use arrow::array::RecordBatch;
use arrow::buffer::ScalarBuffer;
use timely::dataflow::Scope;
use timely::dataflow::operators::probe::{Handle as Probe, Probe as _};
use timely::worker::Worker;

use super::compile::{KeptRows, NodeLabel, PhysicalPlan};
use super::pruning::PrunedBy;
use super::{OperatorId, State};
use crate::Fingerprint;

/// A view or an index as a worker runs it. Dropping it ends the dataflow and drops the rows on their way in it.
pub struct ViewDataflow {
    /// Its rows, if the plan keeps them.
    pub contents: Option<Contents>,
    /// Its errors, if any of its expressions can fail: (expression, row, message: Utf8; epoch: UInt64).
    pub errors: Option<Contents>,
    /// How far it has come, if its state does not say so.
    pub probe: Option<Probe<Epoch>>,
    /// Where the rows of tables enter that do not keep them.
    pub streams: Vec<StreamInput>,
    /// Where the rows of other dataflows enter. Ends the dataflow when dropped.
    pub imports: Imports,
    /// How many of its changes came too late and were dropped, if it has lateness.
    pub late: Option<Arc<AtomicU64>>,
}

/// Where the rows of a table that does not keep them enter a view.
pub struct StreamInput {
    /// The table.
    pub relation: String,
    columns: Vec<usize>,
    input: Input<Epoch>,
}

impl StreamInput {
    /// Changes rows of the table by weights at `epoch`, which must not be before the last [`StreamInput::advance_to`].
    /// Without weights every row is inserted once. `rows` is called when the dataflow takes them.
    pub fn send(
        &mut self,
        epoch: Epoch,
        rows: impl FnOnce() -> (RecordBatch, Option<ScalarBuffer<i64>>) + 'static,
    ) {
        let columns = self.columns.clone();
        self.input.send(epoch, move || {
            let (rows, weights) = rows();
            let rows = rows.project(&columns).expect("the columns are of the table");
            Delta::new(rows, Times::Same(epoch), weights)
        });
    }

    /// Promises to send nothing before `epoch`.
    pub fn advance_to(&mut self, epoch: Epoch) {
        self.input.advance_to(epoch);
    }
}

/// The relations that a dataflow can read while it is built.
pub trait Relations {
    /// The contents of a table or materialized view, if there is one of this name.
    fn contents(&self, relation: &str) -> Option<Contents>;

    /// The contents of an index, if there is one of this fingerprint.
    fn index(&self, fingerprint: Fingerprint) -> Option<Contents>;

    /// Whether all epochs after `as_of` are still to be sent to the dataflow.
    fn are_present(&self, as_of: Epoch) -> bool;

    /// The waterlines of the tables.
    fn waterlines(&self) -> &Waterlines;

    /// The waterlines of views that the dataflow itself raises.
    fn own_waterlines(&self) -> &Waterlines;

    /// Those that the dataflow of a materialized view raises, if there is one of this name.
    fn waterlines_of(&self, view: &str) -> Option<Waterlines>;
}

/// A dataflow in the making.
pub(crate) struct Rendering<'scope, 'a> {
    scope: Scope<'scope, Epoch>,
    /// The name of the relation that is built.
    name: &'a str,
    as_of: Epoch,
    relations: &'a dyn Relations,
    imports: Imports,
    scans: HashMap<String, Kept<'scope>>,
    /// The rows of the operators built so far.
    rows: Vec<DeltaStream<'scope, Epoch>>,
    /// The operators whose rows the present one reads, if it reads nothing else.
    read: RefCell<Option<Vec<usize>>>,
    streams: Vec<StreamInput>,
    errors: Vec<DeltaStream<'scope, Epoch>>,
    /// How many changes of the relation came too late.
    late: Option<Arc<AtomicU64>>,
    /// Whether the present operator reports its errors.
    reports: bool,
    /// The context of the dataflow, and that of the present operator.
    contexts: (StateContext, StateContext),
}

impl PhysicalPlan {
    /// Builds the dataflow as of `as_of`, the last complete epoch: the contents of its relations enter at that epoch,
    /// later changes at theirs. `relations` has the relations and the indexes that the plan reads.
    pub fn render(
        &self,
        worker: &mut Worker,
        name: &str,
        as_of: Epoch,
        relations: &dyn Relations,
        sink: Option<Box<dyn Sink>>,
        context: &StateContext,
    ) -> ViewDataflow {
        let context = context.for_relation(name);
        worker.dataflow_named::<Epoch, _, _>(name, |scope| {
            let mut rendering = Rendering {
                scope,
                name,
                as_of,
                relations,
                imports: Imports::default(),
                scans: HashMap::new(),
                rows: Vec::with_capacity(self.steps.len()),
                read: RefCell::default(),
                streams: Vec::new(),
                errors: Vec::new(),
                late: None,
                reports: true,
                contexts: (context.clone(), context),
            };
            rendering.build(self);
            rendering.finish(self, sink)
        })
    }
}

impl<'scope> Rendering<'scope, '_> {
    fn build(&mut self, plan: &PhysicalPlan) {
        for (number, step) in plan.steps.iter().enumerate() {
            self.reports = step.reports;
            self.contexts.1 = match &step.state {
                Some(state) => self.pruned(self.context_of(state), step.pruning.as_ref()),
                None => self.contexts.0.clone(),
            };
            let NodeLabel { name, fingerprint } = &*step.node;
            let operator = self.operator(number, name, fingerprint);
            let rows = operator.clone().build(|| step.operator.render(self));
            self.rows.push(rows);
            self.read.take().into_iter().for_each(|read| operator.read(read));
        }
    }

    /// An operator of the dataflow.
    fn operator(&self, number: usize, name: &str, fingerprint: &str) -> Origin {
        let (relation, name) = (self.name.to_owned(), name.to_owned());
        let fingerprint = fingerprint.to_owned();
        let label = OperatorLabel { relation, number, name, fingerprint, ..Default::default() };
        self.read.replace(Some(Vec::new()));
        Origin::here().operator(label, self.contexts.0.metrics())
    }

    fn finish(self, plan: &PhysicalPlan, sink: Option<Box<dyn Sink>>) -> ViewDataflow {
        let name = if sink.is_some() { "send changes" } else { "keep rows" };
        // An index keeps the rows of its root: to those who use it both are one.
        let is_index = plan.kept.as_ref().is_some_and(|kept| kept.key.is_some());
        let root = is_index.then(|| &*plan.steps[plan.root.0].node.fingerprint);
        let operator = self.operator(plan.steps.len(), name, root.unwrap_or_default());
        operator.read(vec![plan.root.0]);
        operator.build(|| self.finish_in(plan, sink))
    }

    fn finish_in(mut self, plan: &PhysicalPlan, sink: Option<Box<dyn Sink>>) -> ViewDataflow {
        let mut rows = self.rows(plan.root);
        let contents = plan.kept.as_ref().map(|KeptRows { key, layout, name, state }| {
            let context = self.context_of(state);
            if let Some(key) = key {
                rows = exchange(rows.clone(), key, &context);
            } else if states::is_dealt() {
                rows = exchange_by_key(rows.clone(), layout, &context);
            }
            let kept = keep(rows.clone(), layout.clone(), name, &context);
            Contents::new(&kept, &context)
        });
        let probe = match sink {
            Some(sink) => Some(sink::sink(rows, sink).probe().0),
            None => contents.is_none().then(|| rows.probe().0),
        };
        let errors = concatenated(std::mem::take(&mut self.errors)).map(|errors| {
            let (spec, state) = &plan.errors;
            let context = self.context_of(state);
            Contents::new(&keep_errors(spec, errors, &context), &context)
        });
        let Self { streams, imports, late, .. } = self;
        ViewDataflow { contents, errors, probe, streams, imports, late }
    }

    /// The scope of the dataflow.
    pub(crate) fn scope(&self) -> Scope<'scope, Epoch> {
        self.scope
    }

    /// The last complete epoch before the dataflow's own changes.
    pub(crate) fn as_of(&self) -> Epoch {
        self.as_of
    }

    /// The context of the state of the present operator.
    pub(crate) fn context(&self) -> StateContext {
        self.contexts.1.clone()
    }

    /// The context of a state.
    pub(crate) fn context_of(&self, state: &State) -> StateContext {
        self.contexts.0.for_state(&state.id, &state.fingerprint.to_string())
    }

    /// The context for state that is pruned by `by`, or not at all, however other state of this context is.
    pub(crate) fn pruned(&self, context: StateContext, by: Option<&PrunedBy>) -> StateContext {
        match by {
            Some(by) => context.with_pruning(by.on_worker(self.relations, self.as_of)),
            None => context.without_pruning(),
        }
    }

    /// The waterlines of views that the dataflow raises.
    pub(crate) fn own_waterlines(&self) -> &Waterlines {
        self.relations.own_waterlines()
    }

    /// Counts the changes of a view that come too late. The count of a view that is expanded in another one is not read.
    pub(crate) fn late_rows(&mut self, view: &str) -> Arc<AtomicU64> {
        match view == self.name {
            true => self.late.get_or_insert_default().clone(),
            false => Arc::default(),
        }
    }

    /// The rows of an operator that has been built.
    pub(crate) fn rows(&self, operator: OperatorId) -> DeltaStream<'scope, Epoch> {
        self.read.borrow_mut().iter_mut().for_each(|read| read.push(operator.0));
        self.rows[operator.0].clone()
    }

    /// The columns `columns` of a table or materialized view.
    pub(crate) fn scan(&mut self, relation: &str, columns: &[usize]) -> DeltaStream<'scope, Epoch> {
        let (contents, context) = (self.contents(relation), self.context());
        if self.relations.are_present(self.as_of)
            && let Some(rows) =
                contents.listen(self.scope, columns, self.as_of, &mut self.imports, &context)
        {
            return rows;
        }
        self.sorted_scan(relation).deltas(columns, &context)
    }

    /// The contents of a table or materialized view.
    fn contents(&self, relation: &str) -> Contents {
        self.read.replace(None);
        let contents = self.relations.contents(relation);
        contents.expect("a relation cannot be dropped while a view of it is built")
    }

    /// The rows of a table or materialized view, sorted by its key.
    pub(crate) fn sorted_scan(&mut self, relation: &str) -> Kept<'scope> {
        if let Some(scan) = self.scans.get(relation) {
            self.read.replace(None);
            return scan.clone();
        }
        let contents = self.contents(relation);
        let scan = contents.import(self.scope, self.as_of, &mut self.imports);
        self.scans.insert(relation.to_owned(), scan.clone());
        scan
    }

    /// The rows of an index.
    pub(crate) fn index(&mut self, fingerprint: Fingerprint) -> Kept<'scope> {
        self.read.replace(None);
        let contents = self
            .relations
            .index(fingerprint)
            .expect("an index is not dropped while a view that uses it is built");
        contents.import(self.scope, self.as_of, &mut self.imports)
    }

    /// The rows of a table that does not keep them.
    pub(crate) fn stream(
        &mut self,
        relation: &str,
        columns: &[usize],
    ) -> DeltaStream<'scope, Epoch> {
        self.read.replace(None);
        let (mut input, rows) = input(self.scope, relation, &self.contexts.0);
        input.advance_to(self.as_of + 1);
        let (relation, columns) = (relation.to_owned(), columns.to_vec());
        self.streams.push(StreamInput { relation, columns, input });
        rows
    }

    /// Adds errors of the present operator to those of the view.
    pub(crate) fn report(&mut self, errors: DeltaStream<'scope, Epoch>) {
        if self.reports {
            self.errors.push(errors);
        }
    }
}
