//! Inner join: pairs of rows with equal keys.
//!
//! Differential-dataflow's driver decides which batches meet: each fresh batch of one side with all accepted batches of
//! the other. This module merges the two, key by key. A pair changes at the later of its two times, by the product of
//! its two weights.

use std::cell::Cell;
use std::cmp::Ordering;
use std::rc::Rc;
use std::sync::Arc;

use alluvium_trace::memory::StateContext;
use alluvium_trace::{Batch, Cursors, Epoch, PageTime};
use arrow::datatypes::{Schema, SchemaRef};
use differential_dataflow::operators::join::{Fresh, JoinTactic, join_with_tactic};

use crate::arrangement::Kept;
use crate::codec::Encoded;
use crate::delta::{DELTA_ROWS, Delta, DeltaBuilder, DeltaStream, delta_bytes};
use crate::fault::{self, Fault};
use crate::fuel::{Produced, fueled};
use crate::layout::{Layout, assemble};
use crate::weight::{add, multiply};

/// The columns of a join.
#[derive(Clone, Debug)]
pub struct Spec {
    left_columns: Vec<usize>,
    right_columns: Vec<usize>,
    schema: SchemaRef,
}

impl Spec {
    /// A join that returns the columns `left_columns` of its left input, whose rows are of the schema `left`, and then
    /// the columns `right_columns` of its right input.
    pub fn new(
        (left, left_columns): (&SchemaRef, &[usize]),
        (right, right_columns): (&SchemaRef, &[usize]),
    ) -> Self {
        let left_fields = left_columns.iter().map(|&column| left.field(column).clone());
        let right_fields = right_columns.iter().map(|&column| right.field(column).clone());
        Self {
            left_columns: left_columns.to_vec(),
            right_columns: right_columns.to_vec(),
            schema: Arc::new(Schema::new(left_fields.chain(right_fields).collect::<Vec<_>>())),
        }
    }

    /// The columns of the pairs.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }
}

/// The pairs of rows of `left` and `right` with equal keys.
///
/// Both sides are keyed by columns of the same types, and equal keys are on the same worker.
pub fn join<'scope>(
    spec: &Spec,
    left: Kept<'scope>,
    right: Kept<'scope>,
    context: &StateContext,
) -> DeltaStream<'scope, Epoch> {
    let tactic = PairTactic { context: context.clone() };
    let pairs = join_with_tactic(left.arranged, right.arranged, tactic);
    let open = |pairs: &mut Vec<Shared<Pairs<Epoch>>>, push: &mut dyn FnMut(_)| {
        pairs.drain(..).filter_map(|pairs| pairs.take()).for_each(push);
    };
    let mut output = Output::new(spec.clone(), left.layout, right.layout, context);
    let advance = move |pairs: &mut Pairs<Epoch>| pairs.next(&mut output).map(Produced::from);
    fueled(pairs, "Pairs", context, open, advance).0
}

/// A value in a message, which must be `Clone`; the first reader takes it.
type Shared<W> = Rc<Cell<Option<W>>>;

/// Pairs two lists of batches lazily: the driver gets one message, and the operator behind it makes the pairs within its
/// fuel.
struct PairTactic {
    context: StateContext,
}

impl<T: PageTime> JoinTactic<Batch<T>, Batch<T>, Vec<Shared<Pairs<T>>>> for PairTactic {
    fn prep(
        &mut self,
        left: Vec<Batch<T>>,
        right: Vec<Batch<T>>,
        fresh: Fresh,
        meet: T,
    ) -> Box<dyn Iterator<Item = Vec<Shared<Pairs<T>>>>> {
        if fault::armed(Fault::PanicInTactic) {
            panic!("a fault was injected into a join");
        }
        let (mut left_rows, mut right_rows) =
            (Cursors::new(left.clone()), Cursors::new(right.clone()));
        // The fresh keys of one side are sought on the other.
        match fresh {
            Fresh::Input0 => right_rows.prefetch_hint(Cursors::new(left)),
            Fresh::Input1 => left_rows.prefetch_hint(Cursors::new(right)),
        }
        let pairs = Pairs {
            since: meet,
            left: left_rows,
            right: right_rows,
            right_rows: Side::new(&self.context),
            left_rows: Side::new(&self.context),
            at: None,
        };
        Box::new(std::iter::once(vec![Rc::new(Cell::new(Some(pairs)))]))
    }
}

/// The rows of one side under one key.
struct Side<T> {
    values: Encoded,
    /// The index of a value, a time, and a weight.
    updates: Vec<(usize, T, i64)>,
}

impl<T: PageTime> Side<T> {
    fn new(context: &StateContext) -> Self {
        Self { values: Encoded::counted(context), updates: Vec::new() }
    }

