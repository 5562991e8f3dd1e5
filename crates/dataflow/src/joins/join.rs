//! Inner join: pairs of rows with equal keys.
//!
//! Differential-dataflow's driver decides which batches meet: each fresh batch of one side with all accepted batches of
//! the other. This module merges the two, key by key. A pair changes at the later of its two times, by the product of
//! its two weights.
//!
//! A key may have more rows than fit into memory. Its fresh rows are read in blocks, and the other side's rows are read
//! in place, once for each block. Most keys have one block.

use std::cell::Cell;
use std::cmp::Ordering;
use std::rc::Rc;
use std::sync::Arc;

use alluvium_trace::memory::StateContext;
use alluvium_trace::{Batch, Cursors, Epoch, Origin, PageTime};
use arrow::datatypes::{Schema, SchemaRef};
use differential_dataflow::lattice::Lattice;
use differential_dataflow::operators::join::{Fresh, JoinTactic, join_with_tactic};
use differential_dataflow::trace::{BatchReader, TraceReader};

use crate::fault::{self, Fault};
use crate::movement::delta::{DELTA_ROWS, Delta, DeltaBuilder, DeltaStream, delta_bytes};
use crate::movement::fuel::{Produced, fueled};
use crate::rows::codec::Encoded;
use crate::rows::layout::{Layout, assemble};
use crate::rows::weight::{add, multiply};
use crate::state::arrangement::{Arrangement, Kept};
use crate::state::states;

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
    // The driver begins by joining what the traces have already: those pairs were made before the dataflow started again.
    let is_known = states::start().is_some();
    pairs::<Cursors<Epoch>, _, _>(spec, left, right, is_known, context)
}

/// The pairs of rows of two arrangements, whose batches are read as `R`; without those that the traces have already, if these
/// pairs are known.
pub(crate) fn pairs<'scope, R, Left, Right>(
    spec: &Spec,
    left: Arrangement<'scope, Left>,
    right: Arrangement<'scope, Right>,
    is_known: bool,
    context: &StateContext,
) -> DeltaStream<'scope, R::Time>
where
    R: Rows + 'static,
    Left: TraceReader<Time = R::Time, Batch: ReadAs<R>> + 'static,
    Right: TraceReader<Time = R::Time, Batch: ReadAs<R>> + 'static,
{
    let skip = Rc::new(Cell::new(is_known));
    let tactic =
        PairTactic { origin: Origin::here(), skip: Rc::clone(&skip), context: context.clone() };
    let pairs = join_with_tactic(left.arranged, right.arranged, tactic);
    skip.set(false);
    let open = |pairs: &mut Vec<Shared<Pairs<R>>>, push: &mut dyn FnMut(_)| {
        pairs.drain(..).filter_map(|pairs| pairs.take()).for_each(push);
    };
    let mut output = Output::new(spec.clone(), left.layout, right.layout, context);
    let advance = move |pairs: &mut Pairs<R>| pairs.next(&mut output).map(Produced::from);
    fueled(pairs, "Pairs", context, open, advance).0
}

/// A position in the rows of one side: a key and a value, as those of [`Cursors`].
pub(crate) trait Rows {
    /// When rows change.
    type Time: PageTime;

    /// The current key; `None` past the last one.
    fn key(&self) -> Option<&[u8]>;

    /// Moves to the next key.
    fn step_key(&mut self);

    /// Moves forward to the first key that is not below `key`.
    fn seek_key(&mut self, key: &[u8]);

    /// The current value; `None` past the last one of the key.
    fn val(&self) -> Option<&[u8]>;

    /// Moves to the next value of the key.
    fn step_val(&mut self);

    /// Moves back to the first value of the key.
    fn rewind_vals(&mut self);

    /// Calls `visit` with all updates of the current row, in any order.
    fn updates(&self, visit: impl FnMut(Self::Time, i64));

    /// Hints that the keys of these rows will be sought.
    fn prefetch_hint(&mut self, keys: Self);
}

impl<T: PageTime> Rows for Cursors<T> {
    type Time = T;

