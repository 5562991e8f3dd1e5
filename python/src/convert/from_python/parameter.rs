//! Values of parameters.

use alluvium::Value;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyString};

use super::build;
use super::infer::data_type;
use crate::convert::fault::Fault;
use crate::error;

/// The value of a parameter, of the type that [`infer`](super::infer) finds for it. `None` is NULL, of the type that its place has.
///
/// # Errors
///
/// Raises `DataError` if no type is for the value, and what code of its class raises.
pub(crate) fn parameter(value: &Bound<'_, PyAny>) -> PyResult<Value> {
    if value.is_none() {
        return Ok(Value::NULL);
    }
    if let Ok(text) = value.cast_exact::<PyString>() {
        if let Ok(text) = text.to_str() {
            return Ok(text.into());
        }
    } else if value.is_exact_instance_of::<PyInt>() {
        if let Ok(number) = value.extract::<i64>() {
            return Ok(number.into());
        }
    } else if value.is_exact_instance_of::<PyFloat>() {
        return Ok(value.extract::<f64>()?.into());
    } else if let Ok(value) = value.cast_exact::<PyBool>() {
        return Ok(value.is_true().into());
    } else if let Ok(bytes) = value.cast_exact::<PyBytes>() {
        return Ok(bytes.as_bytes().into());
    }
    other(value)
}

/// A value of any type.
fn other(value: &Bound<'_, PyAny>) -> PyResult<Value> {
    let py = value.py();
    let values = std::slice::from_ref(value);
    let column = data_type(values).and_then(|data_type| build(values, &data_type));
    let column = column.map_err(|fault: Fault| fault.of_parameter(py))?;
    match column.is_null(0) {
        true => Ok(Value::NULL),
        false => {
            Value::from_array(&column, 0).map_err(|error| error::raised(py, &error.into(), None))
        }
    }
}
