//! Values of parameters.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use arrow::compute::concat;
use arrow::datatypes::{DataType, Field, Schema};

use crate::error::Result;

/// A value of a parameter with a type of its own, from an array of Arrow: [`Client::query_typed`](crate::Client::query_typed) takes them.
///
/// The server computes with it as with a value of its type. A text is read as a value of the type that its place has.
#[derive(Clone, Debug)]
pub struct Parameter(
    /// An array of this value alone.
    ArrayRef,
);

impl Parameter {
    /// NULL, of the type that its place has.
    pub fn null() -> Self {
        Self(new_null_array(&DataType::Null, 1))
    }

    /// The value of a row of an array.
    ///
    /// # Panics
    ///
    /// If the array has no such row.
    pub fn of(array: &ArrayRef, row: usize) -> Self {
        Self(array.slice(row, 1))
    }

    fn is_untyped(&self) -> bool {
        self.0.data_type().is_null()
    }

    /// The first of many rows of values, as far as their values have the same types, as a batch, and the rows after them. There is a row at least. NULL has
    /// any type.
    pub(crate) fn take_batch<'a>(
        rows: &'a [Vec<Self>],
        most: usize,
    ) -> Result<(RecordBatch, &'a [Vec<Self>])> {
        let mut types: Vec<DataType> = Vec::new();
        let mut count = 0;
        for row in rows.iter().take(most) {
            if count == 0 {
                types = row.iter().map(|value| value.0.data_type().clone()).collect();
            }
            let mut pairs = types.iter().zip(row);
            let fits = |(of, value): (&DataType, &Self)| {
                of.is_null() || value.is_untyped() || of == value.0.data_type()
            };
            if types.len() != row.len() || !pairs.all(fits) {
                break;
            }
            for (of, value) in types.iter_mut().zip(row).filter(|(of, _)| of.is_null()) {
                *of = value.0.data_type().clone();
            }
            count += 1;
        }
        let (first, rest) = rows.split_at(count);
        let columns = types.iter().enumerate().map(|(place, of)| {
            let null = new_null_array(of, 1);
            let of_row = |row: &'a Vec<Self>| match &row[place] {
                value if value.is_untyped() => None,
                value => Some(value.0.as_ref()),
            };
            let values: Vec<&dyn Array> =
                first.iter().map(|row| of_row(row).unwrap_or(null.as_ref())).collect();
            Ok(concat(&values)?)
        });
        let columns: Vec<ArrayRef> = columns.collect::<Result<_>>()?;
        let fields = types
            .iter()
            .enumerate()
            .map(|(place, of)| Field::new((place + 1).to_string(), of.clone(), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        Ok((RecordBatch::try_new_with_options(schema, columns, &options)?, rest))
    }
}
