//! Lists, structs and maps, and columns that keep each value once.

use alluvium::arrow::array::{Array, AsArray, OffsetSizeTrait, RunArray};
use alluvium::arrow::datatypes::{
    ArrowNativeType, DataType, Int16Type, Int32Type, Int64Type, RunEndIndexType,
};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

use super::{Reader, nullable};
use crate::convert::sql_type;
use crate::error;

/// The reader of a column of a type that others are within.
pub(super) fn reader<'a, 'py: 'a>(
    py: Python<'py>,
    array: &'a dyn Array,
) -> PyResult<Reader<'a, 'py>> {
    match array.data_type() {
        DataType::List(_) => lists::<i32>(py, array),
        DataType::LargeList(_) => lists::<i64>(py, array),
        DataType::ListView(_) => list_views::<i32>(py, array),
        DataType::LargeListView(_) => list_views::<i64>(py, array),
        DataType::FixedSizeList(_, size) => {
            let size = usize::try_from(*size).unwrap_or(0);
            let values = super::reader(py, array.as_fixed_size_list().values())?;
            Ok(nullable(py, array, move |row| list(py, &values, row * size, size)))
        }
        DataType::Struct(_) => structs(py, array),
        DataType::Map(..) => maps(py, array),
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let values = super::reader(py, dictionary.values())?;
            let keys = dictionary.normalized_keys();
            Ok(nullable(py, array, move |row| values(keys[row])))
        }
        DataType::RunEndEncoded(ends, _) => match ends.data_type() {
            DataType::Int16 => runs::<Int16Type>(py, array),
            DataType::Int32 => runs::<Int32Type>(py, array),
            _ => runs::<Int64Type>(py, array),
        },
        other => {
            let message = format!("Python has no values for {}", sql_type(other));
            Err(error::data(py, &message))
        }
    }
}

/// A list of so many values, from this one on.
fn list<'py>(
    py: Python<'py>,
    values: &Reader<'_, 'py>,
    from: usize,
    count: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let elements = (from..from + count).map(values).collect::<PyResult<Vec<_>>>()?;
    Ok(PyList::new(py, elements)?.into_any())
}

fn lists<'a, 'py: 'a, O: OffsetSizeTrait>(
    py: Python<'py>,
    array: &'a dyn Array,
) -> PyResult<Reader<'a, 'py>> {
    let lists = array.as_list::<O>();
    let values = super::reader(py, lists.values())?;
    let offsets = lists.value_offsets();
    Ok(nullable(py, array, move |row| {
        let (from, to) = (offsets[row].as_usize(), offsets[row + 1].as_usize());
        list(py, &values, from, to - from)
    }))
}

fn list_views<'a, 'py: 'a, O: OffsetSizeTrait>(
    py: Python<'py>,
    array: &'a dyn Array,
) -> PyResult<Reader<'a, 'py>> {
    let lists = array.as_list_view::<O>();
    let values = super::reader(py, lists.values())?;
    Ok(nullable(py, array, move |row| {
        let (from, size) = (lists.value_offset(row).as_usize(), lists.value_size(row).as_usize());
        list(py, &values, from, size)
    }))
}

fn structs<'a, 'py: 'a>(py: Python<'py>, array: &'a dyn Array) -> PyResult<Reader<'a, 'py>> {
    let structs = array.as_struct();
    let fields =
        structs.fields().iter().zip(structs.columns()).map(|(field, column)| {
            Ok((PyString::new(py, field.name()), super::reader(py, column)?))
        });
    let fields = fields.collect::<PyResult<Vec<_>>>()?;
    Ok(nullable(py, array, move |row| {
        let dict = PyDict::new(py);
        for (name, value) in &fields {
            dict.set_item(name, value(row)?)?;
        }
        Ok(dict.into_any())
    }))
}

/// Dicts, unless the keys are lists or dicts, which cannot be keys: lists of pairs then.
fn maps<'a, 'py: 'a>(py: Python<'py>, array: &'a dyn Array) -> PyResult<Reader<'a, 'py>> {
    let maps = array.as_map();
    let keys = super::reader(py, maps.keys())?;
    let values = super::reader(py, maps.values())?;
    let offsets = maps.value_offsets();
    let hashable = !maps.key_type().is_nested();
    Ok(nullable(py, array, move |row| {
        let entries = offsets[row].as_usize()..offsets[row + 1].as_usize();
        if hashable {
            let dict = PyDict::new(py);
            for entry in entries {
                dict.set_item(keys(entry)?, values(entry)?)?;
            }
            return Ok(dict.into_any());
        }
        let pair = |entry| PyTuple::new(py, [keys(entry)?, values(entry)?]);
        let pairs = entries.map(pair).collect::<PyResult<Vec<_>>>()?;
        Ok(PyList::new(py, pairs)?.into_any())
    }))
}

fn runs<'a, 'py: 'a, R: RunEndIndexType>(
    py: Python<'py>,
    array: &'a dyn Array,
) -> PyResult<Reader<'a, 'py>> {
    let Some(runs) = array.as_any().downcast_ref::<RunArray<R>>() else {
        return Err(error::internal(py, "run ends are of another type"));
    };
    let values = super::reader(py, runs.values())?;
    Ok(Box::new(move |row| values(runs.get_physical_index(row))))
}
