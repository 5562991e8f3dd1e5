//! The rows of each round, from the changes that go around.
//!
//! Changes of a recursion go around until they cancel out. Here they are added up, so that what goes on is what really differs:
//! each row once, or with so many copies.
//!
//! # What changes when
//!
//! The copies of a row at an epoch *e* and a round *r* are a function of the sum of all weights at or before both. What is
//! emitted at *(e, r)* is what that number has in excess of what is emitted at earlier epochs and rounds. On the grid of the
//! epochs and the rounds of a row's changes this is a difference of differences:
//!
//! ```text
//! copies(e, r) − copies(e, r − 1) − copies(e − 1, r) + copies(e − 1, r − 1)
//! ```
//!
//! It may differ from zero where no change came in: if a row of rounds 3 and 7 loses its support in round 3, its first copy
//! moves to round 7, at the epoch of the loss. Such a time may come only later. Then the row waits for it.
//!
//! So the copies that were emitted before need not be kept: they follow from the sums, as long as the past is not merged
//! with the present. The trace is compacted up to the epoch before the first one that is not complete.

use std::rc::Rc;
use std::sync::Arc;

use alluvium_trace::memory::StateContext;
use alluvium_trace::{Batch, Cursors, Epoch, Spine};
use arrow::datatypes::SchemaRef;
use differential_dataflow::lattice::antichain_join_into;
use differential_dataflow::operators::arrange::{Arranged, TraceAgent};
use differential_dataflow::trace::{BatchReader, TraceReader};
use timely::PartialOrder;
use timely::container::NoopBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::CapabilitySet;
use timely::dataflow::operators::generic::OutputBuilder;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;
use timely::order::Product;
use timely::progress::{Antichain, Timestamp};

use super::Round;
use crate::arrangement::arrange;
use crate::codec::{CodecError, Encoded};
use crate::delta::{Delta, DeltaStream, EncodedDelta};
use crate::exchange::exchange_by_key;
use crate::fault::{self, Fault};
use crate::fuel::Fuel;
use crate::layout::{Layout, all_columns};
use crate::map::ErrorRows;
use crate::weight::{add, consolidate};

/// The most copies of a row.
///
/// Where each round doubles the copies, their number would soon be larger than a weight can be.
const MOST_COPIES: i64 = i32::MAX as i64;

/// How rows settle.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Rows as keys.
    layout: Layout,
    is_distinct: bool,
    name: Arc<str>,
}

impl Spec {
    /// Rows of `schema`, each once if they are distinct. `name` is what recurs, for messages. Fails if a column cannot be
    /// stored, or not be compared where rows are distinct.
    pub fn compile(schema: SchemaRef, is_distinct: bool, name: &str) -> Result<Self, CodecError> {
        let layout = match is_distinct {
            true => Layout::distinct(schema)?,
            false => Layout::rows(schema)?,
        };
        Ok(Self { layout, is_distinct, name: name.into() })
    }

    /// How many copies of a row there are whose weights add up to `weight`.
    fn copies(&self, weight: i64) -> i64 {
        weight.clamp(0, if self.is_distinct { 1 } else { MOST_COPIES })
    }

    /// Whether there should be more.
    fn are_too_many(&self, weight: i64) -> bool {
        !self.is_distinct && weight > MOST_COPIES
    }
}

