//! What a change costs: the rows that are read. Results are compared with a model in `tests/it/asof.rs`.

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

/// Rows of one key at these times.
fn send(rows: &mut Input<Epoch>, epoch: Epoch, times: Vec<i64>, weight: i64) {
    let count = times.len();
    let keys = Arc::new(Int64Array::from(vec![1; count])) as ArrayRef;
    let times = Arc::new(Int64Array::from(times)) as ArrayRef;
    let batch = RecordBatch::try_new(schema(&["key", "time"]), vec![keys, times]).unwrap();
    let weights = vec![weight; count];
    rows.send(epoch, move || Delta::new(batch, Times::Same(epoch), Some(weights.into())));
}

/// A left join of two inputs by the nearest right row, a probe, and how many changes were emitted.
struct Joined {
    inputs: [Input<Epoch>; 2],
    probe: Handle<Epoch>,
    emitted: Rc<Cell<usize>>,
}

impl Joined {
    fn build(worker: &mut Worker, later: bool) -> Self {
        let context = StateContext::default();
        let (probe, emitted) = (Handle::new(), Rc::new(Cell::new(0)));
        let count = Rc::clone(&emitted);
        let sides = schema(&["key", "time"]);
        let side = Side { schema: &sides, keys: &[0], time: 1 };
        let nearest = Nearest { later, or_equal: true };
        let output = schema(&["key", "time", "key2", "time2"]);
        let spec = Spec::compile(&side, &side, &[], nearest, true, output).unwrap();
        let inputs = worker.dataflow(|scope| {
            let (left_input, left) = input(scope, "left", &context);
            let (right_input, right) = input(scope, "right", &context);
            let contexts = Contexts { left: context.clone(), right: context.clone() };
            let joined = asof_join(&spec, left, right, &contexts);
            joined.probe_with(&probe).sink(Pipeline, "Count", move |(input, _)| {
                input.for_each(|_, delta: &mut Delta<Epoch>| count.set(count.get() + delta.len()));
            });
            [left_input, right_input]
        });
        Self { inputs, probe, emitted }
    }

    /// Ends an epoch; returns how many rows were read for it, and how many changes emitted.
    fn end(&mut self, worker: &mut Worker, epoch: Epoch) -> (usize, usize) {
        READ.set(0);
        self.emitted.set(0);
        self.inputs.iter_mut().for_each(|input| input.advance_to(epoch + 1));
        worker.step_while(|| self.probe.less_than(&(epoch + 1)));
        (READ.get(), self.emitted.get())
    }
}

/// What is read and emitted for changes of one row each beside `size` rows per side: a right row comes, another one goes, a
/// left row comes, and an old one goes.
fn costs(size: i64, later: bool) -> Vec<(usize, usize)> {
    timely::execute_directly(move |worker: &mut Worker| {
        let mut joined = Joined::build(worker, later);
        send(&mut joined.inputs[0], 1, (0..size).map(|at| 4 * at).collect(), 1);
        send(&mut joined.inputs[1], 1, (0..size).map(|at| 4 * at + 1).collect(), 1);
        joined.end(worker, 1);
        let middle = 4 * (size / 2);
        let changes = [(1, middle + 3, 1), (1, middle + 1, -1), (0, middle + 2, 1), (0, 0, -1)];
        let costs = changes.into_iter().zip(2..).map(|((side, at, weight), epoch)| {
            send(&mut joined.inputs[side], epoch, vec![at], weight);
            joined.end(worker, epoch)
        });
        costs.collect()
    })
}

#[test]
fn a_change_reads_the_rows_that_it_reaches_and_not_its_key() {
    for later in [false, true] {
        let (few, many) = (costs(100, later), costs(100_000, later));
        for (few, many) in few.iter().zip(&many) {
            assert_eq!(few, many, "later: {later}");
            assert!(many.0 <= 12 && many.1 <= 2, "{many:?}, later: {later}");
        }
    }
}

#[test]
fn another_copy_of_a_right_row_reads_no_left_row() {
    let cost = timely::execute_directly(|worker: &mut Worker| {
        let mut joined = Joined::build(worker, false);
        send(&mut joined.inputs[0], 1, (10..1000).collect(), 1);
        send(&mut joined.inputs[1], 1, vec![1, 5], 1);
        joined.end(worker, 1);
        send(&mut joined.inputs[1], 2, vec![5], 1);
        joined.end(worker, 2)
    });
    assert!(cost.0 <= 8 && cost.1 == 0, "{cost:?}");
}
