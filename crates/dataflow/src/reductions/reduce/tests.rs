//! The drivers alone: fuel, yielding and frontiers. The tests of the operators compare results with a model.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use alluvium_trace::memory::{MemoryBudget, StateContext};
use alluvium_trace::{Batch, Cursors, Epoch, Spine};
use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use differential_dataflow::trace::TraceReader;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::operator::Operator;
use timely::dataflow::operators::probe::{Handle, Probe};
use timely::worker::Worker;

use super::*;
use crate::joins::semijoin::{Match, Wanted, semijoin};
use crate::movement::delta::{Delta, Times};
use crate::movement::import::Imports;
use crate::movement::input::{Input, input};
use crate::reductions::recompute::{Evaluator, Groups, Results, recompute};
use crate::rows::layout::Layout;
use crate::state::arrangement::{arrange, keep};
use crate::state::contents::Contents;
use crate::state::states::{self, Saved, States};

/// The number of rows under each key, as eight bytes. Counts how often it is called for a batch of keys.
struct Count(Rc<Cell<usize>>);

impl Logic for Count {
    fn prepare(&mut self, _changes: &Changes) {
        self.0.set(self.0.get() + 1);
    }

    fn reduce(
        &mut self,
        changes: &Changes,
        key: usize,
        prior: &mut Prior<'_>,
        output: &mut Output,
    ) {
        let mut held = Vec::new();
        let mut count = match prior.only_output(changes.key(key), &mut held) {
            true => i64::from_be_bytes(held[..].try_into().unwrap()),
            false => 0,
        };
        for slice in changes.time_slices(key) {
            let time = changes.change(slice.start).time;
            if count != 0 {
                output.push(&count.to_be_bytes(), time, -1);
            }
            count += slice.map(|row| changes.change(row).weight).sum::<i64>();
            if count != 0 {
                output.push(&count.to_be_bytes(), time, 1);
            }
        }
    }
}

/// A key, a value, a time and a weight.
type Update = (Vec<u8>, Vec<u8>, Epoch, i64);

fn updates(batches: Vec<Batch<Epoch>>) -> Vec<Update> {
    let mut found = Vec::new();
    let mut cursors = Cursors::new(batches);
    while let Some(key) = cursors.key() {
        let key = key.to_vec();
        while let Some(value) = cursors.val() {
            let value = value.to_vec();
            cursors.updates(|time, weight| found.push((key.clone(), value.clone(), time, weight)));
            cursors.step_val();
        }
        cursors.step_key();
    }
    found.sort();
    found
}

/// The rows with their weights, whatever the times.
fn present(batches: Vec<Batch<Epoch>>) -> BTreeMap<(Vec<u8>, Vec<u8>), i64> {
    let mut present = BTreeMap::new();
    for (key, value, _, weight) in updates(batches) {
        *present.entry((key, value)).or_default() += weight;
    }
    present.retain(|_, weight| *weight != 0);
    present
}

fn schema() -> SchemaRef {
    let number = |name| Field::new(name, DataType::Int64, false);
    Arc::new(Schema::new(vec![number("key"), number("value")]))
}

fn send(rows: &mut Input<Epoch>, epoch: Epoch, changes: Vec<(i64, i64, i64)>) {
    let column = |numbers: Vec<i64>| Arc::new(Int64Array::from(numbers)) as ArrayRef;
    let keys = column(changes.iter().map(|change| change.0).collect());
    let values = column(changes.iter().map(|change| change.1).collect());
    let weights: Vec<i64> = changes.iter().map(|change| change.2).collect();
    let batch = RecordBatch::try_new(schema(), vec![keys, values]).unwrap();
    rows.send(epoch, move || Delta::new(batch, Times::Same(epoch), Some(weights.into())));
    rows.advance_to(epoch + 1);
}

type Emitted = Rc<RefCell<Vec<Batch<Epoch>>>>;

/// Keeps the dataflow alive; then the trace and the batches of the output, the number of calls, and the progress.
type Counted = (Imports, Reader, Emitted, Rc<Cell<usize>>, Handle<Epoch>);