    /// Loads the rows of the current key, with times advanced to `since` and consolidated.
    fn load(&mut self, rows: &mut Cursors<T>, since: &T) {
        self.values.clear();
        self.updates.clear();
        while let Some(value) = rows.val() {
            let index = self.values.len();
            let start = self.updates.len();
            self.values.push(value);
            rows.updates(|time, weight| self.updates.push((index, time.join(since), weight)));
            if self.updates.len() > start + 1 {
                consolidate(&mut self.updates, start);
            }
            rows.step_val();
        }
    }
}

/// Adds up the weights of equal times from `start` on and drops sums of zero.
fn consolidate<T: PageTime>(updates: &mut Vec<(usize, T, i64)>, start: usize) {
    updates[start..].sort_unstable_by_key(|update| update.1);
    let mut kept = start;
    for index in start..updates.len() {
        let update = updates[index];
        if kept > start && updates[kept - 1].1 == update.1 {
            updates[kept - 1].2 = add(updates[kept - 1].2, update.2);
            if updates[kept - 1].2 == 0 {
                kept -= 1;
            }
        } else {
            updates[kept] = update;
            kept += 1;
        }
    }
    updates.truncate(kept);
}

/// Collects pairs until they make a delta.
struct Output<T> {
    spec: Spec,
    left_layout: Layout,
    right_layout: Layout,
    keys: Encoded,
    left: Encoded,
    right: Encoded,
    updates: DeltaBuilder<T>,
    /// The bytes of keys and values that make a delta full.
    full: usize,
}

impl<T: PageTime> Output<T> {
    fn new(spec: Spec, left_layout: Layout, right_layout: Layout, context: &StateContext) -> Self {
        Self {
            spec,
            left_layout,
            right_layout,
            keys: Encoded::counted(context),
            left: Encoded::counted(context),
            right: Encoded::counted(context),
            updates: DeltaBuilder::default(),
            full: delta_bytes(context),
        }
    }

    /// Whether the pairs should be emitted before more are added.
    fn is_full(&self) -> bool {
        let bytes = |part: &Encoded| part.bytes().len();
        self.updates.len() >= DELTA_ROWS
            || bytes(&self.keys) + bytes(&self.left) + bytes(&self.right) >= self.full
    }

    /// Decodes the pairs and empties the output.
    fn finish(&mut self) -> Delta<T> {
        let spec = &self.spec;
        let mut columns =
            self.left_layout.decode(self.keys.iter(), self.left.iter(), &spec.left_columns);
        columns.extend(self.right_layout.decode(
            self.keys.iter(),
            self.right.iter(),
            &spec.right_columns,
        ));
        let rows = assemble(spec.schema.clone(), columns, self.updates.len());
        self.keys.clear();
        self.left.clear();
        self.right.clear();
        self.updates.finish(rows)
    }
}

/// A fresh batch and the other side, merged one delta at a time.
struct Pairs<T> {
    /// A lower bound of the fresh times. Advancing the other side's times to it changes no pair.
    since: T,
    left: Cursors<T>,
    right: Cursors<T>,
    left_rows: Side<T>,
    right_rows: Side<T>,
    /// The updates of the current key to continue with, if its rows are loaded.
    at: Option<(usize, usize)>,
}

impl<T: PageTime> Pairs<T> {
    /// Moves both sides to the next key they share.
    fn next_key(&mut self) -> bool {
        while let (Some(left), Some(right)) = (self.left.key(), self.right.key()) {
            match left.cmp(right) {
                Ordering::Less => self.left.seek_key(right),
                Ordering::Greater => self.right.seek_key(left),
                Ordering::Equal => return true,
            }
        }
        false
    }

    /// Adds pairs of the current key from the given updates on, until there are no more or the output is full.
    fn fill(&mut self, (mut left, mut right): (usize, usize), out: &mut Output<T>) {
        let key = self.left.key().expect("both cursors are at a shared key");
        while left < self.left_rows.updates.len() {
            let (left_value, left_time, left_weight) = self.left_rows.updates[left];
            while right < self.right_rows.updates.len() {
                if out.is_full() {
                    self.at = Some((left, right));
                    return;
                }
                let (right_value, right_time, right_weight) = self.right_rows.updates[right];
                let time = if fault::armed(Fault::JoinAtLeftTime) {
                    left_time
                } else {
                    left_time.join(&right_time)
                };
                out.keys.push(key);
                out.left.push(self.left_rows.values.get(left_value));
                out.right.push(self.right_rows.values.get(right_value));
                out.updates.push(time, multiply(left_weight, right_weight));
                right += 1;
            }
            right = 0;
            left += 1;
        }
        self.at = None;
        self.left.step_key();
        self.right.step_key();
    }

    /// The next delta.
    fn next(&mut self, out: &mut Output<T>) -> Option<Delta<T>> {
        while !out.is_full() {
            if self.at.is_none() {
                if !self.next_key() {
                    break;
                }
                self.left_rows.load(&mut self.left, &self.since);
                self.right_rows.load(&mut self.right, &self.since);
            }
            self.fill(self.at.unwrap_or_default(), out);
        }
        (out.updates.len() > 0).then(|| out.finish())
    }
}
