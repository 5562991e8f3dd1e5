//! The answer of a query as checksums, which a side computes from its own rows.

use alluvium_nexmark::checksum::Checksum;
use serde_json::{Value, json};

/// The checksums of a view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The checksum of all columns.
    pub contents: Checksum,
    /// Without the columns that the query leaves open where rows tie.
    pub decided: Checksum,
}

impl Answer {
    /// Adds a row as often as `weight` says.
    pub fn add(&mut self, row: &Row, weight: i64) {
        self.contents.add_canonical(&row.contents, weight);
        self.decided.add_canonical(&row.decided, weight);
    }

    /// As JSON.
    pub fn to_json(&self) -> Value {
        json!({
            "rows": self.decided.rows,
            "contents": format!("{:016x}", self.contents.sum),
            "decided": format!("{:016x}", self.decided.sum),
        })
    }

    /// From JSON; `None` if a field is missing.
    pub fn from_json(value: &Value) -> Option<Self> {
        let rows = value.get("rows")?.as_i64()?;
        let checksum = |name: &str| {
            let sum = u64::from_str_radix(value.get(name)?.as_str()?, 16).ok()?;
            Some(Checksum { sum, rows })
        };
        Some(Self { contents: checksum("contents")?, decided: checksum("decided")? })
    }
}

/// A row in the canonical form of [`alluvium_nexmark::checksum`], written column by column.
#[derive(Debug, Default)]
pub struct Row {
    contents: Vec<u8>,
    decided: Vec<u8>,
}

impl Row {
    /// Begins a row.
    pub fn clear(&mut self) {
        self.contents.clear();
        self.decided.clear();
    }

    /// An integer, the days of a date, or the microseconds of a timestamp.
    pub fn integer(&mut self, value: i64) {
        self.value(&value.to_le_bytes());
    }

    /// A decimal without its scale.
    pub fn decimal(&mut self, value: i128) {
        self.value(&value.to_le_bytes());
    }

    /// A double that is a number.
    pub fn double(&mut self, value: f64) {
        self.value(&(value + 0.0).to_le_bytes());
    }

    /// A text.
    pub fn text(&mut self, value: &str) {
        self.value(&(value.len() as u64).to_le_bytes());
        self.contents.extend_from_slice(value.as_bytes());
        self.decided.extend_from_slice(value.as_bytes());
    }

    /// Columns that the query leaves open.
    pub fn open(&mut self, write: impl FnOnce(&mut Self)) {
        let decided = self.decided.len();
        write(self);
        self.decided.truncate(decided);
    }

    fn value(&mut self, bytes: &[u8]) {
        for row in [&mut self.contents, &mut self.decided] {
            row.push(1);
            row.extend_from_slice(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        ArrayRef, Date32Array, Decimal128Array, Float64Array, Int64Array, RecordBatch, StringArray,
        TimestampMicrosecondArray,
    };

    use super::*;

    #[test]
    fn rows_have_the_checksum_of_the_same_values_in_columns() {
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("id", Arc::new(Int64Array::from(vec![-5]))),
            ("at", Arc::new(TimestampMicrosecondArray::from(vec![1_436_918_400_000_000]))),
            ("day", Arc::new(Date32Array::from(vec![16_631]))),
            ("price", Arc::new(Decimal128Array::from(vec![908]))),
            ("mean", Arc::new(Float64Array::from(vec![-0.0]))),
            ("name", Arc::new(StringArray::from(vec!["née"]))),
        ];
        let mut expected = Checksum::default();
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        expected.add(&batch, &[3]).unwrap();
        let mut row = Row::default();
        row.clear();
        row.integer(-5);
        row.integer(1_436_918_400_000_000);
        row.integer(16_631);
        row.decimal(908);
        row.double(-0.0);
        row.open(|row| row.text("née"));
        let mut answer = Answer::default();
        answer.add(&row, 3);
        assert_eq!(answer.contents, expected);
        let mut expected = Checksum::default();
        expected.add(&batch.project(&[0, 1, 2, 3, 4]).unwrap(), &[3]).unwrap();
        assert_eq!(answer.decided, expected);
        assert_eq!(Answer::from_json(&answer.to_json()), Some(answer));
    }
}
