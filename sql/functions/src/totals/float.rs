//! Exact totals of floats.
//!
//! The sum of numbers of similar size is mostly the sum of two floats, and is kept so while that is exact. Then it becomes
//! the sum of any floats that views keep, [`FloatSum`].

use std::sync::Arc;

use alluvium_dataflow::reductions::aggregate::float_sum::FloatSum;
use arrow::array::{Array, ArrayRef, AsArray, BinaryBuilder, Float64Array, Int64Array};
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use datafusion_common::{Result, exec_err};

use super::distinct::float_key;
use super::{Exact, Total};

#[derive(Clone, Debug, Default)]
pub(super) struct FloatTotal {
    count: i64,
    sum: Sum,
}

#[derive(Clone, Debug)]
enum Sum {
    /// Two floats, the first of which is their sum, rounded.
    Two(f64, f64),
    Any(Box<FloatSum>),
}

impl Default for Sum {
    fn default() -> Self {
        Sum::Two(0.0, 0.0)
    }
}

/// The sum, rounded, and what rounding has lost (Knuth's TwoSum).
fn two_sum(one: f64, other: f64) -> (f64, f64) {
    let sum = one + other;
    let rest = sum - one;
    (sum, (one - (sum - rest)) + (other - rest))
}

impl Sum {
    /// Adds a number, or takes it back with a weight of -1.
    fn add(&mut self, number: f64, weight: i64) {
        match self {
            Sum::Two(high, low) => {
                let (sum, rest) = two_sum(*high, number * weight as f64);
                let (rest, lost) = two_sum(*low, rest);
                // NaN if the sum is not finite.
                if lost == 0.0 && sum.is_finite() {
                    (*high, *low) = two_sum(sum, rest);
                } else {
                    self.any().add(number, weight);
                }
            }
            Sum::Any(sum) => sum.add(number, weight),
        }
    }

    fn any(&mut self) -> &mut FloatSum {
        if let Sum::Two(high, low) = *self {
            let mut sum = FloatSum::new();
            sum.add(high, 1);
            sum.add(low, 1);
            *self = Sum::Any(Box::new(sum));
        }
        match self {
            Sum::Any(sum) => sum,
            Sum::Two(..) => unreachable!("has become the other"),
        }
    }

    fn merge(&mut self, other: &Sum) {
        match other {
            Sum::Two(high, low) => {
                self.add(*high, 1);
                self.add(*low, 1);
            }
            Sum::Any(other) => self.any().merge(other),
        }
    }
}

impl FloatTotal {
    /// Their sum; `None` of none.
    pub(super) fn sum(&self) -> Option<f64> {
        (self.count != 0).then(|| match &self.sum {
            // Never -0.0.
            Sum::Two(high, _) => *high + 0.0,
            Sum::Any(sum) => sum.value(),
        })
    }

    /// Their mean; `None` of none.
    pub(super) fn mean(&self) -> Option<f64> {
        (self.count != 0).then(|| match &self.sum {
            Sum::Two(high, 0.0) => *high / self.count as f64 + 0.0,
            Sum::Any(sum) => sum.mean(self.count),
            sum @ Sum::Two(..) => sum.clone().any().mean(self.count),
        })
    }
}

impl Total for FloatTotal {
    type Input = f64;

