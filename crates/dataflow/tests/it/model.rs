//! A naive model of collections, and a way to compare a dataflow with it at every epoch.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use alluvium_dataflow::delta::{Delta, DeltaStream};
use alluvium_trace::Epoch;
use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::buffer::ScalarBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::operator::Operator;

/// A row of numbers, some of them NULL.
pub type Row = Vec<Option<i64>>;
/// A multiset of rows.
pub type Rows = BTreeMap<Row, i64>;
/// Changes as they come: row, epoch, weight.
pub type History = Vec<(Row, Epoch, i64)>;

/// A schema of nullable numbers.
pub fn numbers(columns: &[&str]) -> SchemaRef {
    let field = |name: &&str| Field::new(*name, DataType::Int64, true);
    Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()))
}

/// The rows as a delta at `epoch`.
pub fn delta(schema: &SchemaRef, rows: &[(Row, i64)], epoch: Epoch) -> Delta<Epoch> {
    let columns = (0..schema.fields().len())
        .map(|column| {
            Arc::new(rows.iter().map(|(row, _)| row[column]).collect::<Int64Array>()) as ArrayRef
        })
        .collect();
    let weights: Vec<i64> = rows.iter().map(|(_, weight)| *weight).collect();
    let mut delta =
        Delta::insertions(RecordBatch::try_new(schema.clone(), columns).unwrap(), epoch);
    delta.weights = Some(ScalarBuffer::from(weights));
    delta
}

/// What `history` adds up to at the end of `epoch`.
pub fn at(history: &History, epoch: Epoch) -> Rows {
    let mut rows = Rows::new();
    for (row, time, weight) in history {
        if *time <= epoch {
            *rows.entry(row.clone()).or_default() += weight;
        }
    }
    rows.retain(|_, weight| *weight != 0);
    rows
}

/// Where the changes of a stream are collected, from all workers.
pub type Collected = Arc<Mutex<History>>;

/// Collects the changes of `stream`.
pub fn collect(stream: DeltaStream<'_, Epoch>, into: Collected) -> DeltaStream<'_, Epoch> {
    stream.unary::<timely::container::NoopBuilder<Delta<Epoch>>, _, _, _>(
        Pipeline,
        "Collect",
        move |_, _| {
            move |input, output| {
                input.for_each(|capability, delta: &mut Delta<Epoch>| {
                    let mut collected = into.lock().unwrap();
                    let columns: Vec<ArrayRef> = delta
                        .rows
                        .columns()
                        .iter()
                        .map(|column| cast(column, &DataType::Int64).unwrap())
                        .collect();
                    for row in 0..delta.len() {
                        let values = columns
                            .iter()
                            .map(|column| {
                                let column = column.as_primitive::<Int64Type>();
                                column.is_valid(row).then(|| column.value(row))
                            })
                            .collect();
                        assert!(*delta.time(row) >= *capability.time());
                        collected.push((values, *delta.time(row), delta.weight(row)));
                    }
                    output.session_with_builder(&capability).give_container(delta);
                });
            }
        },
    )
}

/// A small random number generator: the same numbers for the same seed, everywhere.
pub struct Random(u64);

impl Random {
    /// Starts from `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }

    /// True once in `times`.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }
}
