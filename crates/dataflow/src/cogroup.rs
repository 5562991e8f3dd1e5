//! Reductions of two inputs: what is known of a key, when rows under it change on either side.
//!
//! [`cogroup`] waits until both inputs have come past a time, and then shows a [`Logic`] each key under
//! which rows have changed, in byte order, with the rows of both sides within reach. It is for totally
//! ordered time, and reads both traces in place: it keeps nothing of its own.
//!
//! # Design
//!
//! One input is often ahead of the other, so a batch may hold times that are due and times that are not.
//! So nothing is cut by batches: all is read from the traces as they stand, and told apart by time.
//! What was before an interval, what changes in it and what comes later differ as long as logical
//! compaction stays behind the interval, which is what this operator holds the traces to. Batches that
//! came on the streams only name the keys to look at; they are kept until all their times are done.

use alluvium_trace::{Batch, Cursors, Epoch};
use arrow::array::{ArrayRef, BooleanArray, new_null_array};
use arrow::datatypes::{DataType, SchemaRef};
use differential_dataflow::trace::{BatchReader, TraceReader};
use timely::container::NoopBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::Capability;
use timely::dataflow::operators::generic::{OutputBuilderSession, operator::Operator};
use timely::progress::Antichain;
use timely::progress::frontier::AntichainRef;

use crate::arrangement::Kept;
use crate::codec::Encoded;
use crate::delta::{DELTA_ROWS, Delta, DeltaBuilder, DeltaStream};
use crate::fault::{self, Fault};
use crate::layout::{Layout, all_columns, assemble};
use crate::reader::Reader;
use crate::weight::{self, add};

/// What a reduction of two inputs does with one key.
pub(crate) trait Logic: 'static {
    /// Puts out what changes under `key`, which at least one side has updates of.
    fn group(&mut self, key: &[u8], left: &mut Rows, right: &mut Rows, answer: &mut Answer);
}

/// Reduces the rows of `left` and `right` under each of their keys; both are keyed by columns of the same
/// types, and equal keys are on the same worker.
pub(crate) fn cogroup<'scope>(
    left: Kept<'scope>,
    right: Kept<'scope>,
    name: &str,
    mut logic: impl Logic,
    mut answer: Answer,
) -> DeltaStream<'scope, Epoch> {
    let mut left_side = Side::new(left.arranged.trace);
    let mut right_side = Side::new(right.arranged.trace);
    let streams = (left.arranged.stream, right.arranged.stream);
    streams.0.binary_frontier(streams.1, Pipeline, Pipeline, name, move |_capability, _info| {
        // For the updates that wait; `None` while there are none.
        let mut held: Option<Capability<Epoch>> = None;
        // What is before this time is done; `None` once everything is.
        let mut lower: Option<Epoch> = Some(0);
        move |(left_input, left_frontier),
              (right_input, right_frontier),
              output: &mut OutputBuilderSession<'_, Epoch, NoopBuilder<Delta<Epoch>>>| {
            let mut hold = |capability: Capability<Epoch>| match &held {
                Some(earlier) if earlier.time() <= capability.time() => {}
                _ => held = Some(capability),
            };
            left_input.for_each(|capability, batches: &mut Vec<Batch<Epoch>>| {
                left_side.receive(batches);
                hold(capability.retain(0));
            });
            right_input.for_each(|capability, batches: &mut Vec<Batch<Epoch>>| {
                right_side.receive(batches);
                hold(capability.retain(0));
            });
            let Some(from) = lower else { return };
            let upper = earlier(left_frontier.frontier(), right_frontier.frontier());
            if upper == Some(from) {
                return;
            }
            if let Some(capability) = &held
                && !(left_side.waiting.is_empty() && right_side.waiting.is_empty())
            {
                if fault::armed(Fault::PanicInTactic) {
                    panic!("a fault was injected into a reduction of two inputs");
                }
                let mut left_rows = left_side.rows(from, upper);
                let mut right_rows = right_side.rows(from, upper);
                for rows in [&mut left_rows, &mut right_rows] {
                    let fresh = left_side.waiting.iter().chain(&right_side.waiting);
                    rows.all.expect(Cursors::new(fresh.cloned()));
                }
                let mut session = output.session_with_builder(capability);
                let mut key = Vec::new();
                while next_key(&left_rows, &right_rows, &mut key) {
                    logic.group(&key, &mut left_rows, &mut right_rows, &mut answer);
                    left_rows.leave(&key);
                    right_rows.leave(&key);
                    for mut delta in answer.full.drain(..) {
                        session.give_container(&mut delta);
                    }
                }
                answer.flush();
                for mut delta in answer.full.drain(..) {
                    session.give_container(&mut delta);
                }
            }
            left_side.advance(upper);
            right_side.advance(upper);
            lower = upper;
            held = match (held.take(), upper) {
                (Some(mut capability), Some(upper))
                    if !(left_side.waiting.is_empty() && right_side.waiting.is_empty()) =>
                {
                    if *capability.time() < upper {
                        capability.downgrade(&upper);
                    }
                    Some(capability)
                }
                _ => None,
            };
        }
    })
}

