//! Booleans, numbers, texts and bytes.

use std::fmt::Display;

use alluvium::arrow::array::{Array, ArrowPrimitiveType, AsArray};
use alluvium::arrow::datatypes::{
    DataType, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, Float16Type,
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyString};

use super::{Reader, nullable};
use crate::convert::python::decimal;
use crate::convert::sql_type;
use crate::error;

/// The reader of a column of a plain type.
pub(super) fn reader<'a, 'py: 'a>(
    py: Python<'py>,
    array: &'a dyn Array,
) -> PyResult<Reader<'a, 'py>> {
    Ok(match array.data_type() {
        DataType::Null => Box::new(move |_| Ok(py.None().into_bound(py))),
        DataType::Boolean => {
            let values = array.as_boolean();
            nullable(py, array, move |row| {
                Ok(PyBool::new(py, values.value(row)).to_owned().into_any())
            })
        }
        DataType::Int8 => integers::<Int8Type>(py, array),
        DataType::Int16 => integers::<Int16Type>(py, array),
        DataType::Int32 => integers::<Int32Type>(py, array),
        DataType::Int64 => integers::<Int64Type>(py, array),
        DataType::UInt8 => integers::<UInt8Type>(py, array),
        DataType::UInt16 => integers::<UInt16Type>(py, array),
        DataType::UInt32 => integers::<UInt32Type>(py, array),
        DataType::UInt64 => integers::<UInt64Type>(py, array),
        DataType::Float16 => floats::<Float16Type>(py, array, |value| value.to_f64()),
        DataType::Float32 => floats::<Float32Type>(py, array, f64::from),
        DataType::Float64 => floats::<Float64Type>(py, array, |value| value),
        DataType::Decimal32(_, scale) => decimals::<Decimal32Type>(py, array, *scale)?,
        DataType::Decimal64(_, scale) => decimals::<Decimal64Type>(py, array, *scale)?,
        DataType::Decimal128(_, scale) => decimals::<Decimal128Type>(py, array, *scale)?,
        DataType::Decimal256(_, scale) => decimals::<Decimal256Type>(py, array, *scale)?,
        DataType::Utf8 => {
            let values = array.as_string::<i32>();
            texts(py, array, |row| values.value(row))
        }
        DataType::LargeUtf8 => {
            let values = array.as_string::<i64>();
            texts(py, array, |row| values.value(row))
        }
        DataType::Utf8View => {
            let values = array.as_string_view();
            texts(py, array, |row| values.value(row))
        }
        DataType::Binary => {
            let values = array.as_binary::<i32>();
            bytes(py, array, |row| values.value(row))
        }
        DataType::LargeBinary => {
            let values = array.as_binary::<i64>();
            bytes(py, array, |row| values.value(row))
        }
        DataType::BinaryView => {
            let values = array.as_binary_view();
            bytes(py, array, |row| values.value(row))
        }
        DataType::FixedSizeBinary(_) => {
            let values = array.as_fixed_size_binary();
            bytes(py, array, |row| values.value(row))
        }
        other => {
            let message = format!("Python has no values for {}", sql_type(other));
            return Err(error::data(py, &message));
        }
    })
}

fn integers<'a, 'py: 'a, T>(py: Python<'py>, array: &'a dyn Array) -> Reader<'a, 'py>
where
    T: ArrowPrimitiveType,
    i64: TryFrom<T::Native>,
    u64: TryFrom<T::Native>,
{
    let values = array.as_primitive::<T>();
    nullable(py, array, move |row| {
        let value = values.value(row);
        match i64::try_from(value) {
            Ok(value) => Ok(value.into_pyobject(py)?.into_any()),
            Err(_) => Ok(u64::try_from(value).unwrap_or(u64::MAX).into_pyobject(py)?.into_any()),
        }
    })
}

fn floats<'a, 'py: 'a, T: ArrowPrimitiveType>(
    py: Python<'py>,
    array: &'a dyn Array,
    double: impl Fn(T::Native) -> f64 + 'a,
) -> Reader<'a, 'py> {
    let values = array.as_primitive::<T>();
    nullable(py, array, move |row| Ok(PyFloat::new(py, double(values.value(row))).into_any()))
}

/// A text is exact, whatever the context of decimals in the thread is.
fn decimals<'a, 'py: 'a, T>(
    py: Python<'py>,
    array: &'a dyn Array,
    scale: i8,
) -> PyResult<Reader<'a, 'py>>
where
    T: ArrowPrimitiveType,
    T::Native: Display,
{
    let values = array.as_primitive::<T>();
    let class = decimal(py)?;
    Ok(nullable(py, array, move |row| {
        class.call1((format!("{}E{}", values.value(row), -i16::from(scale)),))
    }))
}

fn texts<'a, 'py: 'a>(
    py: Python<'py>,
    array: &'a dyn Array,
    text: impl Fn(usize) -> &'a str + 'a,
) -> Reader<'a, 'py> {
    nullable(py, array, move |row| Ok(PyString::new(py, text(row)).into_any()))
}

fn bytes<'a, 'py: 'a>(
    py: Python<'py>,
    array: &'a dyn Array,
    bytes: impl Fn(usize) -> &'a [u8] + 'a,
) -> Reader<'a, 'py> {
    nullable(py, array, move |row| Ok(PyBytes::new(py, bytes(row)).into_any()))
}
