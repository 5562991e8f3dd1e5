//! Reductions inside of a recursion: per key, a function of its rows in each round.
//!
//! # What changes when
//!
//! The output of a key at an epoch *e* and a round *r* is a function of all of its changes at or before both. The difference emitted at
//! *(e, r)* is that output less everything emitted at earlier epochs and rounds. On the grid of the epochs and the
//! rounds of the key's changes this is a difference of differences:
//!
//! ```text
//! output(e, r) − output(e, r − 1) − output(e − 1, r) + output(e − 1, r − 1)
//! ```
//!
//! It may differ from zero where no change came in: if a row of rounds 3 and 7 loses its support in round 3, its first copy
//! moves to round 7, at the epoch of the loss. Such a time may come only later. Then the key waits for it.
//!
//! So the output need not be kept: it follows from the changes, as long as the past is not merged with the present. The trace
//! is compacted up to the epoch before the first one that is not complete.

use std::rc::Rc;

use alluvium_trace::memory::StateContext;
use alluvium_trace::{Batch, Cursors, Epoch, Spine};
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
use crate::fault::{self, Fault};
use crate::movement::delta::{Delta, DeltaStream, EncodedDelta};
use crate::movement::fuel::{Fuel, Produced};
use crate::movement::operator;
use crate::rows::codec::Encoded;

/// The computation on the rows of a key.
pub(super) trait Logic: 'static {
    /// Emits how the output of a key changes: at the times of its changes, and at those that are the later ones of an epoch and a
    /// round of these.
    ///
    /// `history` is at the key and has all of its changes; the cursor must end past those it reads. Changes before the epoch `floor` are
    /// those of that epoch. A change is a value, with a weight. Returns the bytes that were read.
    fn differences(
        &mut self,
        history: &mut Cursors<Round>,
        floor: Epoch,
        emit: &mut dyn FnMut(Round, &[u8], i64),
    ) -> usize;

    /// The rows of keys and values that were emitted, and their errors. Empties `encoded`.
    fn decode(&self, encoded: &mut EncodedDelta<Round>) -> Produced<Round>;
}

/// The output of all keys, and the errors.
pub(super) fn reduce<'scope>(
    name: &str,
    arranged: Arranged<'scope, TraceAgent<Spine<Round>>>,
    logic: impl Logic,
    context: &StateContext,
) -> (DeltaStream<'scope, Round>, DeltaStream<'scope, Round>) {
    let Arranged { stream, trace } = arranged;
    let scope = stream.scope();
    let mut builder = OperatorBuilder::new(name.to_owned(), scope);
    let activator = scope.activator_for(Rc::clone(&builder.operator_info().address));
    let mut input = builder.new_input(stream, Pipeline);
    let (rows_output, rows) = builder.new_output();
    let mut rows_output = OutputBuilder::<Round, NoopBuilder<Delta<Round>>>::from(rows_output);
    let (errors_output, errors) = builder.new_output();
    let mut errors_output = OutputBuilder::<Round, NoopBuilder<Delta<Round>>>::from(errors_output);
    let mut reduction = Reduction::new(logic, trace, context);
    let mut fuel = Fuel::new(context);
    operator::build(builder, move |_capabilities| {
        move |_frontiers| {
            input.for_each(|capability, batches: &mut Vec<Batch<Round>>| {
                reduction.arrived.capabilities[0].insert(capability.retain(0));
                reduction.arrived.capabilities[1].insert(capability.retain(1));
                reduction.arrived.batches.append(batches);
            });
            let mut rows_output = rows_output.activate();
            let mut errors_output = errors_output.activate();
            let mut emit =
                |capabilities: &[CapabilitySet<Round>; 2], held: &Round, out: Produced<Round>| {
                    let Produced { mut rows, errors } = out;
                    if !rows.is_empty() {
                        let capability = capabilities[0].delayed(held);
                        rows_output.session_with_builder(&capability).give_container(&mut rows);
                    }
                    if let Some(mut errors) = errors {
                        let capability = capabilities[1].delayed(held);
                        errors_output.session_with_builder(&capability).give_container(&mut errors);
                    }
                };
            fuel.refill();
            while reduction.begin() {
                if !reduction.work(&mut fuel, &mut emit) {
                    return fuel.reschedule(&activator);
                }
            }
        }
    });
    (rows, errors)
}

/// Changes of an interval of time that is not complete.
#[derive(Default)]
struct Arrived {
    batches: Vec<Batch<Round>>,
    /// Those of the rows, and those of the errors.
    capabilities: [CapabilitySet<Round>; 2],
}

