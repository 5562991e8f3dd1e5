//! The exact total of one of two columns, over the rows in which neither is NULL.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Float64Type};
use datafusion_common::Result;

use super::{Exact, FloatTotal, Total};

/// The total of the column of this number.
#[derive(Clone, Debug, Default)]
pub(super) struct OfPair<const COLUMN: usize>(FloatTotal);

impl<const COLUMN: usize> OfPair<COLUMN> {
    pub(super) fn mean(&self) -> Option<f64> {
        self.0.mean()
    }
}

impl<const COLUMN: usize> Total for OfPair<COLUMN> {
    type Input = f64;

    const STATE: &'static [(&'static str, DataType)] = FloatTotal::STATE;

    fn key(input: f64) -> u128 {
        FloatTotal::key(input)
    }

    fn of_key(key: u128) -> f64 {
        FloatTotal::of_key(key)
    }

    fn each(columns: &[ArrayRef], mut visit: impl FnMut(usize, f64)) -> Result<()> {
        let numbers = columns[COLUMN].as_primitive::<Float64Type>();
        for row in 0..numbers.len() {
            if columns.iter().all(|column| column.is_valid(row)) {
                visit(row, numbers.value(row));
            }
        }
        Ok(())
    }

    fn add(&mut self, input: f64) {
        self.0.add(input);
    }

    fn merge(&mut self, other: &Self) {
        self.0.merge(&other.0);
    }

    fn state(totals: &[Self]) -> Vec<ArrayRef> {
        let totals: Vec<FloatTotal> = totals.iter().map(|total| total.0.clone()).collect();
        FloatTotal::state(&totals)
    }

    fn each_state(columns: &[ArrayRef], mut visit: impl FnMut(usize, Self)) -> Result<()> {
        FloatTotal::each_state(columns, |row, total| visit(row, Self(total)))
    }

    fn owned(&self) -> usize {
        self.0.owned()
    }
}

impl<const COLUMN: usize> Exact for OfPair<COLUMN> {
    fn subtract(&mut self, input: f64) {
        self.0.subtract(input);
    }
}
