//! The cost of a join of two inputs: the rows that are read, and the changes that are emitted.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use alluvium_trace::Epoch;
use alluvium_trace::memory::StateContext;
use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::operator::Operator;
use timely::dataflow::operators::probe::{Handle, Probe};
use timely::worker::Worker;

use crate::joins::row_pairs::Contexts;
use crate::movement::delta::{Delta, DeltaStream, Times};
use crate::movement::input::{Input, input};
use crate::reductions::reduce::READ;

/// Columns of numbers.
pub(crate) fn schema(columns: &[&str]) -> SchemaRef {
    let number = |name: &&str| Field::new(*name, DataType::Int64, true);
    Arc::new(Schema::new(columns.iter().map(number).collect::<Vec<_>>()))
}

/// Two inputs of rows of numbers, a probe of their join, and how many changes that has emitted.
pub(crate) struct Joined {
    inputs: [Input<Epoch>; 2],
    columns: SchemaRef,
    probe: Handle<Epoch>,
    emitted: Rc<Cell<usize>>,
}

impl Joined {
    /// Joins rows of these columns.
    pub(crate) fn build(
        worker: &mut Worker,
        columns: &SchemaRef,
        join: impl for<'scope> FnOnce(
            DeltaStream<'scope, Epoch>,
            DeltaStream<'scope, Epoch>,
            &Contexts,
        ) -> DeltaStream<'scope, Epoch>,
    ) -> Self {
        let context = StateContext::default();
        let (probe, emitted) = (Handle::new(), Rc::new(Cell::new(0)));
        let count = Rc::clone(&emitted);
        let inputs = worker.dataflow(|scope| {
            let (left_input, left) = input(scope, "left", &context);
            let (right_input, right) = input(scope, "right", &context);
            let contexts = Contexts { left: context.clone(), right: context.clone() };
            let joined = join(left, right, &contexts);
            joined.probe_with(&probe).sink(Pipeline, "Count", move |(input, _)| {
                input.for_each(|_, delta: &mut Delta<Epoch>| count.set(count.get() + delta.len()));
            });
            [left_input, right_input]
        });
        Self { inputs, columns: columns.clone(), probe, emitted }
    }

    /// Sends rows, given by column, to the left side, 0, or the right one, 1.
    pub(crate) fn send(&mut self, side: usize, epoch: Epoch, rows: Vec<Vec<i64>>, weight: i64) {
        let weights = vec![weight; rows[0].len()];
        let columns = rows.into_iter().map(|column| Arc::new(Int64Array::from(column)) as ArrayRef);
        let batch = RecordBatch::try_new(self.columns.clone(), columns.collect()).unwrap();
        let delta = move || Delta::new(batch, Times::Same(epoch), Some(weights.into()));
        self.inputs[side].send(epoch, delta);
    }

    /// Ends an epoch; returns how many rows were read for it, and how many changes emitted.
    pub(crate) fn end(&mut self, worker: &mut Worker, epoch: Epoch) -> (usize, usize) {
        READ.set(0);
        self.emitted.set(0);
        self.inputs.iter_mut().for_each(|input| input.advance_to(epoch + 1));
        worker.step_while(|| self.probe.less_than(&(epoch + 1)));
        (READ.get(), self.emitted.get())
    }
}
