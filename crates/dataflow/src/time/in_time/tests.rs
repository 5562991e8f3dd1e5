use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use arrow::array::{Array, ArrayRef, AsArray, Int32Array, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Int32Type, Int64Type, Schema};
use proptest::prelude::*;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::operator::Operator;
use timely::dataflow::operators::probe::{Handle, Probe};

use super::*;
use crate::fault::{self, Fault};
use crate::movement::delta::{Delta, Times};
use crate::movement::input::input;
use crate::state::states::{self, Saved, Share, StateName};

/// Two times and something else.
type Row = (Option<i64>, Option<i32>, i64);

/// An epoch, a row and a weight.
type Change = (Epoch, Row, i64);

/// The lateness of the first time and that of the second one.
const BY: [i64; 2] = [10, 300];

const LAST: Epoch = 12;

fn spec() -> Spec {
    let schema = Schema::new(vec![
        Field::new("first", DataType::Int64, true),
        Field::new("other", DataType::Int64, false),
        Field::new("second", DataType::Int32, true),
    ]);
    Spec::compile(Arc::new(schema), "v", &[(0, 3, BY[0]), (2, 5, BY[1])]).unwrap()
}

fn columns() -> [TimeColumn; 2] {
    [3, 5].map(|column| TimeColumn { table: "v".to_owned(), column })
}

/// Most rows come a few times, and go.
fn changes() -> impl Strategy<Value = Vec<Change>> {
    let first = prop::option::weighted(0.9, -30..30_i64);
    let second = prop::option::weighted(0.9, -3..3_i32);
    let drift = 0..LAST;
    prop::collection::vec((drift, first, second, 0..2_i64, prop_oneof![Just(-1), 1..3_i64]), 0..120)
        .prop_map(|changes| {
            let change =
                |(epoch, first, second, other, weight): (Epoch, Option<i64>, Option<i32>, _, _)| {
                    let first = first.map(|first| first + 4 * epoch as i64);
                    (epoch, (first, second.map(|second| 200 * second), other), weight)
                };
            changes.into_iter().map(change).collect()
        })
}

/// The changes in time, how many copies came late, and the waterlines of each epoch.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    rows: BTreeMap<(Epoch, Row), i64>,
    late: u64,
    waterlines: BTreeMap<Epoch, [Option<i64>; 2]>,
}

fn add(sums: &mut BTreeMap<(Epoch, Row), i64>, epoch: Epoch, row: Row, weight: i64) {
    *sums.entry((epoch, row)).or_default() += weight;
    sums.retain(|_, weight| *weight != 0);
}

/// The rule, naively.
fn expected(changes: &[Change]) -> Outcome {
    let mut outcome = Outcome::default();
    let mut waterlines = [None::<i64>; 2];
    for epoch in 0..=LAST {
        outcome.waterlines.insert(epoch, waterlines);
        let mut sums = BTreeMap::new();
        for (at, row, weight) in changes {
            if *at == epoch {
                add(&mut sums, epoch, *row, *weight);
            }
        }
        let before = waterlines;
        for ((_, row), weight) in sums {
            let times = [row.0, row.1.map(i64::from)];
            let is_late = |(time, waterline): (&Option<i64>, &Option<i64>)| {
                time.zip(*waterline).is_some_and(|(time, waterline)| time < waterline)
            };
            match times.iter().zip(&before).any(is_late) {
                true => outcome.late += weight.unsigned_abs(),
                false => add(&mut outcome.rows, epoch, row, weight),
            }
            for ((time, by), waterline) in times.into_iter().zip(BY).zip(&mut waterlines) {
                if weight > 0 {
                    *waterline = (*waterline).max(time.map(|time| time - by));
                }
            }
        }
    }
    outcome
}

type Pinned = Vec<(StateName, Vec<alluvium_trace::Batch<Epoch>>)>;

