//! Recomputation: groups whose rows change are evaluated by DataFusion as a whole.
//!
//! The rows of a group are kept, in order. When some of them change, the whole group is decoded, together with other changed
//! groups, and an [`Evaluator`] computes its results. The output is the difference to the previous results. These are in the
//! output's trace if it keeps them, which is cheap where a group has one result; otherwise the previous rows are evaluated
//! as well.
//!
//! A group is in memory as a whole: its rows, encoded and decoded, and its results. The budget counts it, and a group of more
//! than [`MemoryPolicy::group`] bytes is an error instead of results. Of several groups, as of several times, little more
//! than one is in memory at a time.
//!
//! [`MemoryPolicy::group`]: alluvium_trace::memory::MemoryPolicy::group
//!
//! An evaluator returns the same results for the same rows in the same order. So results do not depend on the history of the
//! rows.

mod groups;

use std::ops::{ControlFlow, Range};

use alluvium_trace::memory::{Charge, StateContext};
use alluvium_trace::{Cursors, Epoch, NullTrace, Spine};
use arrow::array::{RecordBatch, UInt32Array};
use arrow::compute::take;
use differential_dataflow::operators::arrange::{Arranged, TraceAgent};

use self::groups::{Decoded, decoded, difference};
pub(crate) use self::groups::{Groups, Results};
use crate::fault::{self, Fault};
use crate::map::ErrorRows;
use crate::movement::delta::{DeltaBuilder, DeltaStream, EncodedDelta};
use crate::movement::fuel::{Fuel, Produced};
use crate::reductions::reduce::{Changes, Output, Prior, Reduction, reduce_decoded};
use crate::rows::layout::{Layout, all_columns, assemble};
use crate::rows::weight::weight_of;
use crate::state::overlay::Overlay;

/// How many rows are evaluated at once, or more if one group has more.
const TOGETHER: usize = 32_768;

/// How many copies of the rows of groups an evaluation makes: decoded, in the order of a function, in its state, as its result,
/// and encoded.
const COPIES: usize = 5;

/// Computes the results of groups.
pub(crate) trait Evaluator: 'static {
    /// Adds the results of each of the groups to `results`, in order.
    fn evaluate(&mut self, groups: &Groups, results: &mut Results);
}

/// The results of `evaluator` for the groups of `input`: rows of `layout`, and errors.
///
/// The key of `input` is that of `layout`. `remember`: keep the results instead of evaluating previous rows again. `names` are
/// the functions' names in errors.
pub(crate) fn recompute<'scope>(
    input: Arranged<'scope, TraceAgent<Spine<Epoch>>>,
    evaluator: impl Evaluator,
    layout: Layout,
    remember: bool,
    names: Vec<String>,
    context: &StateContext,
) -> (DeltaStream<'scope, Epoch>, DeltaStream<'scope, Epoch>) {
    let logic = Recompute {
        evaluator,
        remember,
        overlay: Overlay::default(),
        groups: Groups::new(context),
        known: Known {
            computed: Results::new(context),
            kept: Results::new(context),
            too_large: Results::of_too_large_groups(context),
        },
        carried: Results::new(context),
        pending: Vec::new(),
        slices: Vec::new(),
        charge: context.budget().charge(0),
        evaluated: 0,
    };
    let key = layout.key_names();
    let decoder = Decoder { layout, names };
    let decode = move |encoded: &mut _| decoder.decode(encoded);
    match remember {
        true => reduce_decoded::<Spine<Epoch>, _>(input, "Recompute", key, context, logic, decode),
        false => {
            reduce_decoded::<NullTrace<Epoch>, _>(input, "Recompute", key, context, logic, decode)
        }
    }
}

/// Recomputes groups.
struct Recompute<E> {
    evaluator: E,
    remember: bool,
    overlay: Overlay,
    /// Groups that are not evaluated yet.
    groups: Groups,
    known: Known,
    /// Results on their way from one part of a key's time slices to the next.
    carried: Results,
    pending: Vec<Pending>,
    /// The time slices of the pending keys, and the group at each time.
    slices: Vec<(Epoch, Place)>,
    /// Counts the rows that evaluation decodes.
    charge: Charge,
    /// The bytes of groups that were evaluated and did not consume fuel yet.
    evaluated: usize,
}

/// The results of groups.
struct Known {
    computed: Results,
    /// Results that the output's trace keeps, or that were computed for the time before.
    kept: Results,
    /// The one result of groups that are too large.
    too_large: Results,
}

