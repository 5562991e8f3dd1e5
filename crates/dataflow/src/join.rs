//! Inner join: pairs of rows that agree on their keys.
//!
//! Each batch that arrives on one side is merged, key by key, with all that has been accepted on
//! the other. A pair changes at the later of its two times, by the product of its two weights.

use std::cell::Cell;
use std::rc::Rc;

use alluvium_trace::memory::{StateContext, context};
use alluvium_trace::{Batch, Cursors, Epoch, PageTime};
use arrow::datatypes::{Schema, SchemaRef};
use differential_dataflow::operators::join::{Fresh, JoinTactic, join_with_tactic};

use crate::arrangement::{DELTA_ROWS, Kept, Stamps, delta_bytes};
use crate::codec::Encoded;
use crate::delta::{Delta, DeltaStream};
use crate::fault::{self, Fault};
use crate::layout::{Layout, assemble};
use crate::pieces::{Piece, in_pieces};

/// The pairs of `left` and `right` with equal key bytes: `left_columns` of the left row, then
/// `right_columns` of the right one.
///
/// Both sides are keyed by columns of the same types, and equal keys are on the same worker.
pub fn join<'scope>(
    left: Kept<'scope, Epoch>,
    right: Kept<'scope, Epoch>,
    left_columns: &[usize],
    right_columns: &[usize],
) -> DeltaStream<'scope, Epoch> {
    let fields: Vec<_> = left_columns
        .iter()
        .map(|&column| left.layout.schema().field(column).clone())
        .chain(right_columns.iter().map(|&column| right.layout.schema().field(column).clone()))
        .collect();
    let shape = Shape {
        left: left.layout,
        left_columns: left_columns.to_vec(),
        right: right.layout,
        right_columns: right_columns.to_vec(),
        schema: std::sync::Arc::new(Schema::new(fields)),
    };
    let context = context::current();
    let as_of = left.as_of.max(right.as_of);
    let tactic = PairTactic { as_of, context: context.clone() };
    let pairs = join_with_tactic(left.arranged, right.arranged, tactic);
    let work = |pairs: &mut Vec<Later<Pairs<Epoch>>>, work: &mut dyn FnMut(_)| {
        pairs.drain(..).filter_map(|pairs| pairs.take()).for_each(work);
    };
    let mut output = Output::new(shape, &context);
    let next = move |pairs: &mut Pairs<Epoch>| pairs.next(&mut output).map(Piece::from);
    in_pieces(pairs, &context, "Pairs", work, next).0
}

/// Something that one of those who share it takes.
type Later<W> = Rc<Cell<Option<W>>>;

/// How pairs are put together.
struct Shape {
    left: Layout,
    left_columns: Vec<usize>,
    right: Layout,
    right_columns: Vec<usize>,
    schema: SchemaRef,
}

/// Differential-dataflow's driver decides which batches meet; it gets the pairs of two as one thing, which is
/// played forward where they are put out.
struct PairTactic<T> {
    as_of: T,
    context: StateContext,
}

