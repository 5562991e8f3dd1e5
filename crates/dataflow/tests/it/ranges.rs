//! Reading by key: what a snapshot returns of some ranges, against a filtered read of everything.

use std::sync::Arc;

use alluvium_dataflow::rows::codec::Encoded;
use alluvium_dataflow::rows::layout::Layout;
use alluvium_dataflow::state::key_ranges::{KeyBound, KeyCondition, KeyEncoder, KeyRanges};
use alluvium_dataflow::state::snapshot::Snapshot;
use alluvium_storage::MemoryStorage;
use alluvium_trace::memory::{MemoryBudget, StateContext};
use alluvium_trace::{Batch, BatchBuilder, Epoch};
use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use differential_dataflow::trace::Description;
use proptest::prelude::*;
use timely::progress::Antichain;

/// A number and a text, which are the key, and a value.
type Row = (Option<i64>, Option<String>, i64);

fn layout() -> Layout {
    let fields = [("n", DataType::Int64), ("t", DataType::Utf8), ("v", DataType::Int64)];
    let fields = fields.map(|(name, data_type)| Field::new(name, data_type, true));
    Layout::keyed(Arc::new(Schema::new(fields.to_vec())), &[0, 1]).unwrap()
}

fn batch(rows: &[(Row, Epoch, i64)], layout: &Layout, context: &StateContext) -> Batch<Epoch> {
    let numbers = Int64Array::from_iter(rows.iter().map(|(row, ..)| row.0));
    let texts = StringArray::from_iter(rows.iter().map(|(row, ..)| row.1.as_deref()));
    let values = Int64Array::from_iter_values(rows.iter().map(|(row, ..)| row.2));
    let columns: Vec<ArrayRef> = vec![Arc::new(numbers), Arc::new(texts), Arc::new(values)];
    let rows_of = RecordBatch::try_new(layout.schema().clone(), columns).unwrap();
    let (mut keys, mut values) = (Encoded::new(), Encoded::new());
    layout.encode(&rows_of, &mut keys, &mut values);
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by_key(|&row| (keys.get(row), values.get(row), rows[row].1));
    let mut builder = BatchBuilder::with_page_size(256, context);
    for row in order {
        builder.push(keys.get(row), values.get(row), &rows[row].1, rows[row].2);
    }
    let start = Antichain::from_elem(0);
    builder.finish(Description::new(start.clone(), Antichain::new(), start))
}

/// All rows of some batches, in order.
fn rows(read: impl Iterator<Item = RecordBatch>) -> Vec<Row> {
    let mut rows = Vec::new();
    for batch in read {
        let numbers = batch.column(0).as_primitive::<Int64Type>();
        let texts = batch.column(1).as_string::<i32>();
        let values = batch.column(2).as_primitive::<Int64Type>();
        rows.extend((0..batch.num_rows()).map(|row| {
            let number = numbers.is_valid(row).then(|| numbers.value(row));
            let text = texts.is_valid(row).then(|| texts.value(row).to_owned());
            (number, text, values.value(row))
        }));
    }
    rows
}

/// A condition on one column.
#[derive(Clone, Debug)]
enum Condition<V> {
    In(Vec<Option<V>>),
    Between(Option<(V, bool)>, Option<(V, bool)>),
}

impl<V: Ord + Clone> Condition<V> {
    fn holds(&self, value: &Option<V>) -> bool {
        match (self, value) {
            (Self::In(values), value) => values.contains(value),
            (Self::Between(..), None) => false,
            (Self::Between(low, high), Some(value)) => {
                let above = |(low, within): &(V, bool)| value > low || (*within && value == low);
                let below = |(high, within): &(V, bool)| value < high || (*within && value == high);
                low.as_ref().is_none_or(above) && high.as_ref().is_none_or(below)
            }
        }
    }

    fn compiled(&self, array: impl Fn(Vec<Option<V>>) -> ArrayRef) -> KeyCondition {
        match self {
            Self::In(values) => KeyCondition::In(array(values.clone())),
            Self::Between(low, high) => {
                let bound = |(value, is_inclusive): &(V, bool)| KeyBound {
                    value: array(vec![Some(value.clone())]),
                    is_inclusive: *is_inclusive,
                };
                KeyCondition::Between(low.as_ref().map(bound), high.as_ref().map(bound))
            }
        }
    }
}

fn any_number() -> BoxedStrategy<i64> {
    prop_oneof![6 => -3..4_i64, 1 => Just(i64::MIN), 1 => Just(i64::MAX)].boxed()
}

fn any_text() -> BoxedStrategy<String> {
    let texts = vec!["", "\0", "a", "aa", "a\0", "ab", "b", "a text of more than eight bytes"];
    prop_oneof![
        6 => prop::sample::select(texts).prop_map(str::to_owned),
        1 => Just("x".repeat(300)),
    ]
    .boxed()
}