/// Counts the rows of `contents` as of `as_of`, in a dataflow of its own.
fn counted(
    worker: &mut Worker,
    context: &StateContext,
    contents: &Contents,
    as_of: Epoch,
    saved: Option<Saved>,
) -> (Counted, States) {
    let build = || {
        worker.dataflow(|scope| {
            let mut imports = Imports::default();
            let emitted = Emitted::default();
            let (calls, probe) = (Rc::new(Cell::new(0)), Handle::new());
            let rows = contents.import(scope, as_of, &mut imports);
            let counts = reduce::<Spine<Epoch>, _>(
                rows.arranged,
                "Count",
                String::new(),
                context,
                Count(Rc::clone(&calls)),
            );
            let seen = Rc::clone(&emitted);
            counts.stream.probe_with(&probe).sink(Pipeline, "Seen", move |(input, _)| {
                input.for_each(|_, batches: &mut Vec<Batch<Epoch>>| {
                    seen.borrow_mut().append(batches);
                });
            });
            (imports, counts.trace, emitted, calls, probe)
        })
    };
    states::build(saved, build)
}

type Reader = differential_dataflow::operators::arrange::TraceAgent<Spine<Epoch>>;

fn batches(trace: &Reader) -> Vec<Batch<Epoch>> {
    let mut batches = Vec::new();
    trace.map_batches(|batch| batches.push(batch.clone()));
    batches
}

fn table(worker: &mut Worker, context: &StateContext) -> (Input<Epoch>, Contents) {
    worker.dataflow(|scope| {
        let (end, stream) = input(scope, "rows", context);
        let layout = Layout::keyed(schema(), &[0]).unwrap();
        (end, Contents::new(&keep(stream, layout, "Rows", context), context))
    })
}

#[test]
fn an_output_that_was_saved_is_continued_and_not_emitted_again() {
    timely::execute_directly(|worker| {
        let context = StateContext::default();
        let (mut rows, contents) = table(worker, &context);
        let ((_imports, first, ..), states) = counted(worker, &context, &contents, 0, None);
        send(&mut rows, 1, vec![(1, 10, 1), (2, 20, 1)]);
        send(&mut rows, 2, vec![(1, 11, 2), (3, 30, 1)]);
        send(&mut rows, 3, vec![(2, 20, -1)]);
        let mut upper = timely::progress::Antichain::from_elem(0);
        while upper.elements() != [4] {
            worker.step();
            first.clone().read_upper(&mut upper);
        }
        let before = batches(&first);
        let pinned = states.pin().into_iter().map(|(name, batches)| (name, vec![batches]));
        let saved = Saved { upper: 4, batches: pinned.collect(), ..Saved::default() };

        // Earlier counts are known; only later changes are counted, and lead to the same output.
        let ((_imports, second, emitted, calls, probe), _) =
            counted(worker, &context, &contents, 3, Some(saved));
        while probe.less_than(&4) {
            worker.step();
        }
        assert_eq!((emitted.borrow().len(), calls.get()), (0, 0));
        assert_eq!(present(batches(&second)), present(before));

        send(&mut rows, 4, vec![(1, 10, -1), (4, 40, 5)]);
        send(&mut rows, 5, vec![(3, 30, -1)]);
        while probe.less_than(&6) {
            worker.step();
        }
        let key = |number: i64| (number as u64 ^ 1 << 63).to_be_bytes();
        let found: Vec<_> = updates(emitted.borrow().clone())
            .into_iter()
            .map(|(bytes, value, time, weight)| {
                let number = (1..5).find(|&number| bytes.ends_with(&key(number))).unwrap();
                (number, i64::from_be_bytes(value.try_into().unwrap()), time, weight)
            })
            .collect();
        assert_eq!(found, [(1, 2, 4, 1), (1, 3, 4, -1), (3, 1, 5, -1), (4, 5, 4, 1)]);
        assert_eq!(present(batches(&first)), present(batches(&second)));
    });
}

#[test]
fn a_large_interval_takes_several_activations_and_is_one_batch() {
    timely::execute_directly(|worker| {
        let budget = MemoryBudget::new(4 << 20);
        let context = StateContext::new(budget, None);
        let (mut rows, contents) = table(worker, &context);
        let ((_imports, trace, emitted, calls, probe), _) =
            counted(worker, &context, &contents, 0, None);
        send(&mut rows, 1, (0..20_000).map(|key| (key, key, 1)).collect());
        let (mut seen, mut activations) = (0, 0);
        while probe.less_than(&2) {
            let is_shipped = !emitted.borrow().is_empty();
            worker.step();
            let is_active = calls.get() > seen;
            assert!(!(is_shipped && is_active), "a batch was shipped before it was whole");
            activations += usize::from(is_active);
            seen = calls.get();
        }
        assert!(activations > 2, "{activations}");
        assert_eq!((emitted.borrow().len(), updates(batches(&trace)).len()), (1, 20_000));
    });
}

