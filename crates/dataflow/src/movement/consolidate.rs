//! Consolidation: equal rows become one.

use std::cmp::Ordering;

use arrow::array::{RecordBatch, UInt32Array};
use arrow::buffer::ScalarBuffer;

use crate::movement::delta::Delta;
use crate::rows::codec::{Encoded, ValueCodec};
use crate::rows::layout::{all_columns, types_of};
use crate::rows::weight::add;

/// The net change of `deltas` at each time, times ascending, without times at which nothing changes.
///
/// Per time every row occurs once, with a weight that is not zero; rows are in the order of their
/// encoded values, which is arbitrary but stable. Rows are equal if all their bits are.
///
/// Panics if the deltas differ in columns, a column has a type that [`ValueCodec`] does not know, or
/// the weight of a row reaches 2^63.
pub fn consolidate<T: Ord + Clone>(
    deltas: &[Delta<T>],
) -> Vec<(T, RecordBatch, ScalarBuffer<i64>)> {
    let all = Delta::concat(deltas);
    let schema = all.rows.schema();
    let types = types_of(&schema, &all_columns(&schema));
    let codec = ValueCodec::new(&types).expect("a view has columns that can be encoded");
    let mut rows = Encoded::new();
    codec.encode(all.rows.columns(), all.len(), &mut rows).expect("rows of the codec's types");

    let compare = |&a: &u32, &b: &u32| -> Ordering {
        let (a, b) = (a as usize, b as usize);
        all.time(a).cmp(all.time(b)).then_with(|| rows.get(a).cmp(rows.get(b)))
    };
    let count = u32::try_from(all.len()).expect("deltas have together fewer than 2^32 rows");
    let mut order: Vec<u32> = (0..count).collect();
    order.sort_unstable_by(compare);

    let mut kept: Vec<(u32, i64)> = Vec::with_capacity(order.len());
    for equal in order.chunk_by(|a, b| compare(a, b) == Ordering::Equal) {
        let weight = equal.iter().map(|&row| all.weight(row as usize)).fold(0, add);
        if weight != 0 {
            kept.push((equal[0], weight));
        }
    }
    kept.chunk_by(|a, b| all.time(a.0 as usize) == all.time(b.0 as usize))
        .map(|slice| {
            let indices: UInt32Array = slice.iter().map(|&(row, _)| row).collect::<Vec<_>>().into();
            let weights: Vec<i64> = slice.iter().map(|&(_, weight)| weight).collect();
            let time = all.time(slice[0].0 as usize).clone();
            (time, all.take(&indices).rows, weights.into())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use arrow::array::{ArrayRef, AsArray, Float64Array, Int64Array};
    use arrow::datatypes::Int64Type;
    use proptest::prelude::*;

    use super::*;
    use crate::movement::delta::Times;

    fn delta(changes: &[(i64, u64, i64)]) -> Delta<u64> {
        let numbers: ArrayRef =
            Arc::new(Int64Array::from_iter_values(changes.iter().map(|change| change.0)));
        Delta::new(
            RecordBatch::try_from_iter([("number", numbers)]).unwrap(),
            Times::Each(changes.iter().map(|change| change.1).collect()),
            Some(changes.iter().map(|change| change.2).collect::<Vec<_>>().into()),
        )
    }

    #[test]
    fn nothing_remains_of_what_cancels_out() {
        assert!(consolidate::<u64>(&[]).is_empty());
        let there_and_back = [delta(&[(1, 5, 2)]), delta(&[(1, 5, -2)])];
        assert!(consolidate(&there_and_back).is_empty());
    }

    #[test]
    fn a_zero_is_not_a_negative_zero() {
        let numbers: ArrayRef = Arc::new(Float64Array::from(vec![0.0, -0.0, 0.0]));
        let rows = RecordBatch::try_from_iter([("number", numbers)]).unwrap();
        let consolidated = consolidate(&[Delta::insertions(rows, 1_u64)]);
        assert_eq!(&consolidated[0].2[..], [2, 1]);
    }

    proptest! {
        #[test]
        fn weights_add_up_per_time_and_row(
            changes in prop::collection::vec((-2..3_i64, 0..3_u64, -2..3_i64), 0..60),
            cut in 0..60_usize,
        ) {
            let mut model: BTreeMap<(u64, i64), i64> = BTreeMap::new();
            for &(number, time, weight) in &changes {
                *model.entry((time, number)).or_default() += weight;
            }
            model.retain(|_, weight| *weight != 0);
            let (first, second) = changes.split_at(cut.min(changes.len()));
            let mut found = BTreeMap::new();
            let consolidated = consolidate(&[delta(first), delta(second)]);
            prop_assert!(consolidated.is_sorted_by(|a, b| a.0 < b.0));
            for (time, rows, weights) in consolidated {
                let numbers = rows.column(0).as_primitive::<Int64Type>();
                for (number, weight) in numbers.values().iter().zip(weights.iter()) {
                    prop_assert_eq!(found.insert((time, *number), *weight), None);
                }
            }
            prop_assert_eq!(found, model);
        }
    }
}