/// The earlier of two frontiers; `None` where neither has any time left.
fn earlier(left: AntichainRef<'_, Epoch>, right: AntichainRef<'_, Epoch>) -> Option<Epoch> {
    left.iter().chain(right.iter()).min().copied()
}

/// Puts the first key that has fresh updates on either side into `key`.
fn next_key(left: &Rows, right: &Rows, key: &mut Vec<u8>) -> bool {
    let next = match (left.fresh.key(), right.fresh.key()) {
        (Some(left), Some(right)) => left.min(right),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => return false,
    };
    key.clear();
    key.extend_from_slice(next);
    true
}

/// One of the two inputs.
struct Side {
    /// `None` once nothing more can change.
    trace: Option<Reader>,
    /// Batches of which some updates are not done.
    waiting: Vec<Batch<Epoch>>,
}

impl Side {
    fn new(mut trace: Reader) -> Self {
        // No batch is ever asked for apart from another.
        trace.set_physical_compaction(Antichain::new().borrow());
        Self { trace: Some(trace), waiting: Vec::new() }
    }

    fn receive(&mut self, batches: &mut Vec<Batch<Epoch>>) {
        self.waiting.extend(batches.drain(..).filter(|batch| !batch.is_empty()));
    }

    fn rows(&self, lower: Epoch, upper: Option<Epoch>) -> Rows {
        let mut all = Vec::new();
        if let Some(trace) = &self.trace {
            trace.map_batches(|batch| all.push(batch.clone()));
        }
        let mut fresh = self.waiting.clone();
        if fault::armed(Fault::FirstTileOnly) {
            fresh.truncate(1);
        }
        Rows {
            fresh: Cursors::new(fresh),
            all: Cursors::new(all),
            interval: Interval { lower, upper },
        }
    }

    /// Lets go of what is only needed for times before `upper`.
    fn advance(&mut self, upper: Option<Epoch>) {
        let Some(upper) = upper else {
            self.trace = None;
            self.waiting.clear();
            return;
        };
        if let Some(trace) = &mut self.trace {
            // Not up to `upper`: what is then before it could no longer be told from what changes at it.
            let kept = Antichain::from_elem(upper.saturating_sub(1));
            trace.set_logical_compaction(kept.borrow());
        }
        let done = |batch: &Batch<Epoch>| {
            batch.description().since().elements().iter().all(|since| *since < upper)
                && batch.upper().elements().iter().all(|end| *end <= upper)
                && !batch.upper().is_empty()
        };
        self.waiting.retain(|batch| !done(batch));
    }
}

/// The times of a step, for one of the inputs.
#[derive(Clone, Copy)]
struct Interval {
    lower: Epoch,
    upper: Option<Epoch>,
}

/// The rows of one input, before and in the interval of a step.
pub(crate) struct Rows {
    /// What has come and is not done.
    fresh: Cursors<Epoch>,
    /// Everything; keys must be asked for in order.
    all: Cursors<Epoch>,
    interval: Interval,
}

/// How often something was there before an interval, and how that changes in it.
#[derive(Default)]
pub(crate) struct History {
    /// The weight before.
    pub(crate) before: i64,
    /// The changes, by time once [`History::settle`] was called.
    pub(crate) changes: Vec<(Epoch, i64)>,
}

impl History {
    pub(crate) fn clear(&mut self) {
        self.before = 0;
        self.changes.clear();
    }

    /// Adds the updates that `cursors` stand on; whether one is in the interval.
    fn read(&mut self, cursors: &Cursors<Epoch>, interval: Interval) -> bool {
        let known = self.changes.len();
        cursors.updates(|time, weight| {
            if time < interval.lower {
                self.before = add(self.before, weight);
            } else if interval.upper.is_none_or(|upper| time < upper) {
                self.changes.push((time, weight));
            }
        });
        self.changes.len() > known
    }

    /// Brings the changes into order of time, one for each time at which there is one.
    pub(crate) fn settle(&mut self) {
        weight::consolidate(&mut self.changes);
    }
}

impl Rows {
    /// Moves the fresh updates past `key`.
    fn leave(&mut self, key: &[u8]) {
        if self.fresh.key() == Some(key) {
            self.fresh.step_key();
        }
    }

    /// Adds the changes of all rows under `key` to `history`, which must have come to that key.
    pub(crate) fn changes(&mut self, key: &[u8], history: &mut History) {
        if self.fresh.key() != Some(key) {
            return;
        }
        self.fresh.rewind_vals();
        while self.fresh.val().is_some() {
            history.read(&self.fresh, self.interval);
            self.fresh.step_val();
        }
        // What was before is read from the whole, not from what happens to wait still.
        history.before = 0;
    }

    /// Calls `visit` with each row under `key` that changes, when, and by how much.
    pub(crate) fn each_change(&mut self, key: &[u8], mut visit: impl FnMut(&[u8], Epoch, i64)) {
        if self.fresh.key() != Some(key) {
            return;
        }
        let Interval { lower, upper } = self.interval;
        self.fresh.rewind_vals();
        while let Some(value) = self.fresh.val() {
            self.fresh.updates(|time, weight| {
                if time >= lower && upper.is_none_or(|upper| time < upper) {
                    visit(value, time, weight);
                }
            });
            self.fresh.step_val();
        }
    }

