//! Means, and sums of squared distances from them, of pairs of numbers.
//!
//! Merged as by Chan, Golub and LeVeque ("Updating Formulae and a Pairwise Algorithm for Computing Sample Variances", 1979);
//! a row is a total of one. Sums of squares are never negative, and zero for equal numbers.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, UInt64Array};
use arrow::datatypes::{DataType, Float64Type, UInt64Type};
use datafusion_common::Result;

use super::Total;
use super::distinct::float_key;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moments {
    count: u64,
    mean: [f64; 2],
    /// Sums of squares of the distances from each mean, and of products of both.
    squares: [f64; 2],
    products: f64,
}

/// Whose functions take these numbers.
pub(super) type Of = fn(&Moments) -> Option<f64>;

/// The statistic of a function; the first argument of functions of pairs is the dependent one.
pub(super) fn statistic(name: &str) -> Option<Of> {
    const Y: usize = 0;
    const X: usize = 1;
    Some(match name {
        "var" => |of| of.per(1, of.squares[Y]),
        "var_pop" => |of| of.per(0, of.squares[Y]),
        "stddev" => |of| of.per(1, of.squares[Y]).map(f64::sqrt),
        "stddev_pop" => |of| of.per(0, of.squares[Y]).map(f64::sqrt),
        "covar_samp" => |of| of.per(1, of.products),
        "covar_pop" => |of| of.per(0, of.products),
        "corr" => |of| {
            let varies = of.squares[X] != 0.0 && of.squares[Y] != 0.0;
            (of.count > 0 && varies).then(|| of.correlation())
        },
        "regr_count" => |of| Some(of.count as f64),
        "regr_sxx" => |of| of.any(of.squares[X]),
        "regr_syy" => |of| of.any(of.squares[Y]),
        "regr_sxy" => |of| of.any(of.products),
        "regr_slope" => |of| of.slope(),
        "regr_intercept" => |of| of.slope().map(|slope| of.mean[Y] - slope * of.mean[X]),
        "regr_r2" => |of| match of.squares {
            [_, 0.0] => None,
            [0.0, _] => Some(1.0),
            _ => Some(of.correlation().powi(2)),
        },
        _ => return None,
    })
}

impl Moments {
    fn any(&self, number: f64) -> Option<f64> {
        (self.count > 0).then_some(number)
    }

    /// A sum divided by the number of rows less the degrees of freedom that are lost.
    fn per(&self, lost: u64, sum: f64) -> Option<f64> {
        let count = self.count.checked_sub(lost).filter(|&count| count > 0)?;
        Some(sum / count as f64)
    }

    fn slope(&self) -> Option<f64> {
        let [_, x] = self.squares;
        (self.count > 0 && x != 0.0).then(|| self.products / x)
    }

    fn correlation(&self) -> f64 {
        let [y, x] = self.squares;
        let product = x * y;
        let scale = if product.is_normal() { product.sqrt() } else { x.sqrt() * y.sqrt() };
        (self.products / scale).clamp(-1.0, 1.0)
    }

    /// The moments of one row. Squares of distances from NaN and infinities are NaN.
    fn of([y, x]: [f64; 2]) -> Self {
        let squares = [y, x].map(|number| if number.is_finite() { 0.0 } else { f64::NAN });
        Self { count: 1, mean: [y, x], squares, products: squares[0] + squares[1] }
    }
}

/// A mean that is moved a share of the way to another one.
fn between(mean: f64, other: f64, share: f64) -> f64 {
    let moved = mean + (other - mean) * share;
    if moved.is_finite() { moved } else { mean * (1.0 - share) + other * share }
}

impl Total for Moments {
    type Input = [f64; 2];

