//! Reductions: what is known of a key, when the rows under it change.
//!
//! A [`Fold`] drives a [`Logic`] over all changes of an interval at once, key by key in byte order and
//! under each key in order of time, with what the input and the output held before within reach. It is
//! for totally ordered time: the times at which a key's answer can change are those at which its rows do.
//!
//! The output is one batch with a time column over the whole interval, shipped at the one held time.
//! The batches held before may carry times equal to the interval's lower bound, because compaction
//! advanced them there; all of them are earlier than all changes, and are never filtered by time.

use std::ops::Range;

use alluvium_trace::memory::{Charge, context};
use alluvium_trace::{Batch, BatchBuilder, Cursors, PageTime, metrics};
use differential_dataflow::operators::arrange::{Arranged, TraceAgent};
use differential_dataflow::operators::reduce::{ReduceTactic, reduce_with_tactic};
use differential_dataflow::trace::{Description, Trace, TraceReader};
use timely::order::TotalOrder;
use timely::progress::Antichain;

use crate::codec::Encoded;
use crate::fault::{self, Fault};
use crate::weight::weight_of;

/// Reduces the rows under each key of `input`. `key` names the columns of keys in metrics.
///
/// What the logic may see of the past is what the traces keep: [`alluvium_trace::NullTrace`] keeps none.
pub(crate) fn fold<'scope, T, In, Out, L>(
    input: Arranged<'scope, In>,
    name: &str,
    key: String,
    logic: L,
) -> Arranged<'scope, TraceAgent<Out>>
where
    T: PageTime + TotalOrder,
    In: TraceReader<Time = T, Batch = Batch<T>> + 'static,
    Out: Trace<Time = T, Batch = Batch<T>> + 'static,
    L: Logic<T>,
{
    let tactic = Fold { logic, changes: Changes::new(), answer: Answer::default() };
    metrics::label(name, key);
    reduce_with_tactic(input, name, tactic)
}

/// What a reduction does with the changes of one key.
pub(crate) trait Logic<T>: 'static {
    /// Looks at the changes of some keys, before these are folded one by one.
    fn prepare(&mut self, _changes: &Changes<T>) {}

    /// Puts out what changes under the key numbered `key`, given what was `before`.
    ///
    /// Not called where [`Logic::fold_all`] is another.
    fn fold(
        &mut self,
        _changes: &Changes<T>,
        _key: usize,
        _before: &mut Before<'_, T>,
        _answer: &mut Answer<T>,
    ) {
    }

    /// Answers for all these keys, in order, one by one.
    fn fold_all(
        &mut self,
        changes: &Changes<T>,
        before: &mut Before<'_, T>,
        answers: &mut Answers<'_, T>,
    ) where
        T: PageTime,
    {
        for key in 0..changes.len() {
            self.fold(changes, key, before, answers.answer);
            answers.give(changes.key(key));
        }
    }
}

/// The changes of an interval under some keys: keys in byte order, under each its rows by time and then value.
pub(crate) struct Changes<T> {
    keys: Encoded,
    /// Where the rows of each key end.
    ends: Vec<usize>,
    values: Encoded,
    rows: Vec<Change<T>>,
    /// How many bytes of them are enough, if not of one key.
    enough: usize,
    /// Of what is allocated for `ends` and `rows`.
    charge: Charge,
}

/// One row's change.
#[derive(Clone, Copy)]
pub(crate) struct Change<T> {
    value: usize,
    /// When.
    pub(crate) time: T,
    /// By how much.
    pub(crate) weight: i64,
}

impl<T: PageTime> Changes<T> {
    fn new() -> Self {
        let budget = context::current().budget;
        Self {
            keys: Encoded::default(),
            ends: Vec::new(),
            values: Encoded::default(),
            rows: Vec::new(),
            enough: budget.handful(),
            charge: budget.charge(0),
        }
    }

