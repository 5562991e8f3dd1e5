//! Whether rows suit a table.

use arrow::array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow::compute::take;

use crate::catalog::Entry;
use crate::error::{Error, Result};

/// The rows with the table's own schema, or why they cannot enter it: the number of their columns, a
/// column's type, a NULL where there must be none.
pub(super) fn fit(table: &Entry, columns: &[ArrayRef]) -> Result<RecordBatch> {
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

/// All columns of a table, given rows of those named and one row of what the others get.
pub(super) fn complete(
    table: &Entry,
    named: &[&str],
    rows: &RecordBatch,
    defaults: &RecordBatch,
) -> Result<Vec<ArrayRef>> {
    let (given, wanted) = (rows.num_columns(), named.len());
    if given != wanted {
        return Err(Error::data(format!("{given} columns are given for {wanted} that are named")));
    }
    for (place, name) in named.iter().enumerate() {
        let table_name = &table.name;
        if table.schema.index_of(name).is_err() {
            return Err(Error::data(format!("\"{table_name}\" has no column \"{name}\"")));
        }
        if named[..place].contains(name) {
            return Err(Error::data(format!("column \"{name}\" is named twice")));
        }
    }
    let first = UInt32Array::from(vec![0; rows.num_rows()]);
    let columns = table.schema.fields().iter().zip(defaults.columns()).map(|(field, default)| {
        match named.iter().position(|name| name == field.name()) {
            Some(place) => Ok(rows.column(place).clone()),
            None => Ok(take(default, &first, None)?),
        }
    });
    columns.collect()
}
