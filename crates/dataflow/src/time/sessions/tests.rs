//! Tests of sessions, against all rows of each key sorted again in every epoch.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use alluvium_trace::{Bound, Pruning};
use arrow::array::RecordBatch;
use arrow::datatypes::{Field, Schema, TimeUnit};
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::operator::Operator;
use timely::dataflow::operators::probe::{Handle, Probe};

use super::*;
use crate::movement::delta::{Delta, Times};
use crate::movement::input::input;
use crate::state::states;

const GAP: i64 = 10;

/// A waterline at this distance below the epoch.
#[derive(Debug)]
struct Behind(i64);

impl Pruning for Behind {
    fn column(&self) -> BoundColumn {
        END
    }

    fn bound(&self, epoch: Epoch) -> Option<Bound> {
        Some(Bound::new(END, epoch as i64 - self.0))
    }

    fn describe(&self, least: i64) -> String {
        least.to_string()
    }
}

fn schema(bounds: usize) -> SchemaRef {
    let time = DataType::Timestamp(TimeUnit::Microsecond, None);
    let mut fields = vec![
        Field::new("key", DataType::Int64, true),
        Field::new("time", time.clone(), false),
        Field::new("value", DataType::Int64, true),
    ];
    fields.extend(
        ["start", "end"].iter().take(bounds).map(|name| Field::new(*name, time.clone(), true)),
    );
    Arc::new(Schema::new(fields))
}

/// Numbers of a row: key, time, value, and then perhaps the start and the end of its session.
type Row = Vec<i64>;

/// Changes of rows, each with its epoch and weight.
type Changes = Vec<(Epoch, Row, i64)>;

fn batch(rows: &[&Row]) -> RecordBatch {
    let column = |number: usize, data_type: &DataType| -> ArrayRef {
        let numbers = Int64Array::from_iter_values(rows.iter().map(|row| row[number]));
        cast(&numbers, data_type).unwrap()
    };
    let schema = schema(0);
    let columns = schema.fields().iter().enumerate();
    let columns = columns.map(|(number, field)| column(number, field.data_type())).collect();
    RecordBatch::try_new(schema, columns).unwrap()
}

const BOUNDS: [SessionBound; 2] = [SessionBound::Start, SessionBound::End];

fn whole() -> Spec {
    Spec::compile(&schema(0), &[0], (1, GAP), &BOUNDS, false, &schema(2)).unwrap()
}

/// Sessions whose rows are the key and the bounds.
fn counting() -> Spec {
    let output = project(&schema(2), &[0, 3, 4]);
    Spec::compile(&schema(0), &[0], (1, GAP), &BOUNDS, true, &output).unwrap()
}

/// The output for these changes, of which `together` epochs arrive at a time, the number of errors, and how many rows are kept.
fn emitted(
    spec: Spec,
    changes: &Changes,
    last: Epoch,
    together: u64,
    behind: i64,
) -> (Changes, i64, usize) {
    let changes = changes.clone();
    timely::execute_directly(move |worker| {
        let context = StateContext::default().for_state("session.1", "0");
        let kept = context.with_pruning(Arc::new(Behind(behind)));
        let ((mut end, probe, seen, failed), states) = states::build(None, || {
            worker.dataflow(|scope| {
                let (end, rows) = input(scope, "rows", &context);
                let (probe, seen) = (Handle::new(), Rc::<RefCell<Changes>>::default());
                let (rows, errors) = sessions(&spec, rows, &context, &kept);
                let (emitted, failed) = (Rc::clone(&seen), Rc::<RefCell<i64>>::default());
                let count = Rc::clone(&failed);
                rows.probe_with(&probe).sink(Pipeline, "Seen", move |(input, _)| {
                    input.for_each(|_, delta: &mut Delta<Epoch>| {
                        for row in 0..delta.len() {
                            let number = |column: &ArrayRef| {
                                let numbers = cast(column, &DataType::Int64).unwrap();
                                numbers.as_primitive::<Int64Type>().value(row)
                            };
                            let numbers = delta.rows.columns().iter().map(number).collect();
                            emitted.borrow_mut().push((
                                *delta.time(row),
                                numbers,
                                delta.weight(row),
                            ));
                        }
                    });
                });
                errors.probe_with(&probe).sink(Pipeline, "Errors", move |(input, _)| {
                    input.for_each(|_, delta: &mut Delta<Epoch>| {
                        let weights = (0..delta.len()).map(|row| delta.weight(row));
                        *count.borrow_mut() += weights.sum::<i64>();
                    });
                });
                (end, probe, seen, failed)
            })
        });
        for epoch in 1..=last {
            let now: Vec<_> = changes.iter().filter(|(at, ..)| *at == epoch).collect();
            let rows = batch(&now.iter().map(|(_, row, _)| row).collect::<Vec<_>>());
            let weights: Vec<i64> = now.iter().map(|(_, _, weight)| *weight).collect();
            end.send(epoch, move || Delta::new(rows, Times::Same(epoch), Some(weights.into())));
            end.advance_to(epoch + 1);
            while epoch % together == 0 && probe.less_than(&(epoch + 1)) {
                worker.step();
            }
        }
        while probe.less_than(&(last + 1)) {
            worker.step();
        }
        let kept = states.pin().into_iter().flat_map(|(_, batches)| batches);
        let kept = kept.map(|batch| batch.len()).sum();
        (seen.take(), *failed.borrow(), kept)
    })
}

