//! A checksum of the contents of a view that does not depend on the order of rows.
//!
//! The checksum is the sum, modulo 2⁶⁴, of XXH3 (64 bits, no seed) of the canonical form of each row, times the
//! row's weight. It can be computed from changes instead of contents: a deletion subtracts what the insertion
//! added.
//!
//! The canonical form of a row is the concatenation of its values. NULL is a byte 0. Any other value is a byte 1,
//! followed by, in little-endian order: a boolean as one byte; an integer, a date (days), a time or a timestamp (in
//! its own unit) as 8 bytes; a decimal as 16 bytes without its scale; a float as the 8 bytes of a double, with -0.0
//! as 0.0 and a single NaN; text or bytes as their length in 8 bytes and their bytes.

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal128Type, Float64Type, Int64Type};
use xxhash_rust::xxh3::xxh3_64;

use crate::error::{Error, Result};

/// A checksum that is being computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checksum {
    /// The checksum.
    pub sum: u64,
    /// The number of rows, including copies.
    pub rows: i64,
}

impl Checksum {
    /// Adds rows with their weights.
    pub fn add(&mut self, rows: &RecordBatch, weights: &[i64]) -> Result<()> {
        let columns = canonical_columns(rows)?;
        let mut row_bytes = Vec::new();
        for (row, weight) in weights.iter().enumerate() {
            row_bytes.clear();
            for column in &columns {
                column.write(row, &mut row_bytes);
            }
            self.add_canonical(&row_bytes, *weight);
        }
        Ok(())
    }

    /// Adds a row in its canonical form.
    pub fn add_canonical(&mut self, row: &[u8], weight: i64) {
        self.sum = self.sum.wrapping_add(xxh3_64(row).wrapping_mul(weight as u64));
        self.rows += weight;
    }

    /// Adds rows of weight one.
    pub fn add_all(&mut self, rows: &RecordBatch) -> Result<()> {
        self.add(rows, &vec![1; rows.num_rows()])
    }
}

/// A column, by the encoding of its values.
enum Canonical {
    Boolean(ArrayRef),
    /// Cast to 64-bit integers.
    Integer(ArrayRef),
    Decimal(ArrayRef),
    /// Cast to doubles.
    Float(ArrayRef),
    /// Cast to bytes.
    Bytes(ArrayRef),
}

fn canonical_columns(rows: &RecordBatch) -> Result<Vec<Canonical>> {
    let schema = rows.schema();
    let columns = schema.fields().iter().zip(rows.columns());
    let canonical = columns.map(|(field, column)| {
        Ok(match column.data_type() {
            DataType::Boolean => Canonical::Boolean(column.clone()),
            DataType::Float32 | DataType::Float64 => {
                Canonical::Float(cast(column, &DataType::Float64)?)
            }
            DataType::Decimal128(..) => Canonical::Decimal(column.clone()),
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
                Canonical::Bytes(cast(&cast(column, &DataType::Utf8)?, &DataType::Binary)?)
            }
            DataType::Binary => Canonical::Bytes(column.clone()),
            DataType::Date32 | DataType::Time32(_) => {
                Canonical::Integer(cast(&cast(column, &DataType::Int32)?, &DataType::Int64)?)
            }
            data_type
                if data_type.is_integer()
                    || matches!(data_type, DataType::Timestamp(..) | DataType::Time64(_)) =>
            {
                Canonical::Integer(cast(column, &DataType::Int64)?)
            }
            data_type => {
                let (column, data_type) = (field.name().clone(), data_type.clone());
                return Err(Error::Canonical { column, data_type });
            }
        })
    });
    canonical.collect()
}

impl Canonical {
    fn write(&self, row: usize, to: &mut Vec<u8>) {
        let (Self::Boolean(column)
        | Self::Integer(column)
        | Self::Decimal(column)
        | Self::Float(column)
        | Self::Bytes(column)) = self;
        if column.is_null(row) {
            to.push(0);
            return;
        }
        to.push(1);
        match self {
            Self::Boolean(column) => to.push(column.as_boolean().value(row).into()),
            Self::Integer(column) => {
                to.extend_from_slice(&column.as_primitive::<Int64Type>().value(row).to_le_bytes());
            }
            Self::Decimal(column) => {
                let value = column.as_primitive::<Decimal128Type>().value(row);
                to.extend_from_slice(&value.to_le_bytes());
            }
            Self::Float(column) => {
                let value = column.as_primitive::<Float64Type>().value(row);
                let value = if value.is_nan() { f64::NAN } else { value + 0.0 };
                to.extend_from_slice(&value.to_le_bytes());
            }
            Self::Bytes(column) => {
                let value = column.as_binary::<i32>().value(row);
                to.extend_from_slice(&(value.len() as u64).to_le_bytes());
                to.extend_from_slice(value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Float64Array, Int32Array, Int64Array, StringArray, StringViewArray};

    use super::*;

    fn batch(columns: Vec<ArrayRef>) -> RecordBatch {
        let names = ["a", "b"];
        RecordBatch::try_from_iter(names.into_iter().zip(columns)).unwrap()
    }

    fn checksum(rows: &RecordBatch, weights: &[i64]) -> Checksum {
        let mut checksum = Checksum::default();
        checksum.add(rows, weights).unwrap();
        checksum
    }

    #[test]
    fn changes_have_the_checksum_of_the_remaining_rows() {
        let numbers = |numbers: &[i64]| batch(vec![Arc::new(Int64Array::from(numbers.to_vec()))]);
        let changes = checksum(&numbers(&[3, 1, 2, 1]), &[2, 1, 1, -1]);
        assert_eq!(changes, checksum(&numbers(&[2, 3]), &[1, 2]));
        assert_eq!(changes.rows, 3);
        assert_ne!(changes.sum, checksum(&numbers(&[2, 2, 3]), &[1, 1, 1]).sum);
        assert_ne!(changes.sum, checksum(&numbers(&[2, 4]), &[1, 2]).sum);
    }

    #[test]
    fn the_checksum_is_as_documented() {
        let rows = batch(vec![
            Arc::new(Int32Array::from(vec![Some(-2), None])),
            Arc::new(StringArray::from(vec!["abc", ""])),
        ]);
        let mut first = vec![1];
        first.extend_from_slice(&(-2_i64).to_le_bytes());
        first.extend_from_slice(&[1, 3, 0, 0, 0, 0, 0, 0, 0, b'a', b'b', b'c']);
        let second = [0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
        let sum = xxh3_64(&first).wrapping_add(xxh3_64(&second));
        assert_eq!(checksum(&rows, &[1, 1]), Checksum { sum, rows: 2 });
    }

    #[test]
    fn the_checksum_depends_on_values_not_on_their_encoding() {
        let one = batch(vec![
            Arc::new(Int32Array::from(vec![7])),
            Arc::new(StringArray::from(vec!["a"])),
        ]);
        let other = batch(vec![
            Arc::new(Int64Array::from(vec![7])),
            Arc::new(StringViewArray::from(vec!["a"])),
        ]);
        assert_eq!(checksum(&one, &[1]), checksum(&other, &[1]));
        let zero =
            |zero: f64| checksum(&batch(vec![Arc::new(Float64Array::from(vec![zero]))]), &[1]);
        assert_eq!(zero(0.0), zero(-0.0));
        // The boundary between two texts matters.
        let texts = |a: &str, b: &str| {
            let text = |text: &str| Arc::new(StringArray::from(vec![text])) as ArrayRef;
            checksum(&batch(vec![text(a), text(b)]), &[1])
        };
        assert_ne!(texts("ab", "c"), texts("a", "bc"));
    }
}