/// Processes the changes from `start` up to `end`, in steps of so many epochs, beginning with what other workers kept.
fn run(
    changes: &[Change],
    workers: usize,
    (start, end, step): (Epoch, Epoch, u64),
    before: Option<Vec<Pinned>>,
    wrong: Option<Fault>,
) -> (Outcome, Vec<Pinned>) {
    type Known = Vec<(Epoch, [Option<i64>; 2])>;
    let seen = Arc::new(Mutex::new((Outcome::default(), Known::new())));
    let (found, mut changes) = (seen.clone(), changes.to_vec());
    changes.sort_by_key(|(epoch, _, _)| *epoch);
    let guards = timely::execute(timely::Config::process(workers), move |worker| {
        fault::arm(wrong);
        let context = StateContext::default();
        let (index, found) = (worker.index(), found.clone());
        let waterlines = Waterlines::default().of_dataflow(7);
        let late = Arc::new(AtomicU64::new(0));
        let saved = before.clone().map(|before| {
            let mut batches: HashMap<StateName, Vec<_>> = HashMap::new();
            let share = (before.len() != workers).then_some(Share { worker: index, workers });
            let built_for = share.map(|_| before.len());
            for (number, pinned) in before.into_iter().enumerate() {
                for (name, kept) in pinned {
                    if share.is_some() || number == index {
                        batches.entry(name).or_default().push(kept);
                    }
                }
            }
            Saved { upper: start, batches, share, built_for }
        });
        let ((mut end_of, probe), states) = states::build(saved, || {
            worker.dataflow(|scope| {
                let (end_of, rows) = input(scope, "rows", &context);
                let probe = Handle::new();
                let found = found.clone();
                let rows = in_time(&spec(), rows, &waterlines, late.clone(), &context);
                rows.probe_with(&probe).sink(Pipeline, "Seen", move |(input, _)| {
                    input.for_each(|_, delta: &mut Delta<Epoch>| {
                        let first = delta.rows.column(0).as_primitive::<Int64Type>();
                        let other = delta.rows.column(1).as_primitive::<Int64Type>();
                        let second = delta.rows.column(2).as_primitive::<Int32Type>();
                        let mut found = found.lock().unwrap();
                        for row in 0..delta.len() {
                            let first = first.is_valid(row).then(|| first.value(row));
                            let second = second.is_valid(row).then(|| second.value(row));
                            let values = (first, second, other.value(row));
                            add(&mut found.0.rows, *delta.time(row), values, delta.weight(row));
                        }
                    });
                });
                (end_of, probe)
            })
        });
        let mut epoch = start;
        end_of.advance_to(epoch);
        while epoch < end {
            let next = (epoch + step).min(end);
            if index > 0 {
                // The others are ahead.
                for _ in 0..20 {
                    worker.step();
                }
            }
            for (number, (at, row, weight)) in changes.iter().enumerate() {
                if (epoch..next).contains(at) && number % workers == index {
                    let columns: Vec<ArrayRef> = vec![
                        Arc::new(Int64Array::from(vec![row.0])),
                        Arc::new(Int64Array::from(vec![row.2])),
                        Arc::new(Int32Array::from(vec![row.1])),
                    ];
                    let rows = RecordBatch::try_new(spec().layout.schema().clone(), columns);
                    let (rows, at, weight) = (rows.unwrap(), *at, *weight);
                    end_of.send(at, move || {
                        Delta::new(rows, Times::Same(at), Some(vec![weight].into()))
                    });
                }
            }
            end_of.advance_to(next);
            while probe.less_than(&next) {
                worker.step();
            }
            // A reader with all changes before an epoch finds its waterline.
            let known = columns().map(|column| waterlines.at(&column, next));
            found.lock().unwrap().1.push((next, known));
            epoch = next;
        }
        let mut found = found.lock().unwrap();
        for epoch in start..=end {
            let known = columns().map(|column| waterlines.at(&column, epoch));
            found.1.push((epoch, known));
        }
        found.0.late += late.load(Ordering::Relaxed);
        drop(found);
        let pinned = states.pin();
        drop(end_of);
        pinned
    });
    let pinned = guards.unwrap().join().into_iter().map(Result::unwrap).collect();
    let (mut outcome, known) = std::mem::take(&mut *seen.lock().unwrap());
    for (epoch, known) in known {
        // They are the same on all workers.
        assert_eq!(*outcome.waterlines.entry(epoch).or_insert(known), known, "epoch {epoch}");
    }
    (outcome, pinned)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn what_comes_too_late_is_dropped_on_any_workers(changes in changes(), step in 1..5_u64) {
        let right = expected(&changes);
        for workers in 1..=3 {
            let (found, _) = run(&changes, workers, (0, LAST, step), None, None);
            prop_assert_eq!(&found, &right, "{} workers", workers);
        }
    }

    #[test]
    fn it_goes_on_where_it_was_on_other_workers(
        changes in changes(),
        step in 1..4_u64,
        at in 1..LAST,
        (before, after) in (1..=3_usize, 1..=3_usize),
    ) {
        let right = expected(&changes);
        let (mut found, pinned) = run(&changes, before, (0, at, step), None, None);
        let (rest, _) = run(&changes, after, (at, LAST, step), Some(pinned), None);
        found.rows.extend(rest.rows);
        found.late += rest.late;
        found.waterlines.extend(rest.waterlines);
        prop_assert_eq!(found, right);
    }
}

#[test]
fn changes_that_cancel_each_other_within_an_epoch_raise_no_waterline() {
    let row = |first| (Some(first), None, 0);
    let changes =
        [(1, row(5), 1), (2, row(900), 1), (2, row(900), -1), (3, row(5), 1), (4, row(-6), 1)];
    let right = expected(&changes);
    assert_eq!((right.rows.len(), right.late), (2, 1));
    for workers in [1, 2] {
        assert_eq!(run(&changes, workers, (0, LAST, 1), None, None).0, right);
    }
}

#[cfg(feature = "faults")]
#[test]
fn a_waterline_that_counts_the_rows_of_one_worker_is_found() {
    // Many rows, so that both workers have some.
    let rows = (0..40).map(|number| (1, (Some(20), None, number), 1));
    let rows = rows.chain((0..40).map(|number| (2, (Some(100 + number), None, number), 1)));
    let changes: Vec<Change> =
        rows.chain((0..40).map(|number| (3, (Some(110), None, number), 1))).collect();
    let right = expected(&changes);
    assert_eq!(run(&changes, 2, (0, LAST, 1), None, None).0, right);
    let wrong = std::panic::catch_unwind(|| {
        run(&changes, 2, (0, LAST, 1), None, Some(Fault::OwnWaterline)).0
    });
    assert!(wrong.is_err() || wrong.is_ok_and(|wrong| wrong != right));
}