/// Keys that wait for times to come, in ascending order, and the times, those of a key one after the other.
struct Waiting {
    keys: Encoded,
    times: Vec<Round>,
}

impl Waiting {
    fn new(context: &StateContext) -> Self {
        Self { keys: Encoded::counted(context), times: Vec::new() }
    }

    fn push(&mut self, key: &[u8], time: Round) {
        self.keys.push(key);
        self.times.push(time);
    }

    /// The key at a place, if there is one.
    fn key(&self, place: usize) -> Option<&[u8]> {
        (place < self.times.len()).then(|| self.keys.get(place))
    }
}

/// The operator.
struct Reduction<L> {
    logic: L,
    context: StateContext,
    trace: TraceAgent<Spine<Round>>,
    arrived: Arrived,
    /// Everything before this is done.
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
    /// The place of the next key that waits.
    next: usize,
    /// The changes that wait for later intervals.
    later: Waiting,
    /// The rows to emit at or after each of these times, which are held.
    outputs: Vec<(Round, EncodedDelta<Round>)>,
}

impl<L: Logic> Reduction<L> {
    fn new(logic: L, trace: TraceAgent<Spine<Round>>, context: &StateContext) -> Self {
        Self {
            logic,
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
    ///
    /// An interval ends where a batch does. The frontier of the input may be elsewhere: it does not wait for a batch that another
    /// thread sorts, except at the times of its rows.
    fn begin(&mut self) -> bool {
        if self.work.is_some() {
            return true;
        }
        let mut upper = self.lower.clone();
        if let Some(last) = self.arrived.batches.last() {
            upper.clone_from(last.upper());
        }
        self.trace.advance_upper(&mut upper);
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
            .expect("the trace is not compacted beyond what is done");
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
            outputs,
        });
        true
    }

    /// Continues the interval in progress while there is fuel. Returns whether it is complete.
    fn work(
        &mut self,
        fuel: &mut Fuel,
        emit: &mut impl FnMut(&[CapabilitySet<Round>; 2], &Round, Produced<Round>),
    ) -> bool {
        let Some(work) = &mut self.work else { return true };
        let floor = Self::first_epoch(&self.lower).unwrap_or_default().saturating_sub(1);
        loop {
            if !fuel.is_left() {
                return false;
            }
            let from = work.next;
            let Some(read) = work.next_key(&mut self.logic, &self.lower, &self.waiting, floor)
            else {
                break;
            };
            fuel.consume(read + (work.next - from));
            for (held, out) in work.outputs.iter_mut().filter(|(_, out)| out.is_full()) {
                let produced = self.logic.decode(out);
                fuel.consume(produced.rows.bytes());
                emit(&self.capabilities, held, produced);
            }
        }
        for (held, out) in work.outputs.iter_mut().filter(|(_, out)| out.len() > 0) {
            emit(&self.capabilities, held, self.logic.decode(out));
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

impl Work {
    /// Reduces the next key that has changed or waits for a time of the interval. Returns how many bytes of it were read; `None` if
    /// there is none.
    fn next_key(
        &mut self,
        logic: &mut impl Logic,
        lower: &Antichain<Round>,
        waiting: &Waiting,
        floor: Epoch,
    ) -> Option<usize> {
        let Self { upper, changes, history, next, later, outputs } = self;
        let key = match (changes.key(), waiting.key(*next)) {
            (Some(changed), Some(waits)) => changed.min(waits),
            (Some(key), None) | (None, Some(key)) => key,
            (None, None) => return None,
        };
        let start = *next;
        while waiting.key(*next) == Some(key) {
            *next += 1;
        }
        let times = &waiting.times[start..*next];
        let has_changed = changes.key() == Some(key);
        if !has_changed && times.iter().all(|time| upper.less_equal(time)) {
            times.iter().for_each(|time| later.push(key, *time));
            return Some(key.len());
        }
        history.seek_key(key);
        let mut read = key.len();
        if history.key() == Some(key) {
            let mut waits_for = None;
            read += logic.differences(history, floor, &mut |time, value, weight| {
                if upper.less_equal(&time) {
                    if waits_for != Some(time) && !fault::armed(Fault::ForgetLaterRounds) {
                        later.push(key, time);
                        waits_for = Some(time);
                    }
                } else if lower.less_equal(&time) {
                    let is_held = |(held, _): &(Round, _)| held.less_equal(&time);
                    let place = outputs.iter().position(is_held);
                    let place =
                        place.expect("what is emitted follows from changes at or before it");
                    outputs[place].1.push(key, value, time, weight);
                }
            });
        }
        if has_changed {
            changes.step_key();
        }
        Some(read)
    }
}
