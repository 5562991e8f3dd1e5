//! Kernels of the operators: an epoch of 10,000 rows meets state that 50,000 rows have left.

use std::hint::black_box;
use std::time::Instant;

use alluvium_dataflow::joins::join::{self, join};
use alluvium_dataflow::movement::delta::{Delta, DeltaStream};
use alluvium_dataflow::movement::input::{Input, input};
use alluvium_dataflow::reductions::aggregate::{self, Aggregate, Function, aggregate};
use alluvium_dataflow::reductions::distinct::{self, distinct};
use alluvium_dataflow::reductions::ranked::top::{self, Numbering, Top, top};
use alluvium_dataflow::rows::codec::Encoded;
use alluvium_dataflow::rows::layout::{Layout, all_columns};
use alluvium_dataflow::state::arrangement::keep;
use alluvium_trace::Epoch;
use alluvium_trace::memory::StateContext;
use alluvium_trace::memory::context;
use arrow::array::RecordBatch;
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use gungraun::{library_benchmark, library_benchmark_group};
use timely::WorkerConfig;
use timely::communication::Allocator;
use timely::communication::allocator::thread::Thread;
use timely::dataflow::operators::probe::{Handle, Probe};
use timely::worker::Worker;

use crate::baseline::thousands;
use crate::rows::{rows, schema};

/// Rows that are there before.
const BEFORE: usize = 50_000;
/// Rows of the epoch that is counted.
const ROWS: usize = 10_000;

/// A worker whose dataflow has taken the rows that are there before.
struct Flow {
    worker: Worker,
    input: Input<Epoch>,
    probe: Handle<Epoch>,
    rows: RecordBatch,
}

impl Flow {
    fn new<B>(build: B) -> Self
    where
        B: for<'scope> FnOnce(
            DeltaStream<'scope, Epoch>,
            &StateContext,
        ) -> DeltaStream<'scope, Epoch>,
    {
        let allocator = Allocator::Thread(Thread::default());
        let mut worker = Worker::new(WorkerConfig::default(), allocator, Some(Instant::now()));
        let context = context::current();
        let (input, probe) = worker.dataflow(|scope| {
            let (input, rows) = input(scope, "Rows", &context);
            let (probe, _) = build(rows, &context).probe();
            (input, probe)
        });
        let rows = made(BEFORE, ROWS);
        let mut flow = Flow { worker, input, probe, rows };
        flow.run(1, made(0, BEFORE));
        flow
    }

    /// Completes an epoch that inserts these rows.
    fn run(&mut self, epoch: Epoch, rows: RecordBatch) {
        self.input.send(epoch, move || Delta::insertions(rows, epoch));
        self.input.advance_to(epoch + 1);
        while self.probe.less_equal(&epoch) {
            self.worker.step();
        }
    }
}

fn made(first: usize, count: usize) -> RecordBatch {
    rows(first, count, BEFORE + ROWS).expect("columns fit to the schema")
}

fn numbers(names: &[&str]) -> SchemaRef {
    let field = |name: &&str| Field::new(*name, DataType::Int64, true);
    Schema::new(names.iter().map(field).collect::<Vec<_>>()).into()
}

fn keyed(columns: &[usize]) -> Layout {
    Layout::keyed(schema(), columns).expect("the columns can be keys")
}

/// An arrangement by the unique `id`, which is what a table with a primary key keeps.
fn by_id() -> Flow {
    Flow::new(|rows, context| keep(rows, keyed(&[0]), "Rows", context).deltas(&[0], context))
}

fn groups(functions: &[(Function, Option<usize>)], names: &'static [&str]) -> Flow {
    let aggregates: Vec<_> = functions
        .iter()
        .map(|&(function, input)| Aggregate {
            function,
            input,
            rank: None,
            distinct: false,
            filter: None,
            result: DataType::Int64,
        })
        .collect();
    let output = numbers(names);
    let spec = aggregate::Spec::compile(&schema(), &[1], &aggregates, &[], false, &output);
    let spec = spec.expect("the columns can be grouped");
    Flow::new(|rows, context| aggregate(&spec, rows, context).rows)
}

fn sums() -> Flow {
    groups(&[(Function::Count, None), (Function::Sum, Some(2))], &["group", "rows", "sum"])
}

fn greatest() -> Flow {
    groups(&[(Function::Max, Some(2))], &["group", "greatest"])
}

fn three_greatest() -> Flow {
    let order = [(2, SortOptions { descending: true, nulls_first: false })];
    let which = Top { numbering: Numbering::Row, skip: 0, take: Some(3), numbered: false };
    let spec = top::Spec::compile(&schema(), &[1], &order, which, false, schema());
    let spec = spec.expect("the columns can be ranked");
    Flow::new(|rows, context| top(&spec, rows, context))
}

fn different() -> Flow {
    let spec = distinct::Spec::compile(schema()).expect("the columns can be keys");
    Flow::new(|rows, context| distinct(&spec, rows, context))
}

/// Each row with the one that has its group as its `id`.
fn pairs() -> Flow {
    let schema = schema();
    let spec = join::Spec::new((&schema, &[0, 2]), (&schema, &[3]));
    Flow::new(|rows, context| {
        let left = keep(rows.clone(), keyed(&[1]), "Left", context);
        let right = keep(rows, keyed(&[0]), "Right", context);
        join(&spec, left, right, context)
    })
}

#[library_benchmark]
#[bench::by_id(args = (), setup = by_id, config = thousands(19_718))]
#[bench::sums(args = (), setup = sums, config = thousands(19_959))]
#[bench::greatest(args = (), setup = greatest, config = thousands(20_799))]
#[bench::three_greatest(args = (), setup = three_greatest, config = thousands(22_928))]
#[bench::different(args = (), setup = different, config = thousands(39_672))]
#[bench::pairs(args = (), setup = pairs, config = thousands(32_356))]
fn epoch(mut flow: Flow) -> Flow {
    let rows = flow.rows.clone();
    flow.run(2, rows);
    black_box(flow)
}

#[library_benchmark]
#[bench::sums(args = (), setup = sums, config = thousands(132))]
#[bench::pairs(args = (), setup = pairs, config = thousands(144))]
fn one_row(mut flow: Flow) -> Flow {
    let row = flow.rows.slice(0, 1);
    flow.run(2, row);
    black_box(flow)
}

#[library_benchmark]
#[bench::rows(args = (BEFORE, ROWS), setup = made, config = thousands(2_295))]
fn encode(rows: RecordBatch) -> (Encoded, Encoded) {
    black_box(encoded(&rows))
}

fn encoded(rows: &RecordBatch) -> (Encoded, Encoded) {
    let (mut keys, mut values) = (Encoded::new(), Encoded::new());
    keyed(&[0]).encode(rows, &mut keys, &mut values);
    (keys, values)
}

fn made_and_encoded() -> (Encoded, Encoded) {
    encoded(&made(BEFORE, ROWS))
}

#[library_benchmark]
#[bench::rows(args = (), setup = made_and_encoded, config = thousands(3_420))]
fn decode((keys, values): (Encoded, Encoded)) -> RecordBatch {
    black_box(keyed(&[0]).decode_batch(&keys, &values, &all_columns(&schema())))
}

library_benchmark_group!(name = of_operators, benchmarks = [epoch, one_row, encode, decode]);
