//! Sums of floating point numbers over frames whose start moves.
//!
//! A sum takes back a number that leaves the frame by subtracting it, which cannot take back NaN or an infinity. So these are
//! counted, and only the others are summed.

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::compute::filter;
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::Accumulator;

/// Functions of numbers that sum them, their squares or products.
const SUMS: [&str; 9] =
    ["sum", "avg", "var", "var_pop", "stddev", "stddev_pop", "covar_samp", "covar_pop", "corr"];

/// Whether the function is one of those, or of those that are computed in the same way, of floating point numbers.
pub(super) fn sums_floats<'a>(
    function: &str,
    mut arguments: impl Iterator<Item = &'a DataType>,
) -> bool {
    (SUMS.contains(&function) || function.starts_with("regr_"))
        && arguments.any(DataType::is_floating)
}

/// How many of the numbers in the frame are not finite.
#[derive(Debug, Default)]
struct Counts {
    nan: u64,
    positive: u64,
    negative: u64,
}

/// An accumulator that moves along a frame, given finite numbers only.
#[derive(Debug)]
pub(super) struct Finite {
    sum: Box<dyn Accumulator>,
    /// Whether infinities of one sign make its result infinite. Others make it NaN.
    keeps_sign: bool,
    counts: Counts,
}

impl Finite {
    pub(super) fn new(function: &str, sum: Box<dyn Accumulator>) -> Finite {
        let keeps_sign = matches!(function, "sum" | "avg");
        Finite { sum, keeps_sign, counts: Counts::default() }
    }

    /// The arguments of rows without numbers that are not finite, `None` if that is all; `count` is given those that are not.
    fn split(values: &[ArrayRef], mut count: impl FnMut(f64)) -> Result<Option<Vec<ArrayRef>>> {
        let mut all = true;
        let rows = values.first().map_or(0, |column| column.len());
        let mut stays = vec![true; rows];
        for column in values {
            let mut see = |row: usize, number: f64| {
                if !number.is_finite() && stays[row] {
                    (stays[row], all) = (false, false);
                    count(number);
                }
            };
            match column.data_type() {
                DataType::Float32 => {
                    let numbers = column.as_primitive::<Float32Type>().iter().enumerate();
                    numbers.for_each(|(row, number)| see(row, number.unwrap_or(0.0).into()));
                }
                DataType::Float64 => {
                    let numbers = column.as_primitive::<Float64Type>().iter().enumerate();
                    numbers.for_each(|(row, number)| see(row, number.unwrap_or(0.0)));
                }
                _ => {}
            }
        }
        if all {
            return Ok(None);
        }
        let stays = BooleanArray::from(stays);
        let finite = values.iter().map(|column| filter(column, &stays));
        Ok(Some(finite.collect::<std::result::Result<_, _>>()?))
    }
}

impl Counts {
    /// The number of those like this one.
    fn of(&mut self, number: f64) -> &mut u64 {
        match number {
            number if number.is_nan() => &mut self.nan,
            number if number > 0.0 => &mut self.positive,
            _ => &mut self.negative,
        }
    }
}

impl Accumulator for Finite {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        match Finite::split(values, |number| *self.counts.of(number) += 1)? {
            None => self.sum.update_batch(values),
            Some(finite) => self.sum.update_batch(&finite),
        }
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        match Finite::split(values, |number| *self.counts.of(number) -= 1)? {
            None => self.sum.retract_batch(values),
            Some(finite) => self.sum.retract_batch(&finite),
        }
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let result = self.sum.evaluate()?;
        let number = match &self.counts {
            Counts { nan: 0, positive: 0, negative: 0 } => return Ok(result),
            Counts { nan: 0, positive: 1.., negative: 0 } if self.keeps_sign => f64::INFINITY,
            Counts { nan: 0, positive: 0, negative: 1.. } if self.keeps_sign => f64::NEG_INFINITY,
            _ => f64::NAN,
        };
        ScalarValue::Float64(Some(number)).cast_to(&result.data_type())
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.sum.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.sum.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.sum.merge_batch(states)
    }
}
