//! Tests of temporal filters, against a filter that looks at all rows in every epoch.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use alluvium_trace::{Bound, BoundColumn, Pruning};
use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::operator::Operator;
use timely::dataflow::operators::probe::{Handle, Probe};
use timely::worker::Worker;

use super::*;
use crate::movement::delta::{Delta, Times};
use crate::movement::input::{Input, input};
use crate::state::states::{self, Saved, States};
use crate::time::passing::VISITED;

/// The time of each epoch, from the first one that has one.
#[derive(Clone, Debug)]
struct Clock(BTreeMap<Epoch, i64>);

impl Clock {
    fn at(&self, epoch: Epoch) -> i64 {
        *self.0.range(..=epoch).next_back().expect("time has begun").1
    }
}

impl Pruning for Clock {
    fn column(&self) -> BoundColumn {
        BoundColumn::Key { at: 0, width: 8 }
    }

    fn bound(&self, epoch: Epoch) -> Option<Bound> {
        let least = *self.0.range(..epoch).next_back()?.1;
        Some(Bound::new(self.column(), least))
    }

    fn describe(&self, least: i64) -> String {
        least.to_string()
    }
}

fn schema() -> SchemaRef {
    let number = |name| Field::new(name, DataType::Int64, false);
    Arc::new(Schema::new(vec![number("time"), number("value")]))
}

/// A time and a value.
type Row = (i64, i64);

/// Changes of rows, each with its epoch and weight.
type Changes = Vec<(Epoch, Row, i64)>;

struct Running {
    /// `None` once no rows come any more.
    rows: Option<Input<Epoch>>,
    ticks: Input<Epoch>,
    probe: Handle<Epoch>,
    emitted: Rc<RefCell<Changes>>,
    states: States,
}

fn start(
    worker: &mut Worker,
    clock: &Clock,
    comparison: Comparison,
    saved: Option<Saved>,
) -> Running {
    let context = StateContext::default().with_pruning(Arc::new(clock.clone()));
    let spec = Spec::compile(schema(), 0, comparison).unwrap();
    let ((rows, ticks, probe, emitted), states) = states::build(saved, || {
        worker.dataflow(|scope| {
            let (rows, stream) = input(scope, "rows", &context);
            let (ticks, ticking) = input::<Epoch>(scope, "ticks", &context);
            let (probe, emitted) = (Handle::new(), Rc::<RefCell<Changes>>::default());
            let seen = Rc::clone(&emitted);
            let changes = temporal_filter(&spec, stream, ticking, &context).probe_with(&probe);
            changes.sink(Pipeline, "Seen", move |(input, _)| {
                input.for_each(|_, delta: &mut Delta<Epoch>| {
                    let column =
                        |number: usize| delta.rows.column(number).as_primitive::<Int64Type>();
                    for row in 0..delta.len() {
                        let values = (column(0).value(row), column(1).value(row));
                        seen.borrow_mut().push((*delta.time(row), values, delta.weight(row)));
                    }
                });
            });
            (rows, ticks, probe, emitted)
        })
    });
    Running { rows: Some(rows), ticks, probe, emitted, states }
}

impl Running {
    fn send(&mut self, epoch: Epoch, changes: &[(Row, i64)]) {
        let column = |of: fn(&Row) -> i64| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values(changes.iter().map(|(row, _)| of(row))))
        };
        let columns = vec![column(|row| row.0), column(|row| row.1)];
        let rows = RecordBatch::try_new(schema(), columns).unwrap();
        let weights: Vec<i64> = changes.iter().map(|(_, weight)| *weight).collect();
        let input = self.rows.as_mut().expect("rows still come");
        input.send(epoch, move || Delta::new(rows, Times::Same(epoch), Some(weights.into())));
    }

    fn advance(&mut self, epoch: Epoch) {
        self.rows.iter_mut().for_each(|rows| rows.advance_to(epoch));
        self.ticks.advance_to(epoch);
    }

    fn settle(&self, worker: &mut Worker, epoch: Epoch) {
        while self.probe.less_than(&epoch) {
            worker.step();
        }
    }

    /// The state of the filter, as a dataflow that resumes at `upper` starts with it.
    fn saved(&self, upper: Epoch) -> Saved {
        let pinned = self.states.pin().into_iter().map(|(name, batches)| (name, vec![batches]));
        Saved { upper, batches: pinned.collect(), ..Saved::default() }
    }
}

const ALL: [Comparison; 4] =
    [Comparison::Before, Comparison::BeforeOrAt, Comparison::After, Comparison::AfterOrAt];

fn holds(comparison: Comparison, value: i64, time: i64) -> bool {
    match comparison {
        Comparison::Before => value < time,
        Comparison::BeforeOrAt => value <= time,
        Comparison::After => value > time,
        Comparison::AfterOrAt => value >= time,
    }
}

/// The rows in view after an epoch, by the changes up to it.
fn added_up(changes: &Changes, epoch: Epoch, shows: impl Fn(&Row) -> bool) -> BTreeMap<Row, i64> {
    let mut rows = BTreeMap::new();
    for (_, row, weight) in changes.iter().filter(|(at, row, _)| *at <= epoch && shows(row)) {
        *rows.entry(*row).or_insert(0) += weight;
    }
    rows.retain(|_, weight| *weight != 0);
    rows
}

/// Random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % end
    }
}

/// The first epoch in which there is a time.
const FIRST: Epoch = 3;
const LAST: Epoch = 40;

