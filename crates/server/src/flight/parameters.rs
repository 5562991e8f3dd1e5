//! Values that clients bind to parameters, as rows of Arrow.

use std::sync::Arc;

use alluvium::Value;
use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use tonic::{Code, Status};

use super::incoming::Incoming;
use super::status;

/// Rows of values for the parameters of a statement.
#[derive(Clone)]
pub(super) struct Values {
    pub(super) rows: Arc<Vec<Vec<Value>>>,
    /// About how many bytes they take.
    pub(super) bytes: usize,
}

impl Values {
    /// One row without a value, for a statement without parameters.
    pub(super) fn none() -> Self {
        Self { rows: Arc::new(vec![Vec::new()]), bytes: 0 }
    }
}

/// The values that a client sends, of at most so many bytes; no row if it sends none.
pub(super) async fn read(
    mut incoming: Incoming,
    wanted: usize,
    limit: usize,
) -> Result<Values, Status> {
    let (mut values, mut bytes) = (Vec::new(), 0);
    if incoming.columns().await?.is_some() {
        while let Some(batch) = incoming.next().await? {
            let cells = batch.num_rows().saturating_mul(batch.num_columns());
            bytes += batch.get_array_memory_size() + cells.saturating_mul(size_of::<Value>());
            if bytes > limit {
                return Err(too_much(limit));
            }
            values.extend(rows(&batch, wanted)?);
        }
    }
    Ok(Values { rows: Arc::new(values), bytes })
}

/// The status of more bytes than a session may keep.
pub(super) fn too_much(limit: usize) -> Status {
    let message = format!(
        "the statements and values that this session keeps have more than {limit} bytes, the limit \"message_bytes\": close some, or bind fewer rows"
    );
    status::status(Code::ResourceExhausted, "54000", message)
}

/// The values of each row; the columns are the parameters by their place.
///
/// # Errors
/// If there are other columns than parameters, or values that SQL does not have.
pub(super) fn rows(batch: &RecordBatch, wanted: usize) -> Result<Vec<Vec<Value>>, Status> {
    let given = batch.num_columns();
    if given != wanted {
        return Err(status::bad(format!(
            "the statement has {wanted} parameters, and {given} values were given"
        )));
    }
    let columns = batch.columns().iter().map(plain).collect::<Result<Vec<_>, _>>()?;
    let value =
        |column: &ArrayRef, row| Value::from_array(column, row).map_err(|error| status::of(&error));
    let row = |row| columns.iter().map(|column| value(column, row)).collect();
    (0..batch.num_rows()).map(row).collect()
}

/// A column of the types that values have: what Arrow encodes in several ways is one type in SQL.
fn plain(column: &ArrayRef) -> Result<ArrayRef, Status> {
    let plain = plain_type(column.data_type());
    match &plain == column.data_type() {
        true => Ok(column.clone()),
        false => cast(column, &plain).map_err(status::unwritten),
    }
}

/// The type of SQL's values that a type of Arrow encodes.
pub(super) fn plain_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Dictionary(_, values) => plain_type(values),
        DataType::RunEndEncoded(_, values) => plain_type(values.data_type()),
        DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
        DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            DataType::Binary
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{DictionaryArray, LargeStringArray};
    use arrow::datatypes::Int8Type;

    use super::*;

    #[test]
    fn dictionaries_and_large_texts_are_texts() {
        let dictionary: DictionaryArray<Int8Type> = [Some("a"), None].into_iter().collect();
        let large = LargeStringArray::from(vec!["b", "c"]);
        let columns: [(_, ArrayRef); 2] = [("0", Arc::new(dictionary)), ("1", Arc::new(large))];
        let batch = RecordBatch::try_from_iter_with_nullable(
            columns.into_iter().map(|(name, column)| (name, column, true)),
        );
        let batch = batch.expect("rows");
        let read = rows(&batch, 2).expect("values");
        assert_eq!(read[0], [Value::from("a"), Value::from("b")]);
        assert!(read[1][0].is_null());
        assert!(rows(&batch, 1).is_err());
    }
}