/// The bytes that an operator emits in each step until it has passed `epoch`.
fn emitted_per_step(
    worker: &mut Worker,
    bytes: &Cell<usize>,
    probe: &Handle<Epoch>,
    epoch: Epoch,
) -> Vec<usize> {
    let mut steps = Vec::new();
    while probe.less_than(&epoch) {
        worker.step();
        steps.extend(Some(bytes.take()).filter(|&bytes| bytes > 0));
    }
    steps
}

#[test]
fn a_key_with_many_rows_is_emitted_in_pieces() {
    const ROWS: i64 = 50_000;
    for by in [Match::SameKey, Match::SameRow] {
        timely::execute_directly(move |worker| {
            let budget = MemoryBudget::new(4 << 20);
            let most = budget.policy().activation + 4 * budget.policy().output_batch;
            let context = StateContext::new(budget, None);
            let (emitted, count) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
            let probe = Handle::new();
            let (mut rows, mut matches) = worker.dataflow(|scope| {
                let layout = Layout::keyed(schema(), &[0]).unwrap();
                let side = |name| {
                    let (end, stream) = input(scope, name, &context);
                    (end, keep(stream, layout.clone(), name, &context))
                };
                let ((rows, all), (matches, matching)) = (side("rows"), side("matches"));
                let shape = Shape::of_rows(schema());
                let unmatched = semijoin(all, matching, by, Wanted::Unmatched, shape, &context);
                let (emitted, count) = (Rc::clone(&emitted), Rc::clone(&count));
                unmatched.probe_with(&probe).sink(Pipeline, "Seen", move |(input, _)| {
                    input.for_each(|_, delta: &mut Delta<Epoch>| {
                        emitted.set(emitted.get() + delta.bytes());
                        let weights = (0..delta.rows.num_rows()).map(|row| delta.weight(row));
                        count.set(count.get() + weights.sum::<i64>());
                    });
                });
                (rows, matches)
            });
            let all: Vec<_> = (0..ROWS).map(|value| (7, value, 1)).collect();
            send(&mut rows, 1, all.clone());
            matches.advance_to(2);
            let steps = emitted_per_step(worker, &emitted, &probe, 2);
            assert_eq!(count.get(), ROWS);
            assert!(steps.len() > 10 && steps.iter().all(|&step| step <= most), "{by:?} {steps:?}");
            // Each row finds its match, and loses it again.
            send(&mut matches, 2, if by == Match::SameRow { all.clone() } else { all[..1].into() });
            rows.advance_to(3);
            let steps = emitted_per_step(worker, &emitted, &probe, 3);
            assert_eq!(count.get(), 0);
            assert!(steps.len() > 10 && steps.iter().all(|&step| step <= most), "{by:?} {steps:?}");
        });
    }
}

/// One result for each group, its last row. Counts the rows it is called for.
struct Last(Rc<Cell<usize>>);

impl Evaluator for Last {
    fn evaluate(&mut self, groups: &Groups, results: &mut Results) {
        self.0.set(self.0.get() + groups.rows());
        for group in 0..groups.len() {
            let last = groups.rows_of(group).end - 1;
            results.row(groups.values().nth(last).unwrap());
            results.end();
        }
    }
}

#[test]
fn many_groups_are_recomputed_in_pieces() {
    const GROUPS: i64 = 100;
    const ROWS: i64 = 1_000;
    timely::execute_directly(|worker| {
        let context = StateContext::new(MemoryBudget::new(4 << 20), None);
        let evaluated = Rc::new(Cell::new(0));
        let probe = Handle::new();
        let mut rows = worker.dataflow(|scope| {
            let (end, stream) = input(scope, "rows", &context);
            let layout = Layout::keyed(schema(), &[0]).unwrap();
            let arranged = arrange(stream, &layout, "Rows", &context);
            let last = Last(Rc::clone(&evaluated));
            recompute(arranged, last, layout, true, vec!["f".to_owned()], &context)
                .0
                .probe_with(&probe);
            end
        });
        let all = (0..GROUPS).flat_map(|group| (0..ROWS).map(move |value| (group, value, 1)));
        send(&mut rows, 1, all.collect());
        emitted_per_step(worker, &evaluated, &probe, 2);
        // One row of each group changes, which are few bytes, and all groups are recomputed.
        send(&mut rows, 2, (0..GROUPS).map(|group| (group, -1, 1)).collect());
        let steps = emitted_per_step(worker, &evaluated, &probe, 3);
        assert_eq!(steps.iter().sum::<usize>() as i64, GROUPS * (ROWS + 1));
        assert!(steps.iter().all(|&rows| rows as i64 <= 10 * ROWS), "{steps:?}");
    });
}