    /// Loads the changes under the keys from where `cursors` stand on, until they are enough to fold; whether
    /// there are any.
    fn load(&mut self, cursors: &mut Cursors<T>) -> bool {
        self.clear();
        while self.keys.bytes().len() + self.values.bytes().len() < self.enough
            && let Some(key) = cursors.key()
        {
            let start = self.rows.len();
            self.keys.push(key);
            while let Some(value) = cursors.val() {
                let index = self.values.len();
                self.values.push(value);
                cursors.updates(|time, weight| {
                    self.rows.push(Change { value: index, time, weight });
                });
                cursors.step_val();
            }
            let rows = &mut self.rows[start..];
            if !rows.is_sorted_by(|one, other| one.time <= other.time) {
                rows.sort_by_key(|row| row.time);
            }
            self.ends.push(self.rows.len());
            cursors.step_key();
        }
        self.count();
        self.len() > 0
    }

    fn clear(&mut self) {
        self.keys.clear();
        self.ends.clear();
        self.values.clear();
        self.rows.clear();
        if self.rows.capacity() * size_of::<Change<T>>() > 4 * self.enough {
            self.rows = Vec::new();
        }
        self.count();
    }

    /// Counts what is allocated for numbers; keys and values count themselves.
    fn count(&mut self) {
        let ends = self.ends.capacity() * size_of::<usize>();
        self.charge.set(ends + self.rows.capacity() * size_of::<Change<T>>());
    }

    /// The number of keys.
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// The bytes of a key.
    pub(crate) fn key(&self, key: usize) -> &[u8] {
        self.keys.get(key)
    }

    /// The rows under a key.
    pub(crate) fn rows_of(&self, key: usize) -> Range<usize> {
        let start = if key == 0 { 0 } else { self.ends[key - 1] };
        start..self.ends[key]
    }

    /// The change of a row.
    pub(crate) fn change(&self, row: usize) -> Change<T> {
        self.rows[row]
    }

    /// The value of a row.
    pub(crate) fn value(&self, row: usize) -> &[u8] {
        self.values.get(self.rows[row].value)
    }

    /// The values of all rows, in order.
    pub(crate) fn all_values(&self) -> impl Iterator<Item = &[u8]> {
        self.rows.iter().map(|change| self.values.get(change.value))
    }

    /// The rows under a key, one range for each distinct time, ascending.
    pub(crate) fn moments(&self, key: usize) -> impl Iterator<Item = Range<usize>> {
        let all = self.rows_of(key);
        let last_only = fault::armed(Fault::LastTimeOnly);
        let mut start = all.start;
        std::iter::from_fn(move || {
            let first = self.rows[start..all.end].first()?;
            let same = self.rows[start..all.end].iter().take_while(|row| row.time == first.time);
            let end = if last_only { all.end } else { start + same.count() };
            let moment = start..end;
            start = end;
            Some(moment)
        })
    }
}

/// What the input and the output held before an interval.
pub(crate) struct Before<'a, T> {
    input: &'a mut Cursors<T>,
    output: &'a mut Cursors<T>,
}

impl<T: PageTime> Before<'_, T> {
    /// The input's rows under `key`; keys must be asked for in order.
    pub(crate) fn input(&mut self, key: &[u8]) -> Option<&mut Cursors<T>> {
        if fault::armed(Fault::ForgetHistory) {
            return None;
        }
        at(self.input, key)
    }

    /// The output's rows under `key`; keys must be asked for in order.
    pub(crate) fn output(&mut self, key: &[u8]) -> Option<&mut Cursors<T>> {
        at(self.output, key)
    }
}

impl<T: PageTime> Before<'_, T> {
    /// Puts the one value that the output holds under `key` into `value`, which is left empty without one;
    /// whether there is one.
    pub(crate) fn only_output(&mut self, key: &[u8], value: &mut Vec<u8>) -> bool {
        value.clear();
        let Some(held) = self.output(key) else { return false };
        while let Some(held_value) = held.val() {
            if weight_of(held) > 0 {
                value.extend_from_slice(held_value);
                return true;
            }
            held.step_val();
        }
        false
    }
}