    const STATE: &'static [(&'static str, DataType)] = &[
        ("count", DataType::Int64),
        ("high", DataType::Float64),
        ("low", DataType::Float64),
        ("any", DataType::Binary),
    ];

    fn key(input: f64) -> u128 {
        float_key(input).into()
    }

    fn of_key(key: u128) -> f64 {
        f64::from_bits(key as u64)
    }

    fn each(columns: &[ArrayRef], mut visit: impl FnMut(usize, f64)) -> Result<()> {
        for (row, number) in columns[0].as_primitive::<Float64Type>().iter().enumerate() {
            if let Some(number) = number {
                visit(row, number);
            }
        }
        Ok(())
    }

    fn add(&mut self, input: f64) {
        self.count += 1;
        self.sum.add(input, 1);
    }

    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.sum.merge(&other.sum);
    }

    fn state(totals: &[Self]) -> Vec<ArrayRef> {
        let part = |of: fn(f64, f64) -> f64| {
            let parts = totals.iter().map(|total| match total.sum {
                Sum::Two(high, low) => of(high, low),
                Sum::Any(_) => 0.0,
            });
            Arc::new(Float64Array::from_iter_values(parts))
        };
        let (mut any, mut bytes) = (BinaryBuilder::new(), Vec::new());
        for total in totals {
            match &total.sum {
                Sum::Two(..) => any.append_null(),
                Sum::Any(sum) => {
                    bytes.clear();
                    sum.encode_into(&mut bytes);
                    any.append_value(&bytes);
                }
            }
        }
        let counts = Int64Array::from_iter_values(totals.iter().map(|total| total.count));
        vec![Arc::new(counts), part(|high, _| high), part(|_, low| low), Arc::new(any.finish())]
    }

    fn each_state(columns: &[ArrayRef], mut visit: impl FnMut(usize, Self)) -> Result<()> {
        let counts = columns[0].as_primitive::<Int64Type>();
        let highs = columns[1].as_primitive::<Float64Type>();
        let lows = columns[2].as_primitive::<Float64Type>();
        let others = columns[3].as_binary::<i32>();
        for row in 0..counts.len() {
            let sum = if others.is_null(row) {
                Sum::Two(highs.value(row), lows.value(row))
            } else {
                let (mut sum, mut bytes) = (FloatSum::new(), others.value(row));
                if sum.decode_from(&mut bytes).is_none() {
                    return exec_err!("a partial sum cannot be read");
                }
                Sum::Any(Box::new(sum))
            };
            visit(row, Self { count: counts.value(row), sum });
        }
        Ok(())
    }

    fn owned(&self) -> usize {
        match &self.sum {
            Sum::Two(..) => 0,
            Sum::Any(_) => size_of::<FloatSum>(),
        }
    }
}

impl Exact for FloatTotal {
    fn subtract(&mut self, input: f64) {
        self.count -= 1;
        self.sum.add(input, -1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(numbers: &[f64]) -> FloatTotal {
        let mut total = FloatTotal::default();
        numbers.iter().for_each(|&number| total.add(number));
        total
    }

    #[test]
    fn small_numbers_stay_after_large_ones() {
        assert_eq!(of(&[1e17, 1.0, -1e17]).sum(), Some(1.0));
        assert_eq!(of(&[1e300, 1.0, 1e-300, -1e300, -1.0]).sum(), Some(1e-300));
        let mut total = of(&[f64::INFINITY, 0.1, f64::MAX, f64::MAX]);
        assert_eq!(total.sum(), Some(f64::INFINITY));
        for number in [f64::INFINITY, f64::MAX, f64::MAX] {
            total.subtract(number);
        }
        assert_eq!((total.sum(), total.mean()), (Some(0.1), Some(0.1)));
    }

    #[test]
    fn partial_sums_are_exact() {
        let parts = [of(&[0.1, 0.2, 0.3]), of(&[1e300, 1.0]), of(&[-1e300, f64::MIN_POSITIVE])];
        let mut all = FloatTotal::default();
        FloatTotal::each_state(&FloatTotal::state(&parts), |_, part| all.merge(&part)).unwrap();
        let mut exact = FloatSum::new();
        for number in [0.1, 0.2, 0.3, 1.0, f64::MIN_POSITIVE] {
            exact.add(number, 1);
        }
        assert_eq!((all.sum(), all.mean()), (Some(exact.value()), Some(exact.mean(7))));
    }

    #[test]
    fn a_sum_of_negative_zeros_is_zero() {
        let total = of(&[-0.0, -0.0]);
        assert!(total.sum().is_some_and(|sum| sum.is_sign_positive()));
        assert_eq!(FloatTotal::default().sum(), None);
    }
}
