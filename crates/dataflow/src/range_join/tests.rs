//! What a change costs: the rows that are read. Results are compared with a model in the engine's tests.

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

use super::*;
use crate::delta::{Delta, Times};
use crate::input::{Input, input};
use crate::reduce::READ;

fn schema(columns: &[&str]) -> SchemaRef {
    let number = |name: &&str| Field::new(*name, DataType::Int64, true);
    Arc::new(Schema::new(columns.iter().map(number).collect::<Vec<_>>()))
}

/// Rows of one column.
fn send(rows: &mut Input<Epoch>, epoch: Epoch, values: Vec<i64>, weight: i64) {
    let weights = vec![weight; values.len()];
    let values = Arc::new(Int64Array::from(values)) as ArrayRef;
    let batch = RecordBatch::try_new(schema(&["value"]), vec![values]).unwrap();
    rows.send(epoch, move || Delta::new(batch, Times::Same(epoch), Some(weights.into())));
}

/// The values that are greater than those of the right side, how many rows were read for an epoch, and how many changes emitted.
struct Filtered {
    inputs: [Input<Epoch>; 2],
    probe: Handle<Epoch>,
    emitted: Rc<Cell<usize>>,
}

impl Filtered {
    fn build(worker: &mut Worker) -> Self {
        let context = StateContext::default();
        let (probe, emitted) = (Handle::new(), Rc::new(Cell::new(0)));
        let count = Rc::clone(&emitted);
        let side = schema(&["value"]);
        let low = Some(End { column: 0, is_included: false });
        let ends = Ends { low, high: None };
        let left = Left { schema: &side, keys: &[], value: 0 };
        let right = Right { schema: &side, keys: &[], ends, payload: &[] };
        let spec = Spec::compile(&left, &right, side.clone()).unwrap();
        let inputs = worker.dataflow(|scope| {
            let (left_input, left) = input(scope, "left", &context);
            let (right_input, right) = input(scope, "right", &context);
            let contexts = Contexts { left: context.clone(), right: context.clone() };
            let joined = range_join(&spec, left, right, &contexts);
            joined.probe_with(&probe).sink(Pipeline, "Count", move |(input, _)| {
                input.for_each(|_, delta: &mut Delta<Epoch>| count.set(count.get() + delta.len()));
            });
            [left_input, right_input]
        });
        Self { inputs, probe, emitted }
    }

    fn end(&mut self, worker: &mut Worker, epoch: Epoch) -> (usize, usize) {
        READ.set(0);
        self.emitted.set(0);
        self.inputs.iter_mut().for_each(|input| input.advance_to(epoch + 1));
        worker.step_while(|| self.probe.less_than(&(epoch + 1)));
        (READ.get(), self.emitted.get())
    }
}

#[test]
fn an_end_that_moves_reads_the_rows_that_it_passes_and_a_row_reads_the_ends() {
    for size in [100, 100_000] {
        timely::execute_directly(move |worker: &mut Worker| {
            let mut filtered = Filtered::build(worker);
            let middle = size / 2;
            send(&mut filtered.inputs[0], 1, (0..size).collect(), 1);
            send(&mut filtered.inputs[1], 1, vec![middle], 1);
            let (_, emitted) = filtered.end(worker, 1);
            assert_eq!(emitted as i64, size - 1 - middle);
            // The rows up to the new end go, and come again.
            for (epoch, from, to) in [(2, middle, middle + 3), (3, middle + 3, middle)] {
                send(&mut filtered.inputs[1], epoch, vec![from], -1);
                send(&mut filtered.inputs[1], epoch, vec![to], 1);
                let (read, emitted) = filtered.end(worker, epoch);
                assert_eq!(emitted, 3);
                assert!(read <= 6, "{read} of {size} rows");
            }
            send(&mut filtered.inputs[0], 4, vec![middle + 1], 1);
            let (read, emitted) = filtered.end(worker, 4);
            assert_eq!(emitted, 1);
            assert!(read <= 4, "{read} of {size} rows");
        });
    }
}

#[test]
fn an_end_that_goes_and_comes_again_reads_no_row() {
    let (read, emitted) = timely::execute_directly(|worker: &mut Worker| {
        let mut filtered = Filtered::build(worker);
        send(&mut filtered.inputs[0], 1, (0..1000).collect(), 1);
        send(&mut filtered.inputs[1], 1, vec![500], 1);
        filtered.end(worker, 1);
        send(&mut filtered.inputs[1], 2, vec![500], -1);
        send(&mut filtered.inputs[1], 2, vec![500], 1);
        filtered.end(worker, 2)
    });
    assert!(read <= 2 && emitted == 0, "{read} {emitted}");
}
