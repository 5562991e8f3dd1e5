//! The key of a view, and values for its columns.

use std::ops::Bound;

use alluvium_dataflow::state::key_ranges::{KeyEncoder, KeyRanges};
use alluvium_sql::planner::type_name;
use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::scalar::ScalarValue;

use crate::error::{Error, Result};
use crate::value::Value;

/// The columns that rows are sorted by.
pub(super) struct Key {
    encoder: KeyEncoder,
    columns: Vec<usize>,
    /// All columns.
    schema: SchemaRef,
}

impl Key {
    pub(super) fn new(encoder: KeyEncoder, columns: Vec<usize>, schema: SchemaRef) -> Self {
        Self { encoder, columns, schema }
    }

    pub(super) fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// The keys that start with these values.
    pub(super) fn prefix(&self, values: &[ScalarValue]) -> Result<KeyRanges> {
        self.encoder.prefix(&self.arrays(values)?).map_err(|error| Error::data(error.to_string()))
    }

    /// The keys between two bounds.
    pub(super) fn between(
        &self,
        low: Bound<&[ScalarValue]>,
        high: Bound<&[ScalarValue]>,
    ) -> Result<KeyRanges> {
        let bound = |bound: Bound<&[ScalarValue]>| -> Result<Option<(Vec<ArrayRef>, bool)>> {
            Ok(match bound {
                Bound::Included(values) => Some((self.arrays(values)?, true)),
                Bound::Excluded(values) => Some((self.arrays(values)?, false)),
                Bound::Unbounded => None,
            })
        };
        let (low, high) = (bound(low)?, bound(high)?);
        let low = low.as_ref().map(|(values, within)| (values.as_slice(), *within));
        let high = high.as_ref().map(|(values, within)| (values.as_slice(), *within));
        self.encoder.between(low, high).map_err(|error| Error::data(error.to_string()))
    }

    /// Values of the first key columns, of their types.
    fn arrays(&self, values: &[ScalarValue]) -> Result<Vec<ArrayRef>> {
        if self.columns.is_empty() {
            return Err(Error::data(
                "no unique key is known of these rows, so they are not found by key; query them",
            ));
        }
        if values.len() > self.columns.len() {
            return Err(Error::data(format!(
                "the key has {} columns ({}), and {} values were given",
                self.columns.len(),
                self.names(),
                values.len()
            )));
        }
        values.iter().zip(&self.columns).map(|(value, &column)| self.array(value, column)).collect()
    }

    /// A value as one of a column.
    fn array(&self, value: &ScalarValue, column: usize) -> Result<ArrayRef> {
        let field = self.schema.field(column);
        let data_type = field.data_type();
        let given = value.data_type();
        if given == *data_type {
            return Ok(value.to_array()?);
        }
        if value.is_null() {
            return Ok(ScalarValue::try_from(data_type)?.to_array()?);
        }
        let converted = match are_alike(&given, data_type) {
            true => value.cast_to(data_type).ok(),
            false => None,
        };
        let is_same =
            |converted: &ScalarValue| converted.cast_to(&given).is_ok_and(|back| back == *value);
        match converted.filter(is_same) {
            Some(converted) => Ok(converted.to_array()?),
            None => Err(Error::data(format!(
                "{} ({}) is no value of the key column \"{}\" ({})",
                Value::new(value.clone()),
                type_name(&given),
                field.name(),
                type_name(data_type)
            ))),
        }
    }

    fn names(&self) -> String {
        let names = self.columns.iter().map(|&column| self.schema.field(column).name().as_str());
        names.collect::<Vec<_>>().join(", ")
    }
}

/// Whether values of one type may be meant for a column of another.
fn are_alike(given: &DataType, column: &DataType) -> bool {
    let is_binary = |data_type: &DataType| {
        matches!(
            data_type,
            DataType::Binary
                | DataType::LargeBinary
                | DataType::BinaryView
                | DataType::FixedSizeBinary(_)
        )
    };
    (given.is_numeric() && column.is_numeric())
        || (given.is_string() && column.is_string())
        || (is_binary(given) && is_binary(column))
        || (given.is_temporal() && column.is_temporal())
}
