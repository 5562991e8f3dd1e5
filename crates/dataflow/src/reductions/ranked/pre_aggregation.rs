//! Pre-aggregation: drops rows of a delta that cannot be the first of their group.
//!
//! If one row per group is selected and rows are never deleted, only the first row of each group in a delta can be selected.
//! The others are dropped before they are encoded, sent and sorted. Of many rows of few groups, few are left.

use arrow::array::BooleanArray;
use arrow::buffer::BooleanBuffer;
use arrow::compute::SortOptions;
use arrow::datatypes::SchemaRef;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use alluvium_trace::PageTime;
use alluvium_trace::memory::StateContext;

use crate::movement::delta::{Delta, DeltaStream, Times, each_delta};
use crate::rows::codec::{CodecError, Encoded};
use crate::rows::key_columns::KeyColumns;

/// The groups and their order.
#[derive(Clone, Debug)]
pub(super) struct PreAggregation {
    keys: KeyColumns,
    order: KeyColumns,
}

impl PreAggregation {
    /// Of rows of `schema`, grouped by the columns `keys`.
    pub(super) fn compile(
        schema: &SchemaRef,
        keys: &[usize],
        order: &[(usize, SortOptions)],
    ) -> Result<Self, CodecError> {
        Ok(Self {
            keys: KeyColumns::new(schema, keys)?,
            order: KeyColumns::ordered(schema, order)?,
        })
    }
}

/// Drops rows that rank after another of the same group, time and delta. All weights are positive.
pub(super) fn pre_aggregate<'scope, T: PageTime>(
    spec: &PreAggregation,
    rows: DeltaStream<'scope, T>,
    context: &StateContext,
) -> DeltaStream<'scope, T> {
    let mut firsts = Firsts::new(spec.clone(), context);
    each_delta(rows, "PreAggregate", move |delta| {
        if let Some(kept) = firsts.select(delta) {
            *delta = delta.filter(&kept);
        }
    })
}

/// Finds the first rows of groups.
struct Firsts {
    spec: PreAggregation,
    keys: Encoded,
    orders: Encoded,
}

impl Firsts {
    fn new(spec: PreAggregation, context: &StateContext) -> Self {
        Self { spec, keys: Encoded::counted(context), orders: Encoded::counted(context) }
    }

    /// The rows to keep; `None` if the rows have different times, or nearly all are kept.
    fn select<T: Clone>(&mut self, delta: &Delta<T>) -> Option<BooleanArray> {
        let Times::Same(_) = delta.times else { return None };
        let (keys, orders) = (&mut self.keys, &mut self.orders);
        keys.clear();
        self.spec.keys.encode(&delta.rows, keys);
        orders.clear();
        self.spec.order.encode(&delta.rows, orders);
        let mut firsts: HashMap<&[u8], &[u8]> = HashMap::new();
        for (key, order) in keys.iter().zip(orders.iter()) {
            match firsts.entry(key) {
                Entry::Vacant(first) => drop(first.insert(order)),
                Entry::Occupied(mut first) if order < *first.get() => drop(first.insert(order)),
                Entry::Occupied(_) => {}
            }
        }
        if firsts.len() > delta.len() / 8 * 7 {
            return None;
        }
        let is_first = |row: usize| firsts.get(keys.get(row)) == Some(&orders.get(row));
        Some(BooleanArray::new(BooleanBuffer::collect_bool(delta.len(), is_first), None))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, RecordBatch};

    use super::*;

    #[test]
    fn the_first_of_each_group_and_its_equals_are_kept() {
        let number = |numbers: [i64; 8]| Arc::new(Int64Array::from(numbers.to_vec())) as ArrayRef;
        let rows = RecordBatch::try_from_iter([
            ("group", number([1, 2, 1, 1, 2, 1, 2, 1])),
            ("order", number([5, 7, 3, 4, 9, 3, 8, 6])),
        ]);
        let mut delta = Delta::insertions(rows.unwrap(), 4_u64);
        let ascending = SortOptions { descending: false, nulls_first: true };
        let spec = PreAggregation::compile(delta.rows.schema_ref(), &[0], &[(1, ascending)]);
        let mut firsts = Firsts::new(spec.unwrap(), &StateContext::default());
        let kept = firsts.select(&delta).unwrap();
        assert_eq!(kept.values().set_indices().collect::<Vec<_>>(), [1, 2, 5]);

        // A row that ranks after one of a later time is selected until then.
        delta.times = Times::Each((0..8).collect());
        assert_eq!(firsts.select(&delta), None);
    }
}