impl Known {
    /// The results of a group, in order.
    fn of(&self, place: Place) -> impl Iterator<Item = (&[u8], i64)> {
        let (results, group) = match place {
            Place::Nowhere => (None, 0),
            Place::Kept(group) => (Some(&self.kept), group),
            Place::Computed(group) => (Some(&self.computed), group),
            Place::TooLarge => (Some(&self.too_large), 0),
        };
        results.into_iter().flat_map(move |results| results.of(group))
    }
}

/// Where the results of a group are, or will be.
#[derive(Clone, Copy)]
enum Place {
    /// There are no rows.
    Nowhere,
    Kept(usize),
    Computed(usize),
    TooLarge,
}

/// A key whose changes are not emitted yet.
struct Pending {
    key: usize,
    before: Place,
    /// The end of its time slices.
    end: usize,
    /// Whether there are no later time slices.
    is_whole: bool,
}

impl<E: Evaluator> Reduction for Recompute<E> {
    fn reduce_all(
        &mut self,
        changes: &Changes,
        first: usize,
        prior: &mut Prior<'_>,
        output: &mut Output,
        fuel: &mut Fuel,
    ) -> usize {
        for number in first..changes.len() {
            let key = changes.key(number);
            self.overlay.clear();
            let mut before = Place::Nowhere;
            if self.remember {
                before = self.keep(prior.output(key));
            }
            let mut history = prior.input(key);
            if !self.remember {
                before = self.gather(changes, key, history.as_deref_mut());
            }
            for slice in changes.time_slices(number) {
                if self.is_full() {
                    before = self.emit_part(number, before, changes, output);
                }
                let time = changes.change(slice.start).time;
                self.overlay.apply(changes, slice);
                let group = self.gather(changes, key, history.as_deref_mut());
                self.slices.push((time, group));
            }
            let end = self.slices.len();
            self.pending.push(Pending { key: number, before, end, is_whole: true });
            fuel.consume(std::mem::take(&mut self.evaluated));
            if self.is_full() || !fuel.is_left() {
                self.finish_pending(changes, output, fuel);
            }
            if !fuel.is_left() {
                return number + 1;
            }
        }
        self.finish_pending(changes, output, fuel);
        changes.len()
    }
}

impl<E: Evaluator> Recompute<E> {
    /// Takes in the results of a key that the output's trace keeps.
    fn keep(&mut self, held: Option<&mut Cursors<Epoch>>) -> Place {
        if let Some(held) = held {
            while let Some(result) = held.val() {
                let weight = weight_of(held);
                if weight != 0 {
                    self.known.kept.kept(result, weight);
                }
                held.step_val();
            }
        }
        self.known.kept.end();
        Place::Kept(self.known.kept.len() - 1)
    }