fn any_condition<V: Clone + std::fmt::Debug + 'static>(
    value: BoxedStrategy<V>,
) -> impl Strategy<Value = Condition<V>> {
    let end = prop::option::of((value.clone(), any::<bool>()));
    prop_oneof![
        prop::collection::vec(prop::option::weighted(0.8, value), 0..4).prop_map(Condition::In),
        (end.clone(), end).prop_map(|(low, high)| Condition::Between(low, high)),
    ]
}

fn any_row() -> impl Strategy<Value = Row> {
    let number = prop::option::weighted(0.9, any_number());
    (number, prop::option::weighted(0.9, any_text()), 0..3_i64)
}

fn any_batch() -> impl Strategy<Value = (Vec<(Row, Epoch, i64)>, bool)> {
    (prop::collection::vec((any_row(), 0..3_u64, -1..3_i64), 0..40), any::<bool>())
}

fn numbers(values: Vec<Option<i64>>) -> ArrayRef {
    Arc::new(Int64Array::from(values))
}

fn texts(values: Vec<Option<String>>) -> ArrayRef {
    Arc::new(StringArray::from(values))
}

proptest! {
    #[test]
    fn ranges_hold_the_rows_that_a_filter_leaves_in_order(
        batches in prop::collection::vec(any_batch(), 1..5),
        number in prop::option::weighted(0.9, any_condition(any_number())),
        text in prop::option::of(any_condition(any_text())),
        limit in prop::option::of(0..10_usize),
    ) {
        let (layout, context) = (layout(), StateContext::default());
        let in_files = StateContext::new(MemoryBudget::new(1), Some(Arc::new(MemoryStorage::new())));
        let built: Vec<_> = batches.iter().map(|(rows, on_file)| {
            batch(rows, &layout, if *on_file { &in_files } else { &context })
        }).collect();
        let whole = Snapshot::of(built.clone(), layout.clone(), &context);
        // The rows of two workers.
        let (one, other) = built.split_at(built.len() / 2);
        let parts = [one, other].map(|part| Snapshot::of(part.to_vec(), layout.clone(), &context));

        let mut conditions = Vec::new();
        conditions.extend(number.as_ref().map(|number| number.compiled(numbers)));
        if number.is_some() {
            conditions.extend(text.as_ref().map(|text| text.compiled(texts)));
        }
        let ranges = KeyEncoder::new(&layout).unwrap().ranges(&conditions).unwrap();
        // A range of the first column leaves the second one open.
        let decides = matches!(number, Some(Condition::In(_)));
        let mut expected = rows(whole.read(1, &[0, 1, 2]));
        expected.retain(|row| number.as_ref().is_none_or(|number| number.holds(&row.0)));
        if decides {
            expected.retain(|row| text.as_ref().is_none_or(|text| text.holds(&row.1)));
        }
        let mut read = Snapshot::read_ranges(&parts, 1, &[0, 1, 2], &ranges).unwrap();
        if let Some(limit) = limit {
            read = read.limited_to(limit);
            expected.truncate(limit);
        }
        prop_assert_eq!(rows(read), expected);
    }
}

#[test]
fn all_ranges_are_everything_and_no_values_are_nothing() {
    let layout = layout();
    let context = StateContext::default();
    let row = |number| ((Some(number), None, 0), 0, 1);
    let all: Vec<_> = (0..1000).map(row).collect();
    let snapshots = [Snapshot::of(vec![batch(&all, &layout, &context)], layout.clone(), &context)];
    let count = |ranges: &KeyRanges| {
        let read = Snapshot::read_ranges(&snapshots, 0, &[], ranges).unwrap();
        read.map(|rows| rows.num_rows()).sum::<usize>()
    };
    assert_eq!(count(&KeyRanges::all()), 1000);
    let encoder = KeyEncoder::new(&layout).unwrap();
    let none = encoder.ranges(&[KeyCondition::In(numbers(Vec::new()))]).unwrap();
    assert_eq!((none.len(), count(&none)), (0, 0));
    let both = [Some(7), Some(7), Some(-1), None, Some(999)];
    let some = encoder.ranges(&[KeyCondition::In(numbers(both.to_vec()))]).unwrap();
    assert_eq!((some.len(), count(&some)), (4, 2));
}

#[test]
fn more_values_than_there_may_be_ranges_are_one_range() {
    let layout = layout();
    let encoder = KeyEncoder::new(&layout).unwrap();
    let many = numbers((0..300).map(|number| Some(2 * number)).collect());
    let text = texts((0..300).map(|number| Some(format!("{number}"))).collect());
    let conditions = [KeyCondition::In(many), KeyCondition::In(text)];
    assert_eq!(encoder.ranges(&conditions).unwrap().len(), 300);
}

#[test]
fn a_value_of_another_type_or_one_too_many_is_an_error() {
    let layout = layout();
    let encoder = KeyEncoder::new(&layout).unwrap();
    assert!(encoder.prefix(&[texts(vec![None])]).is_err());
    let text = || texts(vec![Some("a".to_owned())]);
    assert!(encoder.prefix(&[numbers(vec![None]), text()]).is_ok());
    assert!(encoder.prefix(&[numbers(vec![None]), text(), text()]).is_err());
}