/// The rows of each round, and the rows of which there are too many copies as errors.
///
/// Exchanges rows by all columns.
pub fn settle<'scope>(
    spec: &Spec,
    rows: DeltaStream<'scope, Round>,
    context: &StateContext,
) -> (DeltaStream<'scope, Round>, DeltaStream<'scope, Round>) {
    let rows = exchange_by_key(rows, &spec.layout, context);
    let arranged = arrange::<Round, Spine<Round>>(rows, &spec.layout, "ArrangeRounds", context);
    let Arranged { stream, trace } = arranged;
    let scope = stream.scope();
    let mut builder = OperatorBuilder::new("Settle".to_owned(), scope);
    let activator = scope.activator_for(Rc::clone(&builder.operator_info().address));
    let mut input = builder.new_input(stream, Pipeline);
    let (rows_output, rows) = builder.new_output();
    let mut rows_output = OutputBuilder::<Round, NoopBuilder<Delta<Round>>>::from(rows_output);
    let (errors_output, errors) = builder.new_output();
    let mut errors_output = OutputBuilder::<Round, NoopBuilder<Delta<Round>>>::from(errors_output);
    let mut settling = Settling::new(spec.clone(), trace, context);
    let mut fuel = Fuel::new(context);
    builder.build(move |_capabilities| {
        move |frontiers| {
            input.for_each(|capability, batches: &mut Vec<Batch<Round>>| {
                settling.arrived.capabilities[0].insert(capability.retain(0));
                settling.arrived.capabilities[1].insert(capability.retain(1));
                settling.arrived.batches.append(batches);
            });
            let mut rows_output = rows_output.activate();
            let mut errors_output = errors_output.activate();
            let mut emit =
                |capabilities: &[CapabilitySet<Round>; 2], held: &Round, out: Emitted| {
                    if let Some(mut rows) = out.rows {
                        let capability = capabilities[0].delayed(held);
                        rows_output.session_with_builder(&capability).give_container(&mut rows);
                    }
                    if let Some(mut errors) = out.errors {
                        let capability = capabilities[1].delayed(held);
                        errors_output.session_with_builder(&capability).give_container(&mut errors);
                    }
                };
            fuel.refill();
            while settling.begin(&frontiers[0].frontier().to_owned()) {
                if !settling.work(&mut fuel, &mut emit) {
                    return fuel.reschedule(&activator);
                }
            }
        }
    });
    (rows, errors)
}

/// A bounded part of the output, at or after a time that is held.
struct Emitted {
    rows: Option<Delta<Round>>,
    errors: Option<Delta<Round>>,
}

/// Changes of an interval of time that is not complete.
#[derive(Default)]
struct Arrived {
    batches: Vec<Batch<Round>>,
    /// Those of the rows, and those of the errors.
    capabilities: [CapabilitySet<Round>; 2],
}

/// Rows that wait for times to come, in ascending order, and the times, those of a row one after the other.
struct Waiting {
    rows: Encoded,
    times: Vec<Round>,
}

impl Waiting {
    fn new(context: &StateContext) -> Self {
        Self { rows: Encoded::counted(context), times: Vec::new() }
    }

    fn push(&mut self, row: &[u8], time: Round) {
        self.rows.push(row);
        self.times.push(time);
    }

    /// The row at a place, if there is one.
    fn row(&self, place: usize) -> Option<&[u8]> {
        (place < self.times.len()).then(|| self.rows.get(place))
    }
}

/// The operator.
struct Settling {
    spec: Spec,
    context: StateContext,
    trace: TraceAgent<Spine<Round>>,
    arrived: Arrived,
    /// Everything before this has settled.
    lower: Antichain<Round>,
    waiting: Waiting,
    /// For all times at which something waits or is emitted.
    capabilities: [CapabilitySet<Round>; 2],
    work: Option<Work>,
}

/// An interval of time in progress.
struct Work {
    upper: Antichain<Round>,
    /// The changes of the interval.
    changes: Cursors<Round>,
    /// All changes before `upper`.
    history: Cursors<Round>,
    /// The place of the next row that waits.
    next: usize,
    /// What waits for later intervals.
    later: Waiting,
    /// What is emitted at or after each of these times, which are held.
    outputs: Vec<(Round, EncodedDelta<Round>)>,
    errors: Vec<ErrorRows<Round>>,
    grid: Grid,
}

impl Settling {
    fn new(spec: Spec, trace: TraceAgent<Spine<Round>>, context: &StateContext) -> Self {
        Self {
            spec,
            context: context.clone(),
            trace,
            arrived: Arrived::default(),
            lower: Antichain::from_elem(Round::minimum()),
            waiting: Waiting::new(context),
            capabilities: Default::default(),
            work: None,
        }
    }

    /// The first epoch that may still change at or after a frontier.
    fn first_epoch(frontier: &Antichain<Round>) -> Option<Epoch> {
        frontier.iter().map(|time| time.outer).min()
    }

