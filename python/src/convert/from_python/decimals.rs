//! Exact decimal numbers.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt};

use super::numbers::whole;
use crate::convert::fault::Unfit;
use crate::convert::python::is_decimal;

/// Digits of the largest type.
const MOST: u8 = 38;

/// A number as its digits: without zeros in front, times ten to the power of the exponent.
pub(super) struct Digits {
    negative: bool,
    digits: Vec<u8>,
    exponent: i64,
}

/// The value of a DECIMAL of this precision and scale, without its point. Digits behind the scale are rounded, half away from zero.
pub(super) fn decimal(value: &Bound<'_, PyAny>, precision: u8, scale: i8) -> Result<i128, Unfit> {
    let is_int = value.is_exact_instance_of::<PyInt>()
        || value.is_instance_of::<PyInt>() && !value.is_instance_of::<PyBool>();
    if is_int
        && let Ok(number) = whole(value)
        && let Ok(scale) = u32::try_from(scale)
    {
        let unscaled = 10_i128.checked_pow(scale).and_then(|power| number.checked_mul(power));
        return unscaled.filter(|unscaled| fits(*unscaled, precision)).ok_or(Unfit::Beyond);
    }
    let digits = if let Ok(float) = value.cast::<PyFloat>() {
        Digits::of_float(float.extract()?)?
    } else if is_int {
        // A class that is derived from `int` may have texts of its own.
        Digits::of(&value.py().get_type::<PyInt>().call1((value,))?)?
    } else if is_decimal(value)? {
        Digits::of(value)?
    } else {
        return Err(Unfit::Unknown);
    };
    digits.rounded(precision, scale)
}

/// The float next to a `Decimal`.
pub(super) fn double(value: &Bound<'_, PyAny>) -> Result<f64, Unfit> {
    let double: f64 = value.str()?.to_str()?.parse().map_err(|_| Unfit::Unknown)?;
    let finite = || Digits::of(value).is_ok();
    if double.is_infinite() && finite() { Err(Unfit::Beyond) } else { Ok(double) }
}

fn fits(unscaled: i128, precision: u8) -> bool {
    unscaled.unsigned_abs() < 10_u128.pow(precision.min(MOST).into())
}

impl Digits {
    /// Those of an `int` or a `Decimal`.
    pub(super) fn of(value: &Bound<'_, PyAny>) -> Result<Self, Unfit> {
        // Python makes no text of an integer of thousands of digits.
        let Ok(text) = value.str() else { return Err(Unfit::Beyond) };
        Self::parse(text.to_str()?).ok_or_else(|| Unfit::because("it is not finite"))
    }

    /// The fewest that tell the float from others.
    pub(super) fn of_float(value: f64) -> Result<Self, Unfit> {
        Self::parse(&format!("{value:e}")).ok_or_else(|| Unfit::because("it is not finite"))
    }

    /// Those of a text such as `-12.50E+3`.
    fn parse(text: &str) -> Option<Self> {
        let (negative, text) = match text.strip_prefix('-') {
            Some(text) => (true, text),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (number, exponent) = match text.split_once(['E', 'e']) {
            Some((number, exponent)) => (number, exponent.parse::<i64>().ok()?),
            None => (text, 0),
        };
        let (before, behind) = number.split_once('.').unwrap_or((number, ""));
        let digits: Vec<u8> = before.bytes().chain(behind.bytes()).collect();
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
        let exponent = exponent.saturating_sub(behind.len() as i64);
        Some(Self { negative, digits: digits[zeros..].to_vec(), exponent })
    }

    /// Its digits before and behind the point.
    pub(super) fn places(&self) -> (usize, usize) {
        let count = self.digits.len() as i64;
        let before = count.saturating_add(self.exponent).max(0);
        let before = if count == 0 { 0 } else { before };
        let behind = self.exponent.saturating_neg().max(0);
        (
            usize::try_from(before).unwrap_or(usize::MAX),
            usize::try_from(behind).unwrap_or(usize::MAX),
        )
    }

    /// The integer that it is.
    pub(super) fn whole(mut self) -> Result<i128, Unfit> {
        let zeros = self.digits.iter().rev().take_while(|digit| **digit == b'0').count();
        self.digits.truncate(self.digits.len() - zeros);
        self.exponent = self.exponent.saturating_add(zeros as i64);
        if !self.digits.is_empty() && self.exponent < 0 {
            return Err(Unfit::because("it has a fraction"));
        }
        self.rounded(MOST, 0)
    }

    /// It times ten to the power of the scale, rounded to an integer, half away from zero.
    fn rounded(&self, precision: u8, scale: i8) -> Result<i128, Unfit> {
        if self.digits.is_empty() {
            return Ok(0);
        }
        let count = self.digits.len() as i64;
        let shift = self.exponent.saturating_add(scale.into());
        let kept = count.saturating_add(shift);
        if kept < 0 {
            return Ok(0);
        }
        if kept > MOST.into() {
            return Err(Unfit::Beyond);
        }
        let (kept, zeros) = (kept.min(count) as usize, shift.max(0) as u32);
        let number = |number: i128, digit: &u8| number * 10 + i128::from(digit - b'0');
        let mut unscaled = self.digits[..kept].iter().fold(0, number) * 10_i128.pow(zeros);
        if self.digits.get(kept).is_some_and(|digit| *digit >= b'5') {
            unscaled += 1;
        }
        match fits(unscaled, precision) {
            true if self.negative => Ok(-unscaled),
            true => Ok(unscaled),
            false => Err(Unfit::Beyond),
        }
    }
}
