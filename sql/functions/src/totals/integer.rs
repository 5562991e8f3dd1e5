//! Exact totals of integers.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, Int64Array};
use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, Decimal128Type, Int64Type, UInt64Type};
use datafusion_common::{Result, exec_err};

use super::{Exact, Total};

/// Some integers of 64 bits.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct IntegerTotal {
    count: i64,
    sum: i128,
}

impl IntegerTotal {
    /// Their mean; `None` of none.
    pub(super) fn mean(&self) -> Option<f64> {
        (self.count != 0).then(|| self.sum as f64 / self.count as f64)
    }
}

impl Total for IntegerTotal {
    type Input = i128;

    const STATE: &'static [(&'static str, DataType)] =
        &[("count", DataType::Int64), ("sum", DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0))];

    fn key(input: i128) -> u128 {
        input as u128
    }

    fn of_key(key: u128) -> i128 {
        key as i128
    }

    fn each(columns: &[ArrayRef], mut visit: impl FnMut(usize, i128)) -> Result<()> {
        let column = &columns[0];
        match column.data_type() {
            DataType::Int64 => {
                for (row, number) in column.as_primitive::<Int64Type>().iter().enumerate() {
                    number.into_iter().for_each(|number| visit(row, number.into()));
                }
            }
            DataType::UInt64 => {
                for (row, number) in column.as_primitive::<UInt64Type>().iter().enumerate() {
                    number.into_iter().for_each(|number| visit(row, number.into()));
                }
            }
            other => return exec_err!("integers of 64 bits are expected, not {other}"),
        }
        Ok(())
    }

    fn add(&mut self, input: i128) {
        self.count += 1;
        self.sum += input;
    }

    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.sum += other.sum;
    }

    fn state(totals: &[Self]) -> Vec<ArrayRef> {
        let counts = Int64Array::from_iter_values(totals.iter().map(|total| total.count));
        let sums = Decimal128Array::from_iter_values(totals.iter().map(|total| total.sum));
        let sums = sums.with_data_type(DataType::Decimal128(DECIMAL128_MAX_PRECISION, 0));
        vec![Arc::new(counts), Arc::new(sums)]
    }

    fn each_state(columns: &[ArrayRef], mut visit: impl FnMut(usize, Self)) -> Result<()> {
        let counts = columns[0].as_primitive::<Int64Type>();
        let sums = columns[1].as_primitive::<Decimal128Type>();
        for row in 0..counts.len() {
            visit(row, Self { count: counts.value(row), sum: sums.value(row) });
        }
        Ok(())
    }
}

impl Exact for IntegerTotal {
    fn subtract(&mut self, input: i128) {
        self.count -= 1;
        self.sum -= input;
    }
}
