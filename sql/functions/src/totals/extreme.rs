//! The smallest and the largest of floats, where NaN is larger than any number.

use std::marker::PhantomData;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Float32Array, Float64Array};
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use datafusion_common::Result;

use super::{Finish, Total};

/// DOUBLE or REAL.
pub trait Float: Copy + Send + Sync + 'static {
    const TYPE: DataType;

    /// Calls `visit` for each value.
    fn each(column: &ArrayRef, visit: impl FnMut(usize, f64));

    /// A column of numbers of this type.
    fn column(numbers: impl Iterator<Item = Option<f64>>) -> ArrayRef;
}

impl Float for f64 {
    const TYPE: DataType = DataType::Float64;

    fn each(column: &ArrayRef, mut visit: impl FnMut(usize, f64)) {
        for (row, number) in column.as_primitive::<Float64Type>().iter().enumerate() {
            number.into_iter().for_each(|number| visit(row, number));
        }
    }

    fn column(numbers: impl Iterator<Item = Option<f64>>) -> ArrayRef {
        Arc::new(numbers.collect::<Float64Array>())
    }
}

impl Float for f32 {
    const TYPE: DataType = DataType::Float32;

    fn each(column: &ArrayRef, mut visit: impl FnMut(usize, f64)) {
        for (row, number) in column.as_primitive::<Float32Type>().iter().enumerate() {
            number.into_iter().for_each(|number| visit(row, number.into()));
        }
    }

    fn column(numbers: impl Iterator<Item = Option<f64>>) -> ArrayRef {
        Arc::new(numbers.map(|number| number.map(|number| number as f32)).collect::<Float32Array>())
    }
}

/// The largest number if `MAX`, the smallest otherwise.
#[derive(Debug)]
pub struct FloatExtreme<F, const MAX: bool> {
    number: Option<f64>,
    float: PhantomData<F>,
}

impl<F: Float, const MAX: bool> FloatExtreme<F, MAX> {
    pub fn finish() -> Finish<Self> {
        Finish { number: |extreme| extreme.number, result: F::TYPE }
    }
}

impl<F, const MAX: bool> Clone for FloatExtreme<F, MAX> {
    fn clone(&self) -> Self {
        Self { number: self.number, float: PhantomData }
    }
}

impl<F, const MAX: bool> Default for FloatExtreme<F, MAX> {
    fn default() -> Self {
        Self { number: None, float: PhantomData }
    }
}

impl<F: Float + std::fmt::Debug, const MAX: bool> Total for FloatExtreme<F, MAX> {
    type Input = f64;

    const STATE: &'static [(&'static str, DataType)] = &[("number", F::TYPE)];

    fn key(input: f64) -> u128 {
        super::distinct::float_key(input).into()
    }

    fn of_key(key: u128) -> f64 {
        f64::from_bits(key as u64)
    }

    fn each(columns: &[ArrayRef], visit: impl FnMut(usize, f64)) -> Result<()> {
        F::each(&columns[0], visit);
        Ok(())
    }

    fn add(&mut self, input: f64) {
        let order = self.number.map(|number| input.total_cmp(&number));
        if order.is_none_or(|order| if MAX { order.is_gt() } else { order.is_lt() }) {
            self.number = Some(input);
        }
    }

    fn merge(&mut self, other: &Self) {
        other.number.into_iter().for_each(|number| self.add(number));
    }

    fn state(totals: &[Self]) -> Vec<ArrayRef> {
        vec![F::column(totals.iter().map(|total| total.number))]
    }

    fn each_state(columns: &[ArrayRef], mut visit: impl FnMut(usize, Self)) -> Result<()> {
        F::each(&columns[0], |row, number| {
            visit(row, Self { number: Some(number), float: PhantomData });
        });
        Ok(())
    }
}