    const STATE: &'static [(&'static str, DataType)] = &[
        ("count", DataType::UInt64),
        ("mean_y", DataType::Float64),
        ("mean_x", DataType::Float64),
        ("squares_y", DataType::Float64),
        ("squares_x", DataType::Float64),
        ("products", DataType::Float64),
    ];

    fn key([y, x]: [f64; 2]) -> u128 {
        u128::from(float_key(y)) << 64 | u128::from(float_key(x))
    }

    fn of_key(key: u128) -> [f64; 2] {
        [f64::from_bits((key >> 64) as u64), f64::from_bits(key as u64)]
    }

    fn each(columns: &[ArrayRef], mut visit: impl FnMut(usize, [f64; 2])) -> Result<()> {
        let ys = columns[0].as_primitive::<Float64Type>();
        let xs = columns.get(1).map(|column| column.as_primitive::<Float64Type>());
        for row in 0..ys.len() {
            if ys.is_null(row) || xs.is_some_and(|xs| xs.is_null(row)) {
                continue;
            }
            visit(row, [ys.value(row), xs.map_or(0.0, |xs| xs.value(row))]);
        }
        Ok(())
    }

    fn add(&mut self, input: [f64; 2]) {
        self.merge(&Moments::of(input));
    }

    fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        if self.count == 0 {
            *self = *other;
            return;
        }
        let count = self.count + other.count;
        let share = other.count as f64 / count as f64;
        let weight = self.count as f64 * share;
        let distance = [other.mean[0] - self.mean[0], other.mean[1] - self.mean[1]];
        for (number, distance) in distance.into_iter().enumerate() {
            self.squares[number] += other.squares[number] + distance * distance * weight;
            self.mean[number] = between(self.mean[number], other.mean[number], share);
        }
        self.products += other.products + distance[0] * distance[1] * weight;
        self.count = count;
    }

    fn state(totals: &[Self]) -> Vec<ArrayRef> {
        let column = |of: fn(&Self) -> f64| -> ArrayRef {
            Arc::new(Float64Array::from_iter_values(totals.iter().map(of)))
        };
        vec![
            Arc::new(UInt64Array::from_iter_values(totals.iter().map(|total| total.count))),
            column(|total| total.mean[0]),
            column(|total| total.mean[1]),
            column(|total| total.squares[0]),
            column(|total| total.squares[1]),
            column(|total| total.products),
        ]
    }

    fn each_state(columns: &[ArrayRef], mut visit: impl FnMut(usize, Self)) -> Result<()> {
        let counts = columns[0].as_primitive::<UInt64Type>();
        let column = |number: usize| columns[number].as_primitive::<Float64Type>();
        let [my, mx, sy, sx, products] = [column(1), column(2), column(3), column(4), column(5)];
        for row in 0..counts.len() {
            let total = Self {
                count: counts.value(row),
                mean: [my.value(row), mx.value(row)],
                squares: [sy.value(row), sx.value(row)],
                products: products.value(row),
            };
            visit(row, total);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(numbers: &[f64]) -> Moments {
        let mut total = Moments::default();
        numbers.iter().for_each(|&number| total.add([number, 0.0]));
        total
    }

    #[test]
    fn parts_have_the_moments_of_the_whole() {
        let numbers = [1e9, 1e9 + 1.0, 1e9 + 2.0, 1e9 + 4.0];
        let mut parts = of(&numbers[..1]);
        parts.merge(&of(&numbers[1..]));
        for total in [parts, of(&numbers)] {
            let variance = total.per(1, total.squares[0]);
            assert!(variance.is_some_and(|variance| (variance - 8.75 / 3.0).abs() < 1e-6));
        }
    }

    #[test]
    fn equal_numbers_do_not_vary() {
        let mut total = of(&[0.1; 3]);
        total.merge(&of(&[0.1; 7]));
        assert_eq!(total.squares, [0.0; 2]);
        assert_eq!(statistic("corr").and_then(|corr| corr(&total)), None);
    }

    #[test]
    fn an_infinite_number_has_no_variance_but_a_mean() {
        let total = of(&[f64::INFINITY, 1.0, 2.0]);
        assert!(total.squares[0].is_nan());
        assert_eq!(total.mean[0], f64::INFINITY);
        assert!(of(&[f64::INFINITY, f64::NEG_INFINITY]).mean[0].is_nan());
    }
}
