//! Whether rows suit a table.

use arrow::array::{Array, ArrayRef, RecordBatch};

use crate::catalog::Entry;
use crate::error::{Error, Result};

/// The rows with the table's own schema, or why they cannot be in it: the number of their columns, a column's type, a
/// NULL in a NOT NULL column.
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
            )));
        }
    }
    Ok(RecordBatch::try_new(table.schema.clone(), columns.to_vec())?)
}