    /// Makes the rows of a key, with the overlay applied, a group. Evaluates all groups if they are many or large.
    fn gather(
        &mut self,
        changes: &Changes,
        key: &[u8],
        history: Option<&mut Cursors<Epoch>>,
    ) -> Place {
        let policy = *self.charge.budget().policy();
        let groups = &mut self.groups;
        let start = groups.bytes();
        self.overlay.visit(changes, history, &[], |value, weight| {
            groups.push(value, weight);
            match groups.bytes() - start > policy.group {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        if groups.bytes() - start > policy.group {
            groups.abandon(start);
            return Place::TooLarge;
        }
        let Some(group) = groups.end(key) else { return Place::Nowhere };
        let place = Place::Computed(self.known.computed.len() + group);
        if groups.rows() >= TOGETHER || groups.bytes() >= policy.large_buffer / COPIES {
            self.evaluate();
        }
        place
    }

    /// Computes the results of all groups that have none yet.
    fn evaluate(&mut self) {
        if self.groups.len() > 0 {
            self.charge.set(self.groups.bytes().saturating_mul(COPIES));
            self.evaluated = self.evaluated.saturating_add(self.groups.bytes());
            self.evaluator.evaluate(&self.groups, &mut self.known.computed);
            self.groups.clear();
            self.charge.set(0);
        }
    }

    /// Whether there are so many results that they should be emitted.
    fn is_full(&self) -> bool {
        let bytes = self.known.computed.bytes() + self.known.kept.bytes();
        self.known.computed.rows() >= TOGETHER
            || bytes >= self.charge.budget().policy().large_buffer / COPIES
    }

    /// Emits the changes of the pending keys, and those of the key `number` up to now. Returns the place of its results.
    fn emit_part(
        &mut self,
        number: usize,
        before: Place,
        changes: &Changes,
        output: &mut Output,
    ) -> Place {
        let end = self.slices.len();
        let begun = self.pending.last().map_or(0, |pending| pending.end);
        let last = self.slices[begun..].last().map_or(before, |(_, place)| *place);
        self.pending.push(Pending { key: number, before, end, is_whole: false });
        self.emit(changes, output);
        self.carried.clear();
        for (result, weight) in self.known.of(last) {
            self.carried.kept(result, weight);
        }
        self.carried.end();
        self.clear();
        std::mem::swap(&mut self.known.kept, &mut self.carried);
        Place::Kept(0)
    }

    /// Evaluates all groups, and emits the changes of the pending keys.
    fn emit(&mut self, changes: &Changes, output: &mut Output) {
        self.evaluate();
        let mut start = 0;
        for pending in &self.pending {
            let mut last = pending.before;
            for &(time, group) in &self.slices[start..pending.end] {
                let old = match fault::armed(Fault::ForgetOldResults) {
                    true => Place::Nowhere,
                    false => last,
                };
                difference(self.known.of(old), self.known.of(group), |result, weight| {
                    output.push(result, time, weight)
                });
                last = group;
            }
            start = pending.end;
            if pending.is_whole {
                output.finish_key(changes.key(pending.key));
            }
        }
    }

    /// Emits the changes of the pending keys, which consume fuel, and forgets their results.
    fn finish_pending(&mut self, changes: &Changes, output: &mut Output, fuel: &mut Fuel) {
        self.emit(changes, output);
        self.clear();
        fuel.consume(std::mem::take(&mut self.evaluated) + output.take_bytes());
    }

    /// Forgets all results.
    fn clear(&mut self) {
        self.pending.clear();
        self.slices.clear();
        self.known.computed.clear();
        self.known.kept.clear();
    }
}

/// Turns results into rows and errors.
struct Decoder {
    layout: Layout,
    names: Vec<String>,
}

impl Decoder {
    fn decode(&self, encoded: &mut EncodedDelta<Epoch>) -> Produced<Epoch> {
        let (keys, results, updates) = encoded.parts();
        let mut row_keys: Vec<&[u8]> = Vec::with_capacity(results.len());
        let mut rows: Vec<&[u8]> = Vec::with_capacity(results.len());
        let mut row_updates = DeltaBuilder::default();
        let mut errors = ErrorRows::default();
        for (at, (key, result)) in keys.iter().zip(results.iter()).enumerate() {
            let (time, weight) = updates.update(at);
            match decoded(result) {
                Decoded::Row(value) => {
                    row_keys.push(key);
                    rows.push(value);
                    row_updates.push(time, weight);
                }
                Decoded::Error(number, message) => {
                    let group = self.layout.decode_key(key);
                    errors.push(&self.names[number], &group, 0, message, time, weight);
                }
            }
        }
        let all = all_columns(self.layout.schema());
        let columns = self.layout.decode(row_keys, rows.iter().copied(), &all);
        let rows = assemble(self.layout.schema().clone(), columns, rows.len());
        encoded.clear();
        let errors = (!errors.is_empty()).then(|| errors.finish());
        Produced { rows: row_updates.finish(rows), errors }
    }
}

/// The rows of groups, each repeated by its weight, and the range of each group.
pub(crate) fn expanded(rows: &RecordBatch, groups: &Groups) -> (RecordBatch, Vec<Range<usize>>) {
    let copies = |row| match fault::armed(Fault::IgnoreCopies) {
        true => 1,
        false => usize::try_from(groups.weight(row)).expect("a row of a group is there"),
    };
    if (0..groups.rows()).all(|row| copies(row) == 1) {
        return (rows.clone(), (0..groups.len()).map(|group| groups.rows_of(group)).collect());
    }
    let mut indices: Vec<u32> = Vec::with_capacity(groups.rows());
    let mut ranges = Vec::with_capacity(groups.len());
    for group in 0..groups.len() {
        let start = indices.len();
        for row in groups.rows_of(group) {
            indices.extend(std::iter::repeat_n(row as u32, copies(row)));
        }
        ranges.push(start..indices.len());
    }
    let indices = UInt32Array::from(indices);
    let columns = rows.columns().iter();
    let columns = columns
        .map(|column| take(column, &indices, None).expect("each index is below the length"))
        .collect();
    (assemble(rows.schema(), columns, indices.len()), ranges)
}
