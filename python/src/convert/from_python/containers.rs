//! Python's containers.

use pyo3::prelude::*;
use pyo3::types::{
    PyByteArray, PyBytes, PyDict, PyFrozenSet, PyList, PyMapping, PyMemoryView, PySet, PyString,
    PyTuple,
};

use crate::convert::fault::Unfit;

/// The elements of a list, a tuple, or what else has a length and an order, such as an array of numpy.
pub(super) fn sequence<'py>(value: &Bound<'py, PyAny>) -> Result<Vec<Bound<'py, PyAny>>, Unfit> {
    if let Ok(list) = value.cast::<PyList>() {
        return Ok(list.iter().collect());
    }
    if let Ok(tuple) = value.cast::<PyTuple>() {
        return Ok(tuple.iter().collect());
    }
    if !is_sequence(value) {
        return Err(Unfit::Unknown);
    }
    Ok(value.try_iter()?.collect::<PyResult<_>>()?)
}

/// Whether it has elements in an order, and is no text, bytes or mapping.
pub(super) fn is_sequence(value: &Bound<'_, PyAny>) -> bool {
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        return true;
    }
    let other = value.is_instance_of::<PyString>()
        || value.is_instance_of::<PyBytes>()
        || value.is_instance_of::<PyByteArray>()
        || value.is_instance_of::<PyMemoryView>()
        || value.is_instance_of::<PySet>()
        || value.is_instance_of::<PyFrozenSet>();
    !other && value.len().is_ok() && value.cast::<PyMapping>().is_err() && value.try_iter().is_ok()
}

/// The elements of a tuple or a list.
pub(super) fn row<'py>(value: &Bound<'py, PyAny>) -> Result<Vec<Bound<'py, PyAny>>, Unfit> {
    if let Ok(tuple) = value.cast::<PyTuple>() {
        Ok(tuple.iter().collect())
    } else if let Ok(list) = value.cast::<PyList>() {
        Ok(list.iter().collect())
    } else {
        Err(Unfit::Unknown)
    }
}

/// A dict, or one of what else is a mapping.
pub(super) fn dict<'py>(value: &Bound<'py, PyAny>) -> Result<Option<Bound<'py, PyDict>>, Unfit> {
    if let Ok(dict) = value.cast::<PyDict>() {
        return Ok(Some(dict.clone()));
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        return Ok(None);
    }
    let Ok(mapping) = value.cast::<PyMapping>() else { return Ok(None) };
    let dict = value.py().get_type::<PyDict>().call1((mapping,))?;
    Ok(Some(dict.cast_into::<PyDict>().map_err(PyErr::from)?))
}

/// A key and its value.
pub(super) type Pair<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>);

/// The keys and values of a dict, or of a list of pairs.
pub(super) fn pairs<'py>(value: &Bound<'py, PyAny>) -> Result<Vec<Pair<'py>>, Unfit> {
    if let Some(dict) = dict(value)? {
        return Ok(dict.iter().collect());
    }
    let pair = |pair: Bound<'py, PyAny>| match row(&pair).map(<[_; 2]>::try_from) {
        Ok(Ok([key, value])) => Ok((key, value)),
        _ => Err(Unfit::because("one of its elements is no pair of a key and a value")),
    };
    sequence(value)?.into_iter().map(pair).collect()
}
