//! The rows that all kernels work on.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use fastrand::Rng;

/// Rows in a group, on average.
const IN_A_GROUP: usize = 100;

/// `id`, `group`, `value` and a `name` of 20 letters.
pub fn schema() -> SchemaRef {
    let number = |name| Field::new(name, DataType::Int64, false);
    let name = Field::new("name", DataType::Utf8, true);
    Arc::new(Schema::new(vec![number("id"), number("group"), number("value"), name]))
}

/// Rows of [`schema`], numbered from `first`, in random groups of those that `all` rows have.
pub fn rows(first: usize, count: usize, all: usize) -> Result<RecordBatch, ArrowError> {
    let mut random = Rng::with_seed(first as u64);
    let groups = (all / IN_A_GROUP) as i64;
    let mut ids: Vec<i64> = (first as i64..(first + count) as i64).collect();
    random.shuffle(&mut ids);
    let chosen: Int64Array = (0..count).map(|_| random.i64(0..groups)).collect();
    let values: Int64Array = (0..count).map(|_| random.i64(0..1_000_000)).collect();
    let names: StringArray =
        (0..count).map(|_| Some((0..20).map(|_| random.lowercase()).collect::<String>())).collect();
    let columns: Vec<ArrayRef> =
        vec![Arc::new(Int64Array::from(ids)), Arc::new(chosen), Arc::new(values), Arc::new(names)];
    RecordBatch::try_new(schema(), columns)
}
