//! Going over the values of a column.

use std::sync::Arc;

use alluvium::arrow::array::{ArrayRef, AsArray, BooleanArray, PrimitiveArray};
use alluvium::arrow::datatypes::{ArrowPrimitiveType, DataType};
use pyo3::prelude::*;
use pyo3::types::PyString;

use super::parsed::Texts;
use crate::convert::fault::{Fault, Unfit};
use crate::convert::python::{is_missing, unwrapped};

/// What a value is to a column.
pub(super) enum Cell<'py, V> {
    Null,
    Value(V),
    Text(Bound<'py, PyString>),
}

/// What a value is, to a column whose values this reads. The reader takes no texts: a class derived from `str` is one.
pub(super) fn cell<'py, V>(
    value: &Bound<'py, PyAny>,
    read: impl Fn(&Bound<'py, PyAny>) -> Result<V, Unfit>,
) -> Result<Cell<'py, V>, Unfit> {
    if value.is_none() {
        return Ok(Cell::Null);
    }
    match read(value) {
        Err(Unfit::Unknown) => {}
        read => return read.map(Cell::Value),
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Cell::Text(text.clone()));
    }
    if is_missing(value)? {
        return Ok(Cell::Null);
    }
    let Some(plain) = unwrapped(value)? else { return Err(Unfit::Unknown) };
    if plain.is_none() {
        return Ok(Cell::Null);
    }
    match plain.cast::<PyString>() {
        Ok(text) => Ok(Cell::Text(text.clone())),
        Err(_) => read(&plain).map(Cell::Value),
    }
}

/// The values of a column, and those that are still texts.
pub(super) struct Cells<V> {
    values: Vec<Option<V>>,
    texts: Texts,
}

/// Reads the values of a column.
pub(super) fn collect<'py, V>(
    values: &[Bound<'py, PyAny>],
    to: &DataType,
    read: impl Fn(&Bound<'py, PyAny>) -> Result<V, Unfit>,
) -> Result<Cells<V>, Fault> {
    let mut texts = Texts::new();
    let mut cells = Vec::with_capacity(values.len());
    for (row, value) in values.iter().enumerate() {
        let fault = |unfit: Unfit| unfit.of(row, value, to);
        cells.push(match cell(value, &read).map_err(fault)? {
            Cell::Null => None,
            Cell::Value(value) => Some(value),
            Cell::Text(text) => {
                texts.push(row, &text).map_err(fault)?;
                None
            }
        });
    }
    Ok(Cells { values: cells, texts })
}

impl Cells<bool> {
    /// The column of booleans.
    pub(super) fn booleans(
        mut self,
        values: &[Bound<'_, PyAny>],
        to: &DataType,
    ) -> Result<BooleanArray, Fault> {
        if let Some((rows, parsed)) = self.texts.parsed(values, to)? {
            let parsed = parsed.as_boolean();
            for (place, row) in rows.into_iter().enumerate() {
                self.values[row] = Some(parsed.value(place));
            }
        }
        Ok(self.values.into())
    }
}

impl<V> Cells<V> {
    /// Fails at the first text.
    pub(super) fn without_texts(
        self,
        values: &[Bound<'_, PyAny>],
        to: &DataType,
    ) -> Result<(), Fault> {
        match self.texts.first() {
            Some(row) => Err(Unfit::Unknown.of(row, &values[row], to)),
            None => Ok(()),
        }
    }
}

/// The column of a type whose values this reads.
pub(super) fn primitives<'py, T: ArrowPrimitiveType>(
    values: &[Bound<'py, PyAny>],
    to: &DataType,
    read: impl Fn(&Bound<'py, PyAny>) -> Result<T::Native, Unfit>,
) -> Result<ArrayRef, Fault> {
    let mut cells = collect(values, to, read)?;
    if let Some((rows, parsed)) = cells.texts.parsed(values, to)? {
        let parsed = parsed.as_primitive::<T>();
        for (place, row) in rows.into_iter().enumerate() {
            cells.values[row] = Some(parsed.value(place));
        }
    }
    let column = PrimitiveArray::<T>::from_iter(cells.values);
    Ok(Arc::new(column.with_data_type(to.clone())))
}