/// A time for each epoch, and changes: rows come and go, before their time, in it and after it.
fn random_changes(random: &mut Random) -> (Clock, Changes) {
    let mut time = -5;
    let times = (FIRST..=LAST + 1).map(|epoch| {
        time += [0, 0, 1, 1, 2, 9][random.below(6) as usize];
        (epoch, time)
    });
    let clock = Clock(times.collect());
    let (mut changes, mut there) = (Changes::new(), Vec::new());
    for epoch in 1..=LAST {
        for _ in 0..random.below(6) {
            match there.len() as u64 {
                rows if rows > 0 && random.below(3) == 0 => {
                    let row = there.swap_remove(random.below(rows) as usize);
                    changes.push((epoch, row, -1));
                }
                _ => {
                    let ahead = random.below(30) as i64 - 12;
                    let row = (clock.at(epoch.max(FIRST)) + ahead, random.below(3) as i64);
                    there.push(row);
                    changes.push((epoch, row, 1));
                }
            }
        }
    }
    (clock, changes)
}

/// The output of a filter that runs for some epochs at a time and may start again once; with `ending`, no rows come for the last
/// epochs, and their stream ends.
fn emitted(comparison: Comparison, seed: u64) -> (Clock, Changes, Changes) {
    let mut random = Random(seed);
    let (clock, mut changes) = random_changes(&mut random);
    let ending = random.below(2) == 0;
    let end = LAST - 10;
    changes.retain(|(epoch, ..)| !ending || *epoch < end);
    let restart = 1 + random.below(42);
    let steps = [1, 1, 4, 60][random.below(4) as usize];
    let (sent, times) = (changes.clone(), clock.clone());
    let emitted = timely::execute_directly(move |worker| {
        let mut running = start(worker, &times, comparison, None);
        let mut before = Changes::new();
        for epoch in 1..=LAST {
            running.advance(epoch);
            if epoch == restart && running.rows.is_some() {
                running.settle(worker, epoch);
                before = running.emitted.take();
                let saved = running.saved(epoch);
                running = start(worker, &times, comparison, Some(saved));
                running.advance(epoch);
            }
            if ending && epoch == end {
                running.rows = None;
            }
            let now = sent.iter().filter(|(at, ..)| *at == epoch);
            let now: Vec<(Row, i64)> = now.map(|(_, row, weight)| (*row, *weight)).collect();
            if !now.is_empty() {
                running.send(epoch, &now);
            }
            if random.below(steps) == 0 {
                running.settle(worker, epoch);
            }
        }
        running.advance(LAST + 1);
        running.settle(worker, LAST + 1);
        before.extend(running.emitted.take());
        before
    });
    (clock, changes, emitted)
}

/// The first epoch in which what is in view is not what has to be.
fn first_difference(comparison: Comparison, seed: u64) -> Option<Epoch> {
    let (clock, changes, emitted) = emitted(comparison, seed);
    (1..=LAST).find(|epoch| {
        let time = (*epoch >= FIRST).then(|| clock.at(*epoch));
        let holds = |row: &Row| time.is_some_and(|time| holds(comparison, row.0, time));
        let expected = added_up(&changes, *epoch, holds);
        added_up(&emitted, *epoch, |_| true) != expected
    })
}

#[test]
fn what_is_in_view_is_right_in_every_epoch() {
    for comparison in ALL {
        for seed in 1..=150 {
            assert_eq!(first_difference(comparison, seed), None, "{comparison:?}, seed {seed}");
        }
    }
}

#[cfg(feature = "faults")]
#[test]
fn rows_that_leave_view_too_late_are_found() {
    use crate::fault::{self, Fault};
    for wrong in [Fault::LeaveViewLate, Fault::FinalEarly, Fault::FinalTwice] {
        fault::arm(Some(wrong));
        let found = ALL
            .iter()
            .any(|comparison| (1..=9).any(|seed| first_difference(*comparison, seed).is_some()));
        fault::arm(None);
        assert!(found, "{wrong:?}");
    }
}

#[test]
fn an_epoch_looks_at_its_own_rows_and_at_those_that_the_time_passes() {
    for comparison in ALL {
        const ROWS: i64 = 100_000;
        const EPOCHS: Epoch = 1_000;
        // In each epoch the time passes one row.
        let clock = Clock((1..=EPOCHS + 2).map(|epoch| (epoch, epoch as i64)).collect());
        let visited = timely::execute_directly(move |worker| {
            let mut running = start(worker, &clock, comparison, None);
            let rows: Vec<(Row, i64)> = (0..ROWS).map(|row| ((row, row), 1)).collect();
            running.send(1, &rows);
            running.advance(2);
            running.settle(worker, 2);
            let first = running.emitted.take().len() as i64;
            assert!(if comparison.comes() { first <= 2 } else { first >= ROWS - 2 }, "{first}");
            VISITED.set(0);
            for epoch in 2..=EPOCHS + 1 {
                running.advance(epoch + 1);
                running.settle(worker, epoch + 1);
            }
            assert_eq!(running.emitted.take().len() as u64, EPOCHS);
            VISITED.get()
        });
        assert_eq!(visited, EPOCHS, "{comparison:?}");
    }
}

#[test]
fn what_time_has_passed_is_not_kept() {
    for comparison in ALL {
        let clock = Clock((1..=1_002).map(|epoch| (epoch, 100 * epoch as i64)).collect());
        let rows = timely::execute_directly(move |worker| {
            let mut running = start(worker, &clock, comparison, None);
            for epoch in 1..=1_000 {
                let rows = (0..100).map(|row| ((100 * epoch as i64 + row, row), 1));
                running.send(epoch, &rows.collect::<Vec<_>>());
                running.advance(epoch + 1);
                running.settle(worker, epoch + 1);
            }
            let kept = running.states.pin();
            kept.iter().flat_map(|(_, batches)| batches).map(|batch| batch.len()).sum::<usize>()
        });
        assert!(rows < 2_000, "{comparison:?}: {rows} of 100,000 rows are kept");
    }
}