    #[inline]
    fn key(&self) -> Option<&[u8]> {
        self.key()
    }

    #[inline]
    fn step_key(&mut self) {
        self.step_key();
    }

    #[inline]
    fn seek_key(&mut self, key: &[u8]) {
        self.seek_key(key);
    }

    #[inline]
    fn val(&self) -> Option<&[u8]> {
        self.val()
    }

    #[inline]
    fn step_val(&mut self) {
        self.step_val();
    }

    #[inline]
    fn rewind_vals(&mut self) {
        self.rewind_vals();
    }

    #[inline]
    fn updates(&self, visit: impl FnMut(T, i64)) {
        self.updates(visit);
    }

    fn prefetch_hint(&mut self, keys: Self) {
        self.prefetch_hint(keys);
    }
}

/// Batches whose rows are read as `R`.
pub(crate) trait ReadAs<R>: BatchReader + Clone {
    /// A position at the first key of these batches.
    fn read(batches: Vec<Self>) -> R;
}

impl<T: PageTime> ReadAs<Cursors<T>> for Batch<T> {
    fn read(batches: Vec<Self>) -> Cursors<T> {
        Cursors::new(batches)
    }
}

/// A value in a message, which must be `Clone`; the first reader takes it.
type Shared<W> = Rc<Cell<Option<W>>>;

/// Pairs two lists of batches lazily: the driver gets one message, and the operator after it makes the pairs within its
/// fuel.
struct PairTactic {
    /// Whose pairs they are.
    origin: Origin,
    /// Whether pairs are known already.
    skip: Rc<Cell<bool>>,
    context: StateContext,
}

impl<R, Left, Right> JoinTactic<Left, Right, Vec<Shared<Pairs<R>>>> for PairTactic
where
    R: Rows + 'static,
    Left: ReadAs<R> + BatchReader<Time = R::Time>,
    Right: ReadAs<R> + BatchReader<Time = R::Time>,
{
    fn prep(
        &mut self,
        left: Vec<Left>,
        right: Vec<Right>,
        fresh: Fresh,
        meet: R::Time,
    ) -> Box<dyn Iterator<Item = Vec<Shared<Pairs<R>>>>> {
        let origin = self.origin.clone();
        origin.run(|| -> Box<dyn Iterator<Item = _>> {
            if fault::armed(Fault::PanicInTactic) {
                panic!("a fault was injected into a join");
            }
            if self.skip.get() {
                return Box::new(std::iter::empty());
            }
            let (mut left_rows, mut right_rows) =
                (Left::read(left.clone()), Right::read(right.clone()));
            // The fresh keys of one side are sought on the other.
            match fresh {
                Fresh::Input0 => right_rows.prefetch_hint(Left::read(left)),
                Fresh::Input1 => left_rows.prefetch_hint(Right::read(right)),
            }
            let (fresh_rows, other_rows) = match fresh {
                Fresh::Input0 => (left_rows, right_rows),
                Fresh::Input1 => (right_rows, left_rows),
            };
            let pairs = Pairs {
                since: meet,
                fresh,
                fresh_rows,
                other_rows,
                block: Block::new(&self.context),
                row: Vec::new(),
                at: None,
            };
            Box::new(std::iter::once(vec![Rc::new(Cell::new(Some(pairs)))]))
        })
    }
}

/// Some rows of one side under one key.
struct Block<T> {
    values: Encoded,
    /// The index of a value, a time, and a weight.
    updates: Vec<(usize, T, i64)>,
    /// The bytes of values that make a block full.
    full: usize,
}

impl<T: PageTime> Block<T> {
    fn new(context: &StateContext) -> Self {
        let full = context.budget().policy().output_batch;
        Self { values: Encoded::counted(context), updates: Vec::new(), full }
    }

