//! Combining: equal rows of a delta become one row, whose weight is the sum of theirs.
//!
//! Operators that add up weights need not see every copy of a row. Where rows repeat, as in a count of few groups, few rows are
//! then encoded, sent to other workers and sorted. Where rows do not repeat this is in vain, so it is tried again only after a
//! number of deltas that doubles with each vain try.
//!
//! This is the partial aggregation before an exchange of Larson, "Data Reduction by Partial Preaggregation" (ICDE 2002), for weights.

use alluvium_trace::PageTime;
use alluvium_trace::memory::StateContext;
use arrow::array::UInt32Array;
use arrow::datatypes::SchemaRef;
use hashbrown::HashTable;
use xxhash_rust::xxh3::xxh3_64;

use crate::fault::{self, Fault};
use crate::movement::delta::{Delta, DeltaStream, Times, each_delta};
use crate::rows::codec::{CodecError, Encoded, ValueCodec};
use crate::rows::columns::Columns;
use crate::rows::layout::{all_columns, types_of};
use crate::rows::weight::add;

/// The most bytes of a row, on average: to encode large rows costs more than what comes of it.
const MOST_BYTES: usize = 128;

/// The most deltas that pass between two tries.
const MOST_SKIPPED: u32 = 64;

/// How rows are compared: they are equal if all their bits are.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The columns that count; `None` if all do.
    columns: Option<Columns>,
    codec: ValueCodec,
}

impl Spec {
    /// For rows of `schema`. Fails if a column has a type that cannot be stored.
    pub fn compile(schema: &SchemaRef) -> Result<Self, CodecError> {
        let codec = ValueCodec::new(&types_of(schema, &all_columns(schema)))?;
        Ok(Self { columns: None, codec })
    }

    /// For rows of which only some columns are wanted.
    pub(crate) fn of_columns(columns: Columns) -> Result<Self, CodecError> {
        let spec = Self::compile(columns.schema())?;
        Ok(Self { columns: Some(columns), ..spec })
    }
}

/// The same changes, of the columns that count, in fewer rows where equal rows are in one delta.
pub fn combine<'scope, T: PageTime>(
    spec: &Spec,
    rows: DeltaStream<'scope, T>,
    context: &StateContext,
) -> DeltaStream<'scope, T> {
    let mut combiner = Combiner::new(spec.clone(), context);
    let columns = spec.columns.clone();
    each_delta(rows, "Combine", move |delta| {
        if let Some(columns) = &columns {
            columns.pick(delta);
        }
        if let Some(combined) = combiner.combine(delta) {
            *delta = combined;
        }
    })
}

struct Combiner {
    spec: Spec,
    rows: Encoded,
    /// The numbers of the rows that differ, by the hash of their bytes.
    numbers: HashTable<u32>,
    /// For each of these, the row it was found in, the hash of its bytes, and its weight.
    firsts: Vec<First>,
    /// How many deltas to pass on before the next try.
    wait: u32,
    /// How many were passed on after the try before.
    waited: u32,
}

#[derive(Clone, Copy)]
struct First {
    row: u32,
    hash: u64,
    weight: i64,
}

impl Combiner {
    fn new(spec: Spec, context: &StateContext) -> Self {
        let rows = Encoded::counted(context);
        let (numbers, firsts) = (HashTable::new(), Vec::new());
        Self { spec, rows, numbers, firsts, wait: 0, waited: 0 }
    }

    /// The rows with those equal made one; `None` if the delta stays as it is, because few are equal or the rows have different times.
    fn combine<T: Clone>(&mut self, delta: &Delta<T>) -> Option<Delta<T>> {
        let Times::Same(_) = delta.times else { return None };
        if delta.len() < 2 {
            return None;
        }
        if self.wait > 0 {
            self.wait -= 1;
            return None;
        }
        if delta.bytes() / delta.len() > MOST_BYTES || !self.find(delta) {
            self.waited = (2 * self.waited).clamp(1, MOST_SKIPPED);
            self.wait = self.waited;
            return None;
        }
        self.waited = 0;
        self.firsts.retain(|first| first.weight != 0);
        let rows: UInt32Array =
            self.firsts.iter().map(|first| first.row).collect::<Vec<_>>().into();
        let mut combined = delta.take(&rows);
        combined.weights = Some(self.firsts.iter().map(|first| first.weight).collect());
        Some(combined)
    }