    /// Begins the next interval if none is in progress and there is one. Returns whether one is in progress.
    fn begin(&mut self, frontier: &Antichain<Round>) -> bool {
        if self.work.is_some() {
            return true;
        }
        let mut reached = self.lower.clone();
        if let Some(last) = self.arrived.batches.last() {
            reached.clone_from(last.upper());
        }
        self.trace.advance_upper(&mut reached);
        let mut upper = Antichain::new();
        antichain_join_into(&reached[..], &frontier[..], &mut upper);
        if !PartialOrder::less_than(&self.lower, &upper) {
            return false;
        }
        let arrived = std::mem::take(&mut self.arrived);
        for (held, arrived) in self.capabilities.iter_mut().zip(arrived.capabilities) {
            arrived.iter().for_each(|capability| held.insert(capability.clone()));
        }
        let mut history = self
            .trace
            .batches_through(self.lower.borrow())
            .expect("the trace is not compacted beyond what has settled");
        history.extend(arrived.batches.iter().cloned());
        let is_due = |time: &Round| !upper.less_equal(time);
        let held = self.capabilities[0].iter().map(|capability| *capability.time());
        let outputs = held.filter(is_due).map(|time| (time, EncodedDelta::new(&self.context)));
        let outputs: Vec<_> = outputs.collect();
        // If nothing is due there is nothing to look up.
        let has_work = !arrived.batches.iter().all(BatchReader::is_empty)
            || self.waiting.times.iter().any(is_due);
        let (changes, history) = match has_work {
            true => (Cursors::new(arrived.batches), Cursors::new(history)),
            false => (Cursors::new([]), Cursors::new([])),
        };
        self.work = Some(Work {
            upper,
            changes,
            history,
            next: 0,
            later: Waiting::new(&self.context),
            errors: outputs.iter().map(|_| ErrorRows::default()).collect(),
            outputs,
            grid: Grid::default(),
        });
        true
    }

    /// Goes on with the interval in progress while there is fuel. Returns whether it is complete.
    fn work(
        &mut self,
        fuel: &mut Fuel,
        emit: &mut impl FnMut(&[CapabilitySet<Round>; 2], &Round, Emitted),
    ) -> bool {
        let Some(work) = &mut self.work else { return true };
        let floor = Self::first_epoch(&self.lower).unwrap_or_default().saturating_sub(1);
        loop {
            if !fuel.is_left() {
                return false;
            }
            let from = work.next;
            if !work.next_row(&self.spec, &self.lower, &self.waiting, floor) {
                break;
            }
            let row = work.later.rows.bytes().len() + work.grid.updates.len() * size_of::<Round>();
            fuel.consume(row.min(1024) + (work.next - from));
            for (place, (held, out)) in work.outputs.iter_mut().enumerate() {
                if out.is_full() {
                    let errors = std::mem::take(&mut work.errors[place]);
                    let emitted = emitted(&self.spec, out, errors);
                    fuel.consume(emitted.rows.as_ref().map_or(0, Delta::bytes));
                    emit(&self.capabilities, held, emitted);
                }
            }
        }
        for ((held, out), errors) in work.outputs.iter_mut().zip(work.errors.drain(..)) {
            emit(&self.capabilities, held, emitted(&self.spec, out, errors));
        }
        let Some(work) = self.work.take() else { return true };
        self.lower = work.upper;
        self.waiting = work.later;
        let wanted: Antichain<Round> = self.waiting.times.iter().copied().collect();
        for held in &mut self.capabilities {
            held.downgrade(wanted.iter());
        }
        let since: Antichain<Round> = Self::first_epoch(&self.lower)
            .map(|epoch| Product::new(epoch.saturating_sub(1), 0))
            .into_iter()
            .collect();
        self.trace.set_logical_compaction(since.borrow());
        self.trace.set_physical_compaction(self.lower.borrow());
        true
    }
}

/// What has been collected, which is then empty.
fn emitted(spec: &Spec, out: &mut EncodedDelta<Round>, errors: ErrorRows<Round>) -> Emitted {
    let rows = out.decode(&spec.layout, &all_columns(spec.layout.schema()));
    Emitted { rows, errors: (!errors.is_empty()).then(|| errors.finish()) }
}