impl<T: PageTime> JoinTactic<Batch<T>, Batch<T>, Vec<Later<Pairs<T>>>> for PairTactic<T> {
    fn prep(
        &mut self,
        left: Vec<Batch<T>>,
        right: Vec<Batch<T>>,
        fresh: Fresh,
        meet: T,
    ) -> Box<dyn Iterator<Item = Vec<Later<Pairs<T>>>>> {
        if fault::armed(Fault::PanicInTactic) {
            panic!("a fault was injected into a join");
        }
        // The fresh side's times are at or after `meet`, so advancing the other side's changes no
        // pair; the same holds for `as_of`, before which nothing is read.
        let since = meet.join(&self.as_of);
        let (mut left_rows, mut right_rows) =
            (Cursors::new(left.clone()), Cursors::new(right.clone()));
        // What is sought on one side is what is fresh on the other.
        match fresh {
            Fresh::Input0 => right_rows.prefetch_hint(Cursors::new(left)),
            Fresh::Input1 => left_rows.prefetch_hint(Cursors::new(right)),
        }
        let pairs = Pairs {
            since,
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
    /// Of which value, when, by how much.
    updates: Vec<(usize, T, i64)>,
}

impl<T: PageTime> Side<T> {
    fn new(context: &StateContext) -> Self {
        Self { values: Encoded::counted(context), updates: Vec::new() }
    }

    /// Loads the current key's rows, times advanced to `since` and added up.
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

/// Adds up the weights of equal times from `start` on and drops what comes to nothing.
fn consolidate<T: PageTime>(updates: &mut Vec<(usize, T, i64)>, start: usize) {
    updates[start..].sort_unstable_by_key(|update| update.1);
    let mut kept = start;
    for index in start..updates.len() {
        let update = updates[index];
        if kept > start && updates[kept - 1].1 == update.1 {
            updates[kept - 1].2 = updates[kept - 1]
                .2
                .checked_add(update.2)
                .expect("the weight of a row exceeds 64 bits");
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

/// Pairs on their way into a delta.
struct Output<T> {
    shape: Shape,
    keys: Encoded,
    left: Encoded,
    right: Encoded,
    stamps: Stamps<T>,
    /// How many bytes make a delta.
    most: usize,
}

impl<T: PageTime> Output<T> {
    fn new(shape: Shape, context: &StateContext) -> Self {
        Self {
            shape,
            keys: Encoded::counted(context),
            left: Encoded::counted(context),
            right: Encoded::counted(context),
            stamps: Stamps::default(),
            most: delta_bytes(context),
        }
    }

    fn len(&self) -> usize {
        self.stamps.times.len()
    }

    /// Whether it is enough for a delta.
    fn is_full(&self) -> bool {
        let bytes = |part: &Encoded| part.bytes().len();
        self.len() >= DELTA_ROWS
            || bytes(&self.keys) + bytes(&self.left) + bytes(&self.right) >= self.most
    }

    /// The pairs, decoded.
    fn take(&mut self) -> Delta<T> {
        let (shape, rows) = (&self.shape, self.len());
        let expectation = "a batch holds what its layout encoded";
        let mut columns = shape
            .left
            .decode(self.keys.iter(), self.left.iter(), &shape.left_columns)
            .expect(expectation);
        columns.extend(
            shape
                .right
                .decode(self.keys.iter(), self.right.iter(), &shape.right_columns)
                .expect(expectation),
        );
        let rows = assemble(shape.schema.clone(), columns, rows);
        self.keys.clear();
        self.left.clear();
        self.right.clear();
        self.stamps.take(rows)
    }
}

/// One fresh batch against the other side, played forward a delta at a time.
struct Pairs<T> {
    since: T,
    left: Cursors<T>,
    right: Cursors<T>,
    left_rows: Side<T>,
    right_rows: Side<T>,
    /// The pair of updates to go on with under the current key, if there is one.
    at: Option<(usize, usize)>,
}

impl<T: PageTime> Pairs<T> {
    /// Moves both sides to the next key they share.
    fn next_key(&mut self) -> bool {
        while let (Some(left), Some(right)) = (self.left.key(), self.right.key()) {
            match left.cmp(right) {
                std::cmp::Ordering::Less => self.left.seek_key(right),
                std::cmp::Ordering::Greater => self.right.seek_key(left),
                std::cmp::Ordering::Equal => return true,
            }
        }
        false
    }

    /// Puts out pairs of the current key until there are no more or the output is full.
    fn fill(&mut self, (mut left, mut right): (usize, usize), out: &mut Output<T>) {
        let key = self.left.key().expect("the cursor stands on the key in hand");
        while left < self.left_rows.updates.len() {
            let (left_value, left_time, left_weight) = self.left_rows.updates[left];
            while right < self.right_rows.updates.len() {
                if out.is_full() {
                    self.at = Some((left, right));
                    return;
                }
                let (right_value, right_time, right_weight) = self.right_rows.updates[right];
                let weight = left_weight
                    .checked_mul(right_weight)
                    .expect("the weight of a pair exceeds 64 bits");
                let time = if fault::armed(Fault::JoinAtLeftTime) {
                    left_time
                } else {
                    left_time.join(&right_time)
                };
                out.keys.push(key);
                out.left.push(self.left_rows.values.get(left_value));
                out.right.push(self.right_rows.values.get(right_value));
                out.stamps.push(time, weight);
                right += 1;
            }
            right = 0;
            left += 1;
        }
        self.at = None;
        self.left.step_key();
        self.right.step_key();
    }

    /// The next pairs.
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
        (out.len() > 0).then(|| out.take())
    }
}