    /// Finds the different rows and their weights; returns whether they are at most three quarters of all.
    fn find<T: Clone>(&mut self, delta: &Delta<T>) -> bool {
        let Self { spec, rows, numbers, firsts, .. } = self;
        rows.clear();
        spec.codec
            .encode(delta.rows.columns(), delta.len(), rows)
            .expect("rows have the types their codec was made for");
        numbers.clear();
        firsts.clear();
        let most = delta.len() / 4 * 3;
        for (row, bytes) in rows.iter().enumerate() {
            let hash = xxh3_64(bytes);
            let is_equal = |&number: &u32| {
                let first: &First = &firsts[number as usize];
                first.hash == hash && rows.get(first.row as usize) == bytes
            };
            let weight = delta.weight(row);
            if let Some(&number) = numbers.find(hash, is_equal) {
                let first = &mut firsts[number as usize];
                if !fault::armed(Fault::CountOnce) {
                    first.weight = add(first.weight, weight);
                }
                continue;
            }
            if firsts.len() == most {
                return false;
            }
            let number = firsts.len() as u32;
            firsts.push(First { row: row as u32, hash, weight });
            numbers.insert_unique(hash, number, |&number| firsts[number as usize].hash);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
    use arrow::datatypes::Int64Type;
    use proptest::prelude::*;

    use super::*;

    fn delta(rows: &[(i64, bool, i64)]) -> Delta<u64> {
        let numbers: ArrayRef =
            Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.0)));
        let texts = rows.iter().map(|row| row.1.then_some("text"));
        let texts: ArrayRef = Arc::new(texts.collect::<StringArray>());
        let batch = RecordBatch::try_from_iter([("number", numbers), ("text", texts)]).unwrap();
        let weights = rows.iter().map(|row| row.2).collect::<Vec<_>>();
        Delta::new(batch, Times::Same(7), Some(weights.into()))
    }

    fn rows(delta: &Delta<u64>) -> Vec<(i64, bool, i64)> {
        let (numbers, texts) =
            (delta.rows.column(0).as_primitive::<Int64Type>(), delta.rows.column(1));
        (0..delta.len())
            .map(|row| (numbers.value(row), texts.is_valid(row), delta.weight(row)))
            .collect()
    }

    fn combiner() -> Combiner {
        let spec = Spec::compile(&delta(&[]).rows.schema()).unwrap();
        Combiner::new(spec, &StateContext::default())
    }

    proptest! {
        #[test]
        fn weights_of_equal_rows_add_up(
            deltas in prop::collection::vec(
                prop::collection::vec((0..4_i64, any::<bool>(), -3..4_i64), 0..200), 1..4),
        ) {
            let mut combiner = combiner();
            for changes in deltas {
                let mut expected: BTreeMap<(i64, bool), i64> = BTreeMap::new();
                for &(number, text, weight) in &changes {
                    *expected.entry((number, text)).or_default() += weight;
                }
                expected.retain(|_, weight| *weight != 0);
                let is_tried = combiner.wait == 0;
                let combined = combiner.combine(&delta(&changes));
                // At most eight rows differ, which are three quarters of twelve or fewer.
                prop_assert!(combined.is_some() || !is_tried || changes.len() < 12);
                let Some(combined) = combined else { continue };
                let found = rows(&combined);
                prop_assert_eq!(found.len(), expected.len());
                let found: BTreeMap<_, _> =
                    found.into_iter().map(|(number, text, weight)| ((number, text), weight)).collect();
                prop_assert_eq!(found, expected);
            }
        }
    }

    #[test]
    fn what_does_not_repeat_is_tried_ever_less_often_until_it_repeats() {
        let mut combiner = combiner();
        let different: Vec<_> = (0..100).map(|number| (number, true, 1)).collect();
        let equal = [(1, true, 1); 100];
        let mut tries = Vec::new();
        for number in 0..300 {
            if combiner.wait == 0 {
                tries.push(number);
            }
            assert!(combiner.combine(&delta(&different)).is_none());
        }
        assert_eq!(tries, [0, 2, 5, 10, 19, 36, 69, 134, 199, 264]);
        while combiner.wait > 0 {
            assert!(combiner.combine(&delta(&equal)).is_none());
        }
        for _ in 0..3 {
            assert_eq!(rows(&combiner.combine(&delta(&equal)).unwrap()), [(1, true, 100)]);
        }
    }

    #[test]
    fn rows_of_different_times_stay() {
        let mut delta = delta(&[(1, true, 1); 100]);
        delta.times = Times::Each((0..100).collect());
        assert!(combiner().combine(&delta).is_none());
    }
}
