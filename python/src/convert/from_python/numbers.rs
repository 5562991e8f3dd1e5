//! Integers and floats.

use alluvium::arrow::datatypes::{ArrowPrimitiveType, Float16Type};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt};

use super::decimals::{self, Digits};
use crate::convert::fault::Unfit;
use crate::convert::python::is_decimal;

/// A float of 16 bits.
type Half = <Float16Type as ArrowPrimitiveType>::Native;

/// 2 to the power of 127, as a float: it is one exactly.
const TWO_TO_127: f64 = (1_u128 << 127) as f64;

/// An integer: a number that has no fraction. A `bool` is none.
pub(super) fn integer<N: TryFrom<i128>>(value: &Bound<'_, PyAny>) -> Result<N, Unfit> {
    let whole = if value.is_exact_instance_of::<PyInt>() {
        whole(value)?
    } else if let Ok(float) = value.cast::<PyFloat>() {
        of_float(float.extract::<f64>()?)?
    } else if value.is_instance_of::<PyInt>() && !value.is_instance_of::<PyBool>() {
        whole(value)?
    } else if is_decimal(value)? {
        Digits::of(value)?.whole()?
    } else {
        return Err(Unfit::Unknown);
    };
    N::try_from(whole).map_err(|_| Unfit::Beyond)
}

/// The value of an `int`, if it is one of 64 bits, signed or not.
pub(super) fn whole(value: &Bound<'_, PyAny>) -> Result<i128, Unfit> {
    match value.extract::<i64>() {
        Ok(value) => Ok(value.into()),
        Err(_) => value.extract::<u64>().map(i128::from).map_err(|_| Unfit::Beyond),
    }
}

fn of_float(value: f64) -> Result<i128, Unfit> {
    if !value.is_finite() {
        Err(Unfit::because("it is not finite"))
    } else if value.fract() != 0.0 {
        Err(Unfit::because("it has a fraction"))
    } else if !(-TWO_TO_127..TWO_TO_127).contains(&value) {
        Err(Unfit::Beyond)
    } else {
        Ok(value as i128)
    }
}

/// A float of 64 bits: the one next to a number.
pub(super) fn double(value: &Bound<'_, PyAny>) -> Result<f64, Unfit> {
    if value.is_exact_instance_of::<PyFloat>() || value.is_exact_instance_of::<PyInt>() {
        return value.extract::<f64>().map_err(|_| Unfit::Beyond);
    }
    let is_number = value.is_instance_of::<PyFloat>()
        || value.is_instance_of::<PyInt>() && !value.is_instance_of::<PyBool>();
    if is_number {
        value.extract::<f64>().map_err(|_| Unfit::Beyond)
    } else if is_decimal(value)? {
        decimals::double(value)
    } else {
        Err(Unfit::Unknown)
    }
}

/// A float of 32 bits.
pub(super) fn single(value: &Bound<'_, PyAny>) -> Result<f32, Unfit> {
    let exact = double(value)?;
    let single = exact as f32;
    if single.is_infinite() && exact.is_finite() { Err(Unfit::Beyond) } else { Ok(single) }
}

/// A float of 16 bits.
pub(super) fn half(value: &Bound<'_, PyAny>) -> Result<Half, Unfit> {
    let exact = double(value)?;
    let half = Half::from_f64(exact);
    if half.is_infinite() && exact.is_finite() { Err(Unfit::Beyond) } else { Ok(half) }
}
