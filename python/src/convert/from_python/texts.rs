//! Texts and bytes.

use std::sync::Arc;

use alluvium::arrow::array::{
    ArrayRef, BinaryViewBuilder, FixedSizeBinaryBuilder, GenericBinaryBuilder,
    GenericStringBuilder, OffsetSizeTrait, StringViewBuilder,
};
use alluvium::arrow::datatypes::DataType;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyMemoryView, PyString};

use super::cells::{Cell, cell};
use crate::convert::fault::{Fault, Unfit};
use crate::convert::python::is_uuid;

/// A text in UTF-8.
pub(super) fn text<'a>(value: &'a Bound<'_, PyString>) -> Result<&'a str, Unfit> {
    value.to_str().map_err(|_| Unfit::because("it has half of a surrogate pair"))
}

/// A column of texts.
pub(super) fn texts(values: &[Bound<'_, PyAny>], to: &DataType) -> Result<ArrayRef, Fault> {
    match to {
        DataType::LargeUtf8 => offset_texts::<i64>(values, to),
        DataType::Utf8View => {
            let mut builder = StringViewBuilder::with_capacity(values.len());
            each_text(values, to, |value| match value {
                Some(value) => Ok(builder.try_append_value(value)?),
                None => {
                    builder.append_null();
                    Ok(())
                }
            })?;
            Ok(Arc::new(builder.finish()))
        }
        _ => offset_texts::<i32>(values, to),
    }
}

fn offset_texts<O: OffsetSizeTrait>(
    values: &[Bound<'_, PyAny>],
    to: &DataType,
) -> Result<ArrayRef, Fault> {
    let mut builder = GenericStringBuilder::<O>::with_capacity(values.len(), values.len() * 8);
    let mut bytes = 0;
    each_text(values, to, |value| {
        bytes += value.map_or(0, str::len);
        O::from_usize(bytes).ok_or_else(|| Fault::too_many(to))?;
        builder.append_option(value);
        Ok(())
    })?;
    Ok(Arc::new(builder.finish()))
}

/// Gives each text, and `None` for a NULL.
fn each_text(
    values: &[Bound<'_, PyAny>],
    to: &DataType,
    mut take: impl FnMut(Option<&str>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    for (row, value) in values.iter().enumerate() {
        let fault = |unfit: Unfit| unfit.of(row, value, to);
        if let Ok(value) = value.cast_exact::<PyString>() {
            take(Some(text(value).map_err(fault)?))?;
            continue;
        }
        match cell(value, uuid).map_err(fault)? {
            Cell::Null => take(None)?,
            Cell::Text(value) | Cell::Value(value) => {
                take(Some(text(&value).map_err(fault)?))?;
            }
        }
    }
    Ok(())
}

/// The text of a `uuid.UUID`.
fn uuid<'py>(value: &Bound<'py, PyAny>) -> Result<Bound<'py, PyString>, Unfit> {
    match is_uuid(value)? {
        true => Ok(value.str()?),
        false => Err(Unfit::Unknown),
    }
}

/// A column of bytes.
pub(super) fn bytes(values: &[Bound<'_, PyAny>], to: &DataType) -> Result<ArrayRef, Fault> {
    match to {
        DataType::LargeBinary => offset_bytes::<i64>(values, to),
        DataType::BinaryView => {
            let mut builder = BinaryViewBuilder::with_capacity(values.len());
            each_bytes(values, to, |_, value| match value {
                Some(value) => Ok(builder.try_append_value(value)?),
                None => {
                    builder.append_null();
                    Ok(())
                }
            })?;
            Ok(Arc::new(builder.finish()))
        }
        DataType::FixedSizeBinary(size) => {
            let mut builder = FixedSizeBinaryBuilder::with_capacity(values.len(), *size);
            each_bytes(values, to, |row, value| match value {
                Some(value) => builder.append_value(value).map_err(|_| {
                    let reason = format!("it has {} bytes, and not {size}", value.len());
                    Unfit::Because(reason.into()).of(row, &values[row], to)
                }),
                None => {
                    builder.append_null();
                    Ok(())
                }
            })?;
            Ok(Arc::new(builder.finish()))
        }
        _ => offset_bytes::<i32>(values, to),
    }
}

fn offset_bytes<O: OffsetSizeTrait>(
    values: &[Bound<'_, PyAny>],
    to: &DataType,
) -> Result<ArrayRef, Fault> {
    let mut builder = GenericBinaryBuilder::<O>::with_capacity(values.len(), values.len() * 8);
    let mut bytes = 0;
    each_bytes(values, to, |_, value| {
        bytes += value.map_or(0, <[u8]>::len);
        O::from_usize(bytes).ok_or_else(|| Fault::too_many(to))?;
        builder.append_option(value);
        Ok(())
    })?;
    Ok(Arc::new(builder.finish()))
}

/// Gives the row and bytes of each value, and `None` for a NULL.
fn each_bytes(
    values: &[Bound<'_, PyAny>],
    to: &DataType,
    mut take: impl FnMut(usize, Option<&[u8]>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    for (row, value) in values.iter().enumerate() {
        match cell(value, as_bytes).map_err(|unfit| unfit.of(row, value, to))? {
            Cell::Null => take(row, None)?,
            Cell::Value(bytes) => take(row, Some(bytes.as_bytes()))?,
            Cell::Text(_) => {
                let reason = "a text becomes bytes with .encode()";
                return Err(Unfit::because(reason).of(row, value, to));
            }
        }
    }
    Ok(())
}

/// The bytes of what has bytes, as they are now.
fn as_bytes<'py>(value: &Bound<'py, PyAny>) -> Result<Bound<'py, PyBytes>, Unfit> {
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(bytes.clone());
    }
    let py = value.py();
    if let Ok(bytes) = value.cast::<PyByteArray>() {
        return Ok(PyBytes::new(py, &bytes.to_vec()));
    }
    match value.is_instance_of::<PyMemoryView>() {
        true => {
            let bytes = value.call_method0(intern!(py, "tobytes"))?;
            Ok(bytes.cast_into::<PyBytes>().map_err(PyErr::from)?)
        }
        false => Err(Unfit::Unknown),
    }
}