    /// Loads the next rows of the current key.
    fn load(&mut self, rows: &mut impl Rows<Time = T>, since: &T) {
        self.values.clear();
        self.updates.clear();
        while self.values.bytes().len() < self.full
            && self.updates.len() < DELTA_ROWS
            && let Some(value) = rows.val()
        {
            let index = self.values.len();
            self.values.push(value);
            load_updates(rows, since, &mut self.updates, index);
            rows.step_val();
        }
    }
}

/// Adds the updates of the current row, with times advanced to `since` and consolidated.
fn load_updates<T: PageTime>(
    rows: &impl Rows<Time = T>,
    since: &T,
    updates: &mut Vec<(usize, T, i64)>,
    index: usize,
) {
    let start = updates.len();
    rows.updates(|time, weight| updates.push((index, time.join(since), weight)));
    if updates.len() > start + 1 {
        consolidate(updates, start);
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
struct Pairs<R: Rows> {
    /// A lower bound of the fresh times. Advancing the other side's times to it changes no pair.
    since: R::Time,
    /// Which side is fresh.
    fresh: Fresh,
    fresh_rows: R,
    other_rows: R,
    /// Fresh rows under the current key.
    block: Block<R::Time>,
    /// The updates of the other side's current row.
    row: Vec<(usize, R::Time, i64)>,
    /// The updates of the block and of the row to continue with, if they are loaded.
    at: Option<(usize, usize)>,
}

impl<R: Rows> Pairs<R> {
    /// Moves both sides to the next key they share, and loads its first rows; returns whether there is one.
    fn next_key(&mut self) -> bool {
        while let (Some(fresh), Some(other)) = (self.fresh_rows.key(), self.other_rows.key()) {
            match fresh.cmp(other) {
                Ordering::Less => self.fresh_rows.seek_key(other),
                Ordering::Greater => self.other_rows.seek_key(fresh),
                Ordering::Equal => {
                    self.block.load(&mut self.fresh_rows, &self.since);
                    self.load_row();
                    return true;
                }
            }
        }
        false
    }

    /// Loads the updates of the other side's current row.
    fn load_row(&mut self) {
        self.row.clear();
        load_updates(&self.other_rows, &self.since, &mut self.row, 0);
        self.at = Some((0, 0));
    }

    /// Moves to the next pair of a block and a row under the current key; to no pair if there are no more.
    fn step(&mut self) {
        self.other_rows.step_val();
        if self.other_rows.val().is_none() {
            if self.fresh_rows.val().is_none() {
                self.at = None;
                self.fresh_rows.step_key();
                self.other_rows.step_key();
                return;
            }
            self.block.load(&mut self.fresh_rows, &self.since);
            self.other_rows.rewind_vals();
        }
        self.load_row();
    }

    /// Adds pairs of the block and the row from the given updates on, until there are no more or the output is full.
    /// Returns whether there are no more.
    fn fill(&mut self, (mut fresh, mut other): (usize, usize), out: &mut Output<R::Time>) -> bool {
        let keys = "both cursors are at a shared key, and the other side at a row";
        let key = self.fresh_rows.key().expect(keys);
        let other_value = self.other_rows.val().expect(keys);
        while fresh < self.block.updates.len() {
            let (fresh_value, fresh_time, fresh_weight) = self.block.updates[fresh];
            let fresh_value = self.block.values.get(fresh_value);
            while other < self.row.len() {
                if out.is_full() {
                    self.at = Some((fresh, other));
                    return false;
                }
                let (_, other_time, other_weight) = self.row[other];
                let (left_value, right_value, left_time, right_time) = match self.fresh {
                    Fresh::Input0 => (fresh_value, other_value, fresh_time, other_time),
                    Fresh::Input1 => (other_value, fresh_value, other_time, fresh_time),
                };
                let time = if fault::armed(Fault::JoinAtLeftTime) {
                    left_time
                } else {
                    left_time.join(&right_time)
                };
                out.keys.push(key);
                out.left.push(left_value);
                out.right.push(right_value);
                out.updates.push(time, multiply(fresh_weight, other_weight));
                other += 1;
            }
            other = 0;
            fresh += 1;
        }
        true
    }

    /// The next delta.
    fn next(&mut self, out: &mut Output<R::Time>) -> Option<Delta<R::Time>> {
        while !out.is_full() {
            if let Some(at) = self.at {
                if self.fill(at, out) {
                    self.step();
                }
            } else if !self.next_key() {
                break;
            }
        }
        (out.updates.len() > 0).then(|| out.finish())
    }
}

#[cfg(test)]
mod tests {
    use alluvium_trace::BatchBuilder;
    use alluvium_trace::memory::MemoryBudget;
    use arrow::array::{ArrayRef, AsArray, Int64Array};
    use arrow::datatypes::{DataType, Field, Int64Type};
    use differential_dataflow::trace::Description;
    use timely::progress::Antichain;

    use super::*;

    fn schema() -> SchemaRef {
        let number = |name| Field::new(name, DataType::Int64, false);
        Arc::new(Schema::new(vec![number("key"), number("value")]))
    }

    /// Rows with these values under one key, each at two times that add up to `weight`.
    fn rows(values: std::ops::Range<i64>, weight: i64, context: &StateContext) -> Batch<Epoch> {
        let layout = Layout::keyed(schema(), &[0]).unwrap();
        let count = values.clone().count();
        let column = |numbers: Vec<i64>| Arc::new(Int64Array::from(numbers)) as ArrayRef;
        let columns = vec![column(vec![7; count]), column(values.collect())];
        let (mut keys, mut encoded) = (Encoded::new(), Encoded::new());
        layout.encode(&assemble(schema(), columns, count), &mut keys, &mut encoded);
        let mut encoded: Vec<&[u8]> = encoded.iter().collect();
        encoded.sort_unstable();
        let mut builder = BatchBuilder::new(context);
        for value in encoded {
            builder.push(keys.get(0), value, &0, weight - 1);
            builder.push(keys.get(0), value, &1, 1);
        }
        let until = |epoch| Antichain::from_elem(epoch);
        builder.finish(Description::new(until(0), until(2), until(0)))
    }

    #[test]
    fn a_key_with_many_rows_on_both_sides_is_joined_in_blocks() {
        let context = StateContext::new(MemoryBudget::new(1 << 20), None);
        let most = context.budget().policy().output_batch;
        let layout = Layout::keyed(schema(), &[0]).unwrap();
        let both = schema();
        let spec = Spec::new((&both, &[1]), (&both, &[1]));
        for fresh in [Fresh::Input0, Fresh::Input1] {
            // The fresh side has more rows than a block.
            let (left, right) = match fresh {
                Fresh::Input0 => (1..3_001, 1..41),
                Fresh::Input1 => (1..41, 1..3_001),
            };
            let batches = |values, weight| vec![rows(values, weight, &context)];
            let mut tactic = PairTactic {
                origin: Origin::default(),
                skip: Rc::default(),
                context: context.clone(),
            };
            let pairs = tactic.prep(batches(left, 2), batches(right, 3), fresh, 1).next();
            let mut pairs: Pairs<Cursors<Epoch>> =
                pairs.unwrap().pop().and_then(|pairs| pairs.take()).unwrap();
            let mut output = Output::new(spec.clone(), layout.clone(), layout.clone(), &context);
            let (mut count, mut sum, mut blocks) = (0, 0, 0);
            while let Some(delta) = pairs.next(&mut output) {
                assert!(pairs.block.values.bytes().len() <= most + 16);
                blocks += usize::from(pairs.at.is_some_and(|at| at.0 > 0));
                let [left, right] =
                    [0, 1].map(|column| delta.rows.column(column).as_primitive::<Int64Type>());
                for row in 0..delta.rows.num_rows() {
                    assert_eq!((delta.weight(row), *delta.time(row)), (6, 1));
                    sum += left.value(row) * right.value(row);
                    count += 1;
                }
            }
            assert!(blocks > 1);
            assert_eq!(count, 3_000 * 40);
            assert_eq!(sum, (3_000 * 3_001 / 2) * (40 * 41 / 2));
        }
    }
}
