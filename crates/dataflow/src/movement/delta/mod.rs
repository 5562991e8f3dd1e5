//! A change in flight: columns of rows, each with a time and a weight.

mod builder;
mod bytes;
mod concatenated;
mod each;

pub use self::builder::DELTA_ROWS;
pub(crate) use self::builder::{DeltaBuilder, EncodedDelta, delta_bytes};
pub use self::concatenated::concatenated;
pub(crate) use self::each::each_delta;

use std::sync::{Arc, LazyLock};

use alluvium_trace::memory::{MemoryBudget, Queued};
use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::buffer::ScalarBuffer;
use arrow::compute::{concat_batches, filter_record_batch, take};
use arrow::datatypes::{Schema, SchemaRef};
use timely::Accountable;
use timely::dataflow::Stream;

/// A stream of deltas.
pub type DeltaStream<'scope, T> = Stream<'scope, T, Delta<T>>;

/// The times of a delta's rows.
#[derive(Clone, Debug, PartialEq)]
pub enum Times<T> {
    /// Every row has this time.
    Same(T),
    /// Row `i` has the `i`-th time.
    Each(Arc<[T]>),
}

/// Changed rows, each with a time and a weight.
///
/// A positive weight adds copies of the row, a negative one removes copies. A delta is neither
/// sorted nor consolidated: a row may occur in it several times.
#[derive(Clone, Debug)]
pub struct Delta<T> {
    /// The rows, as columns.
    pub rows: RecordBatch,
    /// When each row changes; never earlier than the time of the message that carries the delta.
    pub times: Times<T>,
    /// By how much each row changes; `None` when all weights are one.
    pub weights: Option<ScalarBuffer<i64>>,
    /// Accounts for its bytes while it is queued.
    queued: Option<Arc<Queued>>,
}

static NO_COLUMNS: LazyLock<SchemaRef> = LazyLock::new(|| Arc::new(Schema::empty()));

impl<T: Clone> Delta<T> {
    /// Rows with times and weights, as many as there are rows.
    pub fn new(rows: RecordBatch, times: Times<T>, weights: Option<ScalarBuffer<i64>>) -> Self {
        Self { rows, times, weights, queued: None }
    }

    /// A delta that adds each row once, at one time.
    pub fn insertions(rows: RecordBatch, time: T) -> Self {
        Self::new(rows, Times::Same(time), None)
    }

    /// The bytes of the rows, times and weights, without those of a larger batch that the columns are slices of.
    pub fn bytes(&self) -> usize {
        let column = |column: &ArrayRef| column.to_data().get_slice_memory_size().unwrap_or(0);
        let times = match &self.times {
            Times::Same(_) => 0,
            Times::Each(times) => size_of_val(&times[..]),
        };
        let weights = self.weights.as_ref().map_or(0, |weights| size_of_val(&weights[..]));
        self.rows.columns().iter().map(column).sum::<usize>() + times + weights
    }

    /// Counts the rows as queued, until this delta and its clones are dropped or [arrive](Self::arrive).
    pub(crate) fn wait(&mut self, budget: &MemoryBudget) {
        self.queued = Some(Arc::new(budget.queue(self.bytes())));
    }

    /// No longer counts the rows as queued.
    pub(crate) fn arrive(&mut self) {
        self.queued = None;
    }

