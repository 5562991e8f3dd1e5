//! Recomputation: groups whose rows change are evaluated by DataFusion as a whole.
//!
//! The rows of a group are kept, in order. When some of them change, the whole group is decoded, together with other changed
//! groups, and an [`Evaluator`] computes its results. The output is the difference to the previous results. These are in the
//! output's trace if it keeps them, which is cheap where a group has one result; otherwise the previous rows are evaluated
//! as well.
//!
//! An evaluator returns the same results for the same rows in the same order. So results do not depend on the history of the
//! rows.

mod groups;

use std::ops::Range;

use alluvium_trace::memory::StateContext;
use alluvium_trace::{Cursors, Epoch, NullTrace, Spine};
use arrow::array::{RecordBatch, UInt32Array};
use arrow::compute::take;
use differential_dataflow::operators::arrange::{Arranged, TraceAgent};

use self::groups::{Answered, answered, difference};
pub(crate) use self::groups::{Groups, Results};
use crate::decoded::decoded_with_errors;
use crate::delta::{DeltaBuilder, DeltaStream, EncodedDelta};
use crate::fault::{self, Fault};
use crate::fuel::Produced;
use crate::layout::{Layout, all_columns, assemble};
use crate::map::ErrorRows;
use crate::overlay::Overlay;
use crate::reduce::{Changes, Output, Prior, Reduction, reduce};
use crate::weight::weight_of;

/// How many rows are evaluated at once, or more if one group has more.
const TOGETHER: usize = 32_768;

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
        results: Results::new(context),
        kept: Results::new(context),
        pending: Vec::new(),
        slices: Vec::new(),
    };
    let key = layout.key_names();
    let stream = if remember {
        reduce::<_, Spine<Epoch>, _>(input, Vec::new(), "Recompute", key, context, logic).stream
    } else {
        reduce::<_, NullTrace<Epoch>, _>(input, Vec::new(), "Recompute", key, context, logic).stream
    };
    let decoder = Decoder { layout, names };
    decoded_with_errors(stream, context, move |encoded| decoder.decode(encoded))
}

/// Recomputes groups.
struct Recompute<E> {
    evaluator: E,
    remember: bool,
    overlay: Overlay,
    groups: Groups,
    results: Results,
    /// The results that the output's trace keeps for the pending keys.
    kept: Results,
    pending: Vec<Pending>,
    /// The time slices of the pending keys: a time, and the group's number if it has rows at that time.
    slices: Vec<(Epoch, Option<usize>)>,
}

/// A key whose groups are not evaluated yet.
struct Pending {
    key: usize,
    /// The previous group, or its kept results.
    before: Option<usize>,
    /// The end of its time slices.
    end: usize,
}

impl<E: Evaluator> Reduction for Recompute<E> {
    fn reduce_all(&mut self, changes: &Changes, prior: &mut Prior<'_>, output: &mut Output) {
        for number in 0..changes.len() {
            let key = changes.key(number);
            self.overlay.clear();
            let mut of_before = None;
            if self.remember {
                if let Some(held) = prior.output(key) {
                    while let Some(answer) = held.val() {
                        let weight = weight_of(held);
                        if weight != 0 {
                            self.kept.kept(answer, weight);
                        }
                        held.step_val();
                    }
                }
                self.kept.end();
                of_before = Some(self.kept.len() - 1);
            }
            let mut history = prior.input(key);
            if !self.remember {
                of_before = self.gather(changes, key, history.as_deref_mut());
            }
            for slice in changes.time_slices(number) {
                let time = changes.change(slice.start).time;
                self.overlay.apply(changes, slice);
                let group = self.gather(changes, key, history.as_deref_mut());
                self.slices.push((time, group));
            }
            let end = self.slices.len();
            self.pending.push(Pending { key: number, before: of_before, end });
            if self.groups.rows() >= TOGETHER {
                self.emit(changes, output);
            }
        }
        self.emit(changes, output);
    }
}

impl<E: Evaluator> Recompute<E> {
    /// Makes the rows of a key, with the overlay applied, a group.
    fn gather(
        &mut self,
        changes: &Changes,
        key: &[u8],
        history: Option<&mut Cursors<Epoch>>,
    ) -> Option<usize> {
        let groups = &mut self.groups;
        self.overlay.visit(changes, history, &[], |value, weight| {
            groups.push(value, weight);
            std::ops::ControlFlow::Continue(())
        });
        groups.end(key)
    }

    /// Evaluates all groups, and emits the changes of the pending keys.
    fn emit(&mut self, changes: &Changes, output: &mut Output) {
        if self.groups.len() > 0 {
            self.evaluator.evaluate(&self.groups, &mut self.results);
        }
        debug_assert_eq!(self.groups.len(), self.results.len(), "a result for each group");
        let mut start = 0;
        for pending in self.pending.drain(..) {
            let mut last = pending.before;
            let mut in_kept = self.remember;
            for &(time, group) in &self.slices[start..pending.end] {
                let old = if in_kept { &self.kept } else { &self.results };
                let skipped = fault::armed(Fault::ForgetOldResults);
                difference(
                    old.of(last.filter(|_| !skipped)),
                    self.results.of(group),
                    |answer, weight| output.push(answer, time, weight),
                );
                (last, in_kept) = (group, false);
            }
            start = pending.end;
            output.finish_key(changes.key(pending.key));
        }
        self.slices.clear();
        self.groups.clear();
        self.results.clear();
        self.kept.clear();
    }
}

/// Turns results into rows and errors.
struct Decoder {
    layout: Layout,
    names: Vec<String>,
}

impl Decoder {
    fn decode(&self, encoded: &mut EncodedDelta<Epoch>) -> Produced<Epoch> {
        let (keys, answers, updates) = encoded.parts();
        let mut row_keys: Vec<&[u8]> = Vec::with_capacity(answers.len());
        let mut rows: Vec<&[u8]> = Vec::with_capacity(answers.len());
        let mut row_updates = DeltaBuilder::default();
        let mut errors = ErrorRows::default();
        for (at, (key, answer)) in keys.iter().zip(answers.iter()).enumerate() {
            let (time, weight) = updates.update(at);
            match answered(answer) {
                Answered::Row(value) => {
                    row_keys.push(key);
                    rows.push(value);
                    row_updates.push(time, weight);
                }
                Answered::Error(number, message) => {
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