fn at<'a, T: PageTime>(cursors: &'a mut Cursors<T>, key: &[u8]) -> Option<&'a mut Cursors<T>> {
    cursors.seek_key(key);
    let found = cursors.key() == Some(key);
    found.then_some(cursors)
}

/// What changes in the output under one key.
pub(crate) struct Answer<T> {
    values: Encoded,
    rows: Vec<(usize, T, i64)>,
}

impl<T> Default for Answer<T> {
    fn default() -> Self {
        Self { values: Encoded::default(), rows: Vec::new() }
    }
}

impl<T: PageTime> Answer<T> {
    /// Adds a change; in any order, also several of one value.
    pub(crate) fn push(&mut self, value: &[u8], time: T, weight: i64) {
        if weight < 0 && fault::armed(Fault::KeepOldAnswer) {
            return;
        }
        self.rows.push((self.values.len(), time, weight));
        self.values.push(value);
    }

    fn drain_into(&mut self, key: &[u8], builder: &mut BatchBuilder<T>) {
        let values = &self.values;
        if self.rows.len() > 1 {
            self.rows.sort_unstable_by(|one, other| {
                values.get(one.0).cmp(values.get(other.0)).then_with(|| one.1.cmp(&other.1))
            });
        }
        for (value, time, weight) in self.rows.drain(..) {
            builder.push(key, values.get(value), &time, weight);
        }
        self.values.clear();
    }
}

/// The answers for keys, which are given in order.
pub(crate) struct Answers<'a, T: PageTime> {
    answer: &'a mut Answer<T>,
    builder: &'a mut BatchBuilder<T>,
}

impl<T: PageTime> Answers<'_, T> {
    /// Adds a change to the answer for the next key; see [`Answer::push`].
    pub(crate) fn push(&mut self, value: &[u8], time: T, weight: i64) {
        self.answer.push(value, time, weight);
    }

    /// Gives the answer for `key`.
    pub(crate) fn give(&mut self, key: &[u8]) {
        self.answer.drain_into(key, self.builder);
    }
}

struct Fold<L, T> {
    logic: L,
    changes: Changes<T>,
    answer: Answer<T>,
}

impl<T, L> ReduceTactic<Batch<T>, Batch<T>> for Fold<L, T>
where
    T: PageTime + TotalOrder,
    L: Logic<T>,
{
    fn retire(
        &mut self,
        source_batches: Vec<Batch<T>>,
        output_batches: Vec<Batch<T>>,
        mut input_batches: Vec<Batch<T>>,
        lower: &Antichain<T>,
        upper: &Antichain<T>,
        held: &Antichain<T>,
    ) -> (Vec<(T, Batch<T>)>, Antichain<T>) {
        // Nothing is ever deferred, so the frontier of what is withheld is empty.
        let nothing_withheld = Antichain::new();
        if fault::armed(Fault::PanicInTactic) {
            panic!("a fault was injected into a reduction");
        }
        if fault::armed(Fault::FirstTileOnly) {
            input_batches.truncate(1);
        }
        let mut changes = Cursors::scan(input_batches.iter().cloned());
        let Some(&time) = held.elements().first() else {
            debug_assert!(changes.key().is_none(), "changes arrive under a capability");
            return (Vec::new(), nothing_withheld);
        };
        if changes.key().is_none() {
            return (Vec::new(), nothing_withheld);
        }
        let mut input = Cursors::new(source_batches);
        let mut output = Cursors::new(output_batches);
        input.expect(Cursors::new(input_batches.iter().cloned()));
        output.expect(Cursors::new(input_batches));
        let mut before = Before { input: &mut input, output: &mut output };
        let mut builder = BatchBuilder::new();
        let mut answers = Answers { answer: &mut self.answer, builder: &mut builder };
        while self.changes.load(&mut changes) {
            self.logic.prepare(&self.changes);
            self.logic.fold_all(&self.changes, &mut before, &mut answers);
        }
        self.changes.clear();
        let since = Antichain::from_elem(T::minimum());
        let batch = builder.finish(Description::new(lower.clone(), upper.clone(), since));
        (vec![(time, batch)], nothing_withheld)
    }
}