    /// The number of rows, counting each occurrence.
    pub fn len(&self) -> usize {
        self.rows.num_rows()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The time of row `row`.
    pub fn time(&self, row: usize) -> &T {
        match &self.times {
            Times::Same(time) => time,
            Times::Each(times) => &times[row],
        }
    }

    /// The least time of a row; there is one.
    pub(crate) fn first_time(&self) -> T
    where
        T: Ord,
    {
        match &self.times {
            Times::Same(time) => time.clone(),
            Times::Each(times) => times.iter().min().expect("there is a row").clone(),
        }
    }

    /// The weight of row `row`.
    pub fn weight(&self, row: usize) -> i64 {
        self.weights.as_ref().map_or(1, |weights| weights[row])
    }

    /// The rows for which `keep` is true; NULL counts as false.
    ///
    /// Panics unless `keep` is as long as the delta.
    pub fn filter(&self, keep: &BooleanArray) -> Self {
        assert_eq!(keep.len(), self.len(), "a filter decides about every row");
        let kept = match keep.nulls() {
            Some(nulls) => keep.values() & nulls.inner(),
            None => keep.values().clone(),
        };
        if kept.count_set_bits() == self.len() {
            return self.clone();
        }
        let rows =
            filter_record_batch(&self.rows, keep).expect("the filter is as long as the rows");
        self.with_rows(rows, || kept.set_indices())
    }

    /// The rows numbered `indices`, in that order; an index may occur several times.
    ///
    /// Panics if an index is NULL or out of bounds, or if a string column would exceed what its type can hold
    /// (2 GiB).
    pub fn take(&self, indices: &UInt32Array) -> Self {
        assert_eq!(indices.null_count(), 0, "every index is a row's");
        let columns: Vec<ArrayRef> = self
            .rows
            .columns()
            .iter()
            .map(|column| take(column, indices, None).expect("each index is below the length"))
            .collect();
        let rows = batch(self.rows.schema(), columns, indices.len());
        self.with_rows(rows, || indices.values().iter().map(|&index| index as usize))
    }

    /// The `length` rows from `offset` on, without a copy.
    ///
    /// Panics if the delta ends before that.
    pub fn slice(&self, offset: usize, length: usize) -> Self {
        let times = match &self.times {
            Times::Same(time) => Times::Same(time.clone()),
            Times::Each(times) => Times::Each(times[offset..offset + length].into()),
        };
        let weights = self.weights.as_ref().map(|weights| weights.slice(offset, length));
        Self::new(self.rows.slice(offset, length), times, weights)
    }

    /// The columns numbered `columns`, in that order.
    ///
    /// Panics if there is no such column.
    pub fn project(&self, columns: &[usize]) -> Self {
        let rows = self.rows.project(columns).expect("the columns exist");
        Self::new(rows, self.times.clone(), self.weights.clone())
    }

    /// The same rows with weights of the other sign.
    pub(crate) fn negated(mut self) -> Self {
        let negated = (0..self.len()).map(|row| -self.weight(row)).collect::<Vec<_>>();
        self.weights = Some(negated.into());
        self
    }

    /// The same rows at other times, perhaps of another kind.
    pub(crate) fn at_times<U: Clone>(self, time: impl Fn(&T) -> U) -> Delta<U> {
        let times = match &self.times {
            Times::Same(same) => Times::Same(time(same)),
            Times::Each(times) => Times::Each(times.iter().map(time).collect()),
        };
        Delta::new(self.rows, times, self.weights)
    }

    /// The same rows at other times, or with other weights; `selected` numbers the rows they were.
    fn with_rows<I: Iterator<Item = usize>>(
        &self,
        rows: RecordBatch,
        selected: impl Fn() -> I,
    ) -> Self {
        let times = match &self.times {
            Times::Same(time) => Times::Same(time.clone()),
            Times::Each(times) => Times::Each(selected().map(|row| times[row].clone()).collect()),
        };
        let weights = self
            .weights
            .as_ref()
            .map(|weights| selected().map(|row| weights[row]).collect::<Vec<_>>().into());
        Self::new(rows, times, weights)
    }
}

impl<T: Clone + PartialEq> Delta<T> {
    /// All rows of `deltas`, one after the other. Without any delta, a delta without columns.
    ///
    /// Panics if their columns differ in type, or a string column would exceed what its type can hold (2 GiB).
    pub fn concat(deltas: &[Self]) -> Self {
        let Some(first) = deltas.first() else { return Self::default() };
        if deltas.len() == 1 {
            return first.clone();
        }
        let schema = first.rows.schema();
        let rows = if schema.fields().is_empty() {
            batch(schema, Vec::new(), deltas.iter().map(Self::len).sum())
        } else {
            concat_batches(&schema, deltas.iter().map(|delta| &delta.rows))
                .expect("deltas of one stream have the same columns")
        };
        let times = match &first.times {
            Times::Same(time)
                if deltas.iter().all(|delta| delta.times == Times::Same(time.clone())) =>
            {
                Times::Same(time.clone())
            }
            _ => Times::Each(
                deltas
                    .iter()
                    .flat_map(|delta| (0..delta.len()).map(|row| delta.time(row).clone()))
                    .collect(),
            ),
        };
        let weights = deltas.iter().any(|delta| delta.weights.is_some()).then(|| {
            let mut weights = Vec::with_capacity(rows.num_rows());
            for delta in deltas {
                match &delta.weights {
                    Some(more) => weights.extend_from_slice(more),
                    None => weights.resize(weights.len() + delta.len(), 1),
                }
            }
            weights.into()
        });
        Self::new(rows, times, weights)
    }
}

impl<T> Default for Delta<T> {
    fn default() -> Self {
        Self {
            rows: RecordBatch::new_empty(NO_COLUMNS.clone()),
            times: Times::Each(Arc::new([])),
            weights: None,
            queued: None,
        }
    }
}

impl<T> Accountable for Delta<T> {
    fn record_count(&self) -> i64 {
        self.rows.num_rows() as i64
    }
}

/// A record batch of `rows` rows, which may have no columns.
///
/// Panics unless the columns are those of `schema`.
pub(crate) fn batch(schema: SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> RecordBatch {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema, columns, &options)
        .expect("the columns are those of the schema")
}

#[cfg(test)]
mod tests {
    use arrow::array::{AsArray, Int64Array, StringArray};
    use arrow::datatypes::Int64Type;