    /// The row under `key` whose fresh updates are next, if there is one.
    pub(crate) fn fresh_row(&self, key: &[u8]) -> Option<&[u8]> {
        if self.fresh.key() == Some(key) { self.fresh.val() } else { None }
    }

    /// Adds the fresh changes of `row`, if it is next under `key`, to `history` and goes on to the next.
    pub(crate) fn take_row(&mut self, key: &[u8], row: &[u8], history: &mut History) {
        if self.fresh_row(key) == Some(row) {
            history.read(&self.fresh, self.interval);
            history.before = 0;
            self.fresh.step_val();
        }
    }

    /// The whole history of one row under `key`; rows under a key must be asked for in order.
    pub(crate) fn history_of(&mut self, key: &[u8], row: &[u8], history: &mut History) {
        if self.find(key) {
            self.all.seek_val(row);
            if self.all.val() == Some(row) {
                history.read(&self.all, self.interval);
            }
        }
    }

    /// Whether a row under `key` is there at all times of the interval and does not change. If not, adds the
    /// history of all rows that do change to `history`: no other is there at any of its times.
    pub(crate) fn steady(&mut self, key: &[u8], history: &mut History) -> bool {
        if !self.find(key) {
            return false;
        }
        while self.all.val().is_some() {
            let before = history.before;
            let changes = history.read(&self.all, self.interval);
            if !changes && history.before > before {
                return true;
            }
            self.all.step_val();
        }
        false
    }

    /// Calls `visit` with each row under `key` and its history.
    pub(crate) fn each_history(
        &mut self,
        key: &[u8],
        history: &mut History,
        mut visit: impl FnMut(&[u8], &mut History),
    ) {
        if !self.find(key) {
            return;
        }
        while let Some(value) = self.all.val() {
            history.clear();
            history.read(&self.all, self.interval);
            if history.before != 0 || !history.changes.is_empty() {
                history.settle();
                visit(value, history);
            }
            self.all.step_val();
        }
    }

    /// Moves the whole to `key`; whether it has it.
    fn find(&mut self, key: &[u8]) -> bool {
        if fault::armed(Fault::ForgetHistory) {
            return false;
        }
        self.all.seek_key(key);
        self.all.key() == Some(key)
    }
}

/// What the rows of the left input become in the output.
pub(crate) struct Shape {
    /// The columns of the output.
    pub(crate) schema: SchemaRef,
    /// The types of columns of NULLs that come first.
    pub(crate) nulls_before: Vec<DataType>,
    /// The columns of the left rows.
    pub(crate) columns: Vec<usize>,
    /// The types of columns of NULLs that come then.
    pub(crate) nulls_after: Vec<DataType>,
    /// Whether the row's mark is the last column.
    pub(crate) marked: bool,
}

impl Shape {
    /// Whole rows of `schema`.
    pub(crate) fn of_rows(schema: SchemaRef) -> Self {
        Self {
            columns: all_columns(&schema),
            schema,
            nulls_before: Vec::new(),
            nulls_after: Vec::new(),
            marked: false,
        }
    }
}

/// Changes on their way out.
pub(crate) struct Answer {
    layout: Layout,
    shape: Shape,
    keys: Encoded,
    values: Encoded,
    marks: Vec<bool>,
    updates: DeltaBuilder<Epoch>,
    full: Vec<Delta<Epoch>>,
}

impl Answer {
    /// An answer of rows that `layout` encodes.
    pub(crate) fn new(layout: Layout, shape: Shape) -> Self {
        Self {
            layout,
            shape,
            keys: Encoded::default(),
            values: Encoded::default(),
            marks: Vec::new(),
            updates: DeltaBuilder::default(),
            full: Vec::new(),
        }
    }

    /// Adds a change of a row.
    pub(crate) fn push(&mut self, key: &[u8], value: &[u8], mark: bool, time: Epoch, weight: i64) {
        if weight == 0 || weight < 0 && fault::armed(Fault::KeepOldAnswer) {
            return;
        }
        self.keys.push(key);
        self.values.push(value);
        if self.shape.marked {
            self.marks.push(mark);
        }
        self.updates.push(time, weight);
        if self.keys.len() >= DELTA_ROWS {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let rows = self.keys.len();
        if rows == 0 {
            return;
        }
        let nulls = |types: &[DataType]| -> Vec<ArrayRef> {
            types.iter().map(|data_type| new_null_array(data_type, rows)).collect()
        };
        let shape = &self.shape;
        let mut columns = nulls(&shape.nulls_before);
        columns.extend(self.layout.decode(self.keys.iter(), self.values.iter(), &shape.columns));
        columns.extend(nulls(&shape.nulls_after));
        if shape.marked {
            let marks = BooleanArray::from(std::mem::take(&mut self.marks));
            columns.push(std::sync::Arc::new(marks));
        }
        self.keys.clear();
        self.values.clear();
        self.full.push(self.updates.finish(assemble(shape.schema.clone(), columns, rows)));
    }
}