impl Work {
    /// Settles the next row that has changed or waits for a time of the interval. Returns whether there is one.
    fn next_row(
        &mut self,
        spec: &Spec,
        lower: &Antichain<Round>,
        waiting: &Waiting,
        floor: Epoch,
    ) -> bool {
        let Self { upper, changes, history, next, later, outputs, errors, grid } = self;
        let row = match (changes.key(), waiting.row(*next)) {
            (Some(changed), Some(waits)) => changed.min(waits),
            (Some(row), None) | (None, Some(row)) => row,
            (None, None) => return false,
        };
        let start = *next;
        while waiting.row(*next) == Some(row) {
            *next += 1;
        }
        let times = &waiting.times[start..*next];
        let has_changed = changes.key() == Some(row);
        if !has_changed && times.iter().all(|time| upper.less_equal(time)) {
            times.iter().for_each(|time| later.push(row, *time));
            return true;
        }
        grid.updates.clear();
        history.seek_key(row);
        if history.key() == Some(row) {
            while history.val().is_some() {
                history.updates(|mut time, weight| {
                    time.outer = time.outer.max(floor);
                    grid.updates.push((time, weight));
                });
                history.step_val();
            }
        }
        grid.differences(spec, |time, copies, excess| {
            if upper.less_equal(&time) {
                if !fault::armed(Fault::ForgetLaterRounds) {
                    later.push(row, time);
                }
            } else if lower.less_equal(&time) {
                let is_held = |(held, _): &(Round, _)| held.less_equal(&time);
                let place = outputs.iter().position(is_held);
                let place = place.expect("what is emitted follows from changes at or before it");
                if copies != 0 {
                    outputs[place].1.push(row, &[], time, copies);
                }
                if excess != 0 {
                    let rows = spec.layout.decode_key(row);
                    let message = format!(
                        "the recursion makes more than {MOST_COPIES} copies of this row: UNION instead of UNION ALL \
                         makes each row once"
                    );
                    errors[place].push(&spec.name, &rows, 0, &message, time, excess);
                }
            }
        });
        if has_changed {
            changes.step_key();
        }
        true
    }
}

/// The changes of one row by epoch and round.
#[derive(Default)]
struct Grid {
    updates: Vec<(Round, i64)>,
    rounds: Vec<u64>,
    /// For each round what has changed in it, up to the present epoch.
    sums: Vec<i64>,
    /// For each round how many copies it has more than the one before, at the epoch before; and the same of errors.
    before: Vec<(i64, i64)>,
}

impl Grid {
    /// Calls `visit` with the times at which the number of copies changes, by how much, and by how much it changes whether
    /// there should be more.
    fn differences(&mut self, spec: &Spec, mut visit: impl FnMut(Round, i64, i64)) {
        consolidate(&mut self.updates);
        self.rounds.clear();
        self.rounds.extend(self.updates.iter().map(|(time, _)| time.inner));
        self.rounds.sort_unstable();
        self.rounds.dedup();
        self.sums.clear();
        self.sums.resize(self.rounds.len(), 0);
        self.before.clear();
        self.before.resize(self.rounds.len(), (0, 0));
        // Updates are in the order of their epochs.
        for updates in self.updates.chunk_by(|one, other| one.0.outer == other.0.outer) {
            for (time, weight) in updates {
                if let Ok(place) = self.rounds.binary_search(&time.inner) {
                    self.sums[place] = add(self.sums[place], *weight);
                }
            }
            let (mut weight, mut last) = (0, (0, 0));
            for (place, round) in self.rounds.iter().enumerate() {
                weight = add(weight, self.sums[place]);
                let here = (spec.copies(weight), i64::from(spec.are_too_many(weight)));
                let more = (here.0 - last.0, here.1 - last.1);
                let before = std::mem::replace(&mut self.before[place], more);
                if more != before {
                    let time = Product::new(updates[0].0.outer, *round);
                    visit(time, more.0 - before.0, more.1 - before.1);
                }
                last = here;
            }
        }
    }
}