    use super::*;

    fn delta() -> Delta<u64> {
        let rows = RecordBatch::try_from_iter([
            ("number", Arc::new(Int64Array::from(vec![10, 11, 12, 13])) as ArrayRef),
            ("name", Arc::new(StringArray::from(vec![Some("a"), None, Some("c"), Some("")]))),
        ]);
        let times = Times::Each([5, 6, 7, 8].into());
        Delta::new(rows.unwrap(), times, Some(vec![1, -1, 2, -2].into()))
    }

    fn rows(delta: &Delta<u64>) -> Vec<(i64, u64, i64)> {
        let numbers = delta.rows.column(0).as_primitive::<Int64Type>();
        (0..delta.len())
            .map(|row| (numbers.value(row), *delta.time(row), delta.weight(row)))
            .collect()
    }

    #[test]
    fn rows_times_and_weights_stay_together() {
        let delta = delta();
        let keep = BooleanArray::from(vec![Some(true), None, Some(true), Some(false)]);
        assert_eq!(rows(&delta.filter(&keep)), [(10, 5, 1), (12, 7, 2)]);
        let taken = delta.take(&UInt32Array::from(vec![3, 0, 3]));
        assert_eq!(rows(&taken), [(13, 8, -2), (10, 5, 1), (13, 8, -2)]);
        assert_eq!(rows(&delta.slice(1, 2)), [(11, 6, -1), (12, 7, 2)]);
    }

    #[test]
    fn a_filter_that_keeps_all_changes_nothing() {
        let delta = delta();
        let kept = delta.filter(&BooleanArray::from(vec![true; 4]));
        assert_eq!(rows(&kept), rows(&delta));
    }

    #[test]
    fn concatenation_keeps_a_single_time_single_and_mixes_others() {
        let one = Delta::insertions(delta().rows, 1);
        let joined = Delta::concat(&[one.clone(), one.clone()]);
        assert_eq!((joined.len(), &joined.times), (8, &Times::Same(1)));
        assert!(joined.weights.is_none());

        let mixed = Delta::concat(&[one.slice(0, 1), delta().slice(1, 1)]);
        assert_eq!(rows(&mixed), [(10, 1, 1), (11, 6, -1)]);
        assert!(Delta::<u64>::concat(&[]).is_empty());
    }

    #[test]
    fn rows_without_columns_are_still_counted() {
        let none = delta().project(&[]);
        assert_eq!(none.take(&UInt32Array::from(vec![0, 1, 1])).len(), 3);
        assert_eq!(none.filter(&BooleanArray::from(vec![true, false, true, true])).len(), 3);
        assert_eq!(Delta::concat(&[none.clone(), none]).record_count(), 8);
    }
}
