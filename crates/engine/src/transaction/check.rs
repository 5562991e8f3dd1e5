//! Whether rows and weights suit a table.

use alluvium_dataflow::rows::codec::one_nan;
use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch};
use arrow::buffer::ScalarBuffer;
use arrow::compute::filter_record_batch;

use crate::catalog::Entry;
use crate::error::{Error, Result, SqlState};

/// The rows with the table's own schema, or why they cannot be in it: the number of their columns, a column's type, a
/// NULL in a NOT NULL column. A table holds one NaN, the one without a sign.
pub(super) fn check(table: &Entry, columns: &[ArrayRef]) -> Result<RecordBatch> {
    let fields = table.schema.fields();
    let table_name = &table.name;
    if columns.len() != fields.len() {
        let (given, wanted) = (columns.len(), fields.len());
        return Err(Error::data(format!(
            "{given} columns are given for the {wanted} columns of \"{table_name}\""
        )));
    }
    for (field, column) in fields.iter().zip(columns) {
        let (name, given, wanted) = (field.name(), column.data_type(), field.data_type());
        if given != wanted {
            return Err(Error::data(format!(
                "values of type {given} are given for column \"{name}\" of \"{table_name}\", which is {wanted}"
            )));
        }
        if !field.is_nullable() && column.logical_null_count() > 0 {
            return Err(Error::data(format!(
                "NULL is not allowed in column \"{name}\" of \"{table_name}\""
            ))
            .with_sqlstate(SqlState::NOT_NULL));
        }
    }
    let columns = columns.iter().map(one_nan).collect::<std::result::Result<_, _>>()?;
    Ok(RecordBatch::try_new(table.schema.clone(), columns)?)
}

/// The most copies of a row that one weight inserts or deletes. A sum or product of weights that leaves 64 bits stops the engine.
const MOST_COPIES: u64 = i32::MAX as u64;

/// The rows whose weights are not zero, with their weights. Fails unless there is a weight for each row, of at most
/// [`MOST_COPIES`].
pub(super) fn check_weights(
    rows: RecordBatch,
    weights: &[i64],
) -> Result<(RecordBatch, ScalarBuffer<i64>)> {
    if weights.len() != rows.num_rows() {
        let (given, wanted) = (weights.len(), rows.num_rows());
        return Err(Error::data(format!("{given} weights are given for {wanted} rows")));
    }
    if let Some(weight) = weights.iter().find(|weight| weight.unsigned_abs() > MOST_COPIES) {
        return Err(Error::data(format!(
            "the weight {weight} is out of range: at most {MOST_COPIES} copies of a row change at a time"
        )));
    }
    if !weights.contains(&0) {
        return Ok((rows, weights.to_vec().into()));
    }
    let changes: BooleanArray = weights.iter().map(|weight| Some(*weight != 0)).collect();
    let weights = weights.iter().copied().filter(|weight| *weight != 0).collect();
    Ok((filter_record_batch(&rows, &changes)?, weights))
}