/// The rows after an epoch, by the changes up to it.
fn added_up(changes: &Changes, epoch: Epoch) -> BTreeMap<Row, i64> {
    let mut rows = BTreeMap::new();
    for (_, row, weight) in changes.iter().filter(|(at, ..)| *at <= epoch) {
        *rows.entry(row.clone()).or_insert(0) += weight;
    }
    rows.retain(|_, weight| *weight != 0);
    rows
}

/// Rows with their sessions.
fn expected(rows: &BTreeMap<Row, i64>) -> BTreeMap<Row, i64> {
    let mut all: Vec<(&Row, i64)> = rows.iter().map(|(row, weight)| (row, *weight)).collect();
    all.sort_by_key(|(row, _)| (row[0], row[1]));
    let near = |one: &(&Row, i64), next: &(&Row, i64)| {
        one.0[0] == next.0[0] && next.0[1].checked_sub(one.0[1]).is_some_and(|by| by < GAP)
    };
    let mut found = BTreeMap::new();
    for session in all.chunk_by(near) {
        let (start, last) = (session[0].0[1], session[session.len() - 1].0[1]);
        if let Some(end) = last.checked_add(GAP) {
            found.extend(
                session.iter().map(|(row, weight)| ([&row[..], &[start, end]].concat(), *weight)),
            );
        }
    }
    found
}

/// Random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % end
    }
}

/// Rows that come and go, none more than `late` behind its epoch.
fn random_changes(seed: u64, last: Epoch, late: u64) -> Changes {
    let mut random = Random(seed);
    let (mut changes, mut there) = (Changes::new(), Vec::<Row>::new());
    for epoch in 1..=last {
        for _ in 0..random.below(5) {
            let in_time = |row: &Row| row[1] >= epoch as i64 - late as i64;
            let place = (random.below(3) == 0).then(|| there.iter().position(in_time)).flatten();
            match place {
                Some(place) => changes.push((epoch, there.swap_remove(place), -1)),
                None => {
                    let time = (epoch + random.below(2 * late)) as i64 - late as i64;
                    let row = vec![random.below(3) as i64, time, random.below(2) as i64];
                    there.push(row.clone());
                    changes.push((epoch, row, 1));
                }
            }
        }
    }
    changes
}

#[test]
fn sessions_grow_split_and_merge() {
    for seed in 1..=60 {
        let (last, late) = (120, 25);
        let changes = random_changes(seed, last, late);
        for together in [1, 7, 200] {
            let (found, failed, _) = emitted(whole(), &changes, last, together, late as i64);
            assert_eq!(failed, 0);
            for epoch in 1..=last {
                let expected = expected(&added_up(&changes, epoch));
                assert_eq!(added_up(&found, epoch), expected, "seed {seed}, epoch {epoch}");
            }
        }
    }
}

#[test]
fn sessions_of_rows_that_stay_are_counted() {
    for seed in 1..=60 {
        let (last, late) = (120, 25);
        let mut changes = random_changes(seed, last, late);
        changes.retain(|(_, _, weight)| *weight > 0);
        for together in [1, 7, 200] {
            let (found, failed, kept) =
                emitted(counting(), &changes, last, together, i64::from(i32::MAX));
            assert_eq!(failed, 0);
            let mut sessions = 0;
            for epoch in 1..=last {
                let mut expected_counts = BTreeMap::new();
                for (row, weight) in expected(&added_up(&changes, epoch)) {
                    *expected_counts.entry(vec![row[0], row[3], row[4]]).or_insert(0) += weight;
                }
                assert_eq!(added_up(&found, epoch), expected_counts, "seed {seed}, epoch {epoch}");
                sessions = expected_counts.len();
            }
            // Retracted rows may still be there.
            let rows = changes.len();
            assert!(sessions > 0 && (together < 200 || kept <= 2 * sessions), "{kept} of {rows}");
        }
    }
}

#[test]
fn rows_of_sessions_that_have_ended_are_not_kept() {
    let changes: Changes = (1..=6_000)
        .map(|epoch| {
            // A gap of a hundred after each hundred.
            let time = (epoch - epoch % 200 / 100 * (epoch % 100)) as i64;
            (epoch, vec![epoch as i64 % 3, time, 0], 1)
        })
        .collect();
    let (_, _, kept) = emitted(whole(), &changes, 6_000, 1, 120);
    assert!(kept < 1_500, "{kept} of 6000 rows are kept");
}

#[test]
fn a_session_that_ends_out_of_range_is_an_error() {
    let end = i64::MAX - GAP;
    let row = |time: i64| vec![1, time, 0];
    let mut changes: Changes = vec![(1, row(end), 1), (2, row(end + 1), 1), (2, row(7), 1)];
    let (found, failed, _) = emitted(whole(), &changes, 2, 1, i64::MAX);
    assert_eq!(failed, 2);
    let rest = BTreeMap::from([(vec![1, 7, 0, 7, 17], 1)]);
    assert_eq!(added_up(&found, 2), rest);
    changes.push((3, row(end + 1), -1));
    let (found, failed, _) = emitted(whole(), &changes, 3, 1, i64::MAX);
    assert_eq!(failed, 0);
    assert_eq!(added_up(&found, 3).len(), 2);
}
