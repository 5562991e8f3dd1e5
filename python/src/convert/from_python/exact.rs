//! Columns of values that a statement would take as they are.

use alluvium::arrow::array::ArrayRef;
use alluvium::arrow::datatypes::{DataType, IntervalUnit, TimeUnit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDate, PyDateTime, PyDelta, PyFloat, PyInt, PyString, PyTime};

use super::build;
use super::decimals::Digits;
use super::times::is_aware;
use crate::convert::python::decimal;

/// Digits of the largest DECIMAL.
const DIGITS: usize = 38;

/// Up to this number, floats of 64 bits have all integers.
const WHOLE: i64 = 1 << 53;

/// The column of these values, if each of them becomes the same as a [parameter](super::parameter) that is assigned to a column of the type; `None` if
/// that is not sure, or an error.
pub(crate) fn exact(values: &[Bound<'_, PyAny>], to: &DataType) -> Option<ArrayRef> {
    let are_exact = values.iter().all(|value| value.is_none() || is_exact(value, to));
    are_exact.then(|| build(values, to).ok()).flatten()
}

fn is_exact(value: &Bound<'_, PyAny>, to: &DataType) -> bool {
    if let Ok(text) = value.cast_exact::<PyString>() {
        let is_read = !to.is_nested() && !to.is_binary();
        // Spaces around a number are not read everywhere.
        return to.is_string() || is_read && text.to_str().is_ok_and(|text| text.trim() == text);
    }
    let is_int = || value.is_exact_instance_of::<PyInt>();
    match to {
        DataType::Boolean => value.is_exact_instance_of::<PyBool>(),
        to if to.is_integer() => is_int(),
        DataType::Float64 if is_int() => {
            value.extract::<i64>().is_ok_and(|value| (-WHOLE..=WHOLE).contains(&value))
        }
        DataType::Float64 | DataType::Float32 => value.is_exact_instance_of::<PyFloat>(),
        DataType::Decimal128(..) if is_int() => value.extract::<i64>().is_ok(),
        DataType::Decimal128(..) => is_decimal(value),
        DataType::Date32 => value.is_exact_instance_of::<PyDate>(),
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            value.is_exact_instance_of::<PyDateTime>()
                && is_aware(value).is_ok_and(|aware| aware == zone.is_some())
        }
        DataType::Time64(_) => {
            let zone = || value.getattr(intern!(value.py(), "tzinfo"));
            value.is_exact_instance_of::<PyTime>() && zone().is_ok_and(|zone| zone.is_none())
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => value.is_exact_instance_of::<PyDelta>(),
        to if to.is_binary() => value.is_exact_instance_of::<PyBytes>(),
        _ => false,
    }
}

/// Whether it is a `Decimal` that a DECIMAL holds.
fn is_decimal(value: &Bound<'_, PyAny>) -> bool {
    let is_one = decimal(value.py()).is_ok_and(|class| value.get_type().is(class));
    is_one
        && Digits::of(value).is_ok_and(|digits| {
            let (before, behind) = digits.places();
            before.saturating_add(behind) <= DIGITS
        })
}
