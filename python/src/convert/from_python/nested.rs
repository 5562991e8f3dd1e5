//! Lists, structs and maps.
//!
//! The values within are collected into columns of their own, which are made like any other. A fault in one of these names its row, and the
//! offsets tell which row that is in.

use std::sync::Arc;

use alluvium::arrow::array::{
    Array, ArrayRef, FixedSizeListArray, GenericListArray, MapArray, NullBufferBuilder,
    OffsetSizeTrait, StructArray,
};
use alluvium::arrow::buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use alluvium::arrow::datatypes::{DataType, Field, FieldRef, Fields};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use super::build;
use super::cells::{Cell, cell};
use super::containers::{dict, pairs, row as elements, sequence};
use crate::convert::fault::{Fault, Unfit, shown};

/// A column of lists.
pub(super) fn lists<O: OffsetSizeTrait>(
    values: &[Bound<'_, PyAny>],
    item: &FieldRef,
    to: &DataType,
) -> Result<ArrayRef, Fault> {
    let mut items = Vec::new();
    let mut offsets = Offsets::<O>::with_capacity(values.len());
    for (row, value) in values.iter().enumerate() {
        let list = filled(value, sequence).map_err(|unfit| unfit.of(row, value, to))?;
        let given = list.is_some();
        items.extend(list.into_iter().flatten());
        offsets.push(items.len(), given, to)?;
    }
    let column = build(&items, item.data_type()).map_err(|fault| offsets.within(fault))?;
    allowed(item, &column, None).map_err(|fault| offsets.within(fault))?;
    let (offsets, nulls) = offsets.finish();
    Ok(Arc::new(GenericListArray::<O>::try_new(item.clone(), offsets, column, nulls)?))
}

/// A column of lists that have all the same size.
pub(super) fn fixed_lists(
    values: &[Bound<'_, PyAny>],
    item: &FieldRef,
    size: i32,
    to: &DataType,
) -> Result<ArrayRef, Fault> {
    let each = usize::try_from(size).unwrap_or(0);
    let mut items = Vec::with_capacity(values.len().saturating_mul(each));
    let mut nulls = NullBufferBuilder::new(values.len());
    for (row, value) in values.iter().enumerate() {
        let list = filled(value, sequence).map_err(|unfit| unfit.of(row, value, to))?;
        nulls.append(list.is_some());
        match list {
            Some(list) if list.len() == each => items.extend(list),
            Some(list) => {
                let reason = format!("it has {} elements, and not {each}", list.len());
                return Err(Unfit::Because(reason.into()).of(row, value, to));
            }
            None => items.extend((0..each).map(|_| value.py().None().into_bound(value.py()))),
        }
    }
    let nulls = nulls.finish();
    let within = |fault: Fault| fault.within(|place| place / each.max(1));
    let column = build(&items, item.data_type()).map_err(within)?;
    let within_nulls = nulls.as_ref().map(|nulls| nulls.expand(each));
    allowed(item, &column, within_nulls.as_ref()).map_err(within)?;
    let length = values.len();
    let lists = FixedSizeListArray::try_new_with_length(item.clone(), size, column, nulls, length)?;
    Ok(Arc::new(lists))
}

/// A column of structs: of dicts, by names, and of tuples and lists, by places.
pub(super) fn structs(
    values: &[Bound<'_, PyAny>],
    fields: &Fields,
    to: &DataType,
) -> Result<ArrayRef, Fault> {
    let Some(first) = values.first() else { return build(values, to) };
    let py = first.py();
    let none = py.None().into_bound(py);
    let names: Vec<_> = fields.iter().map(|field| PyString::new(py, field.name())).collect();
    let mut columns: Vec<Vec<_>> =
        fields.iter().map(|_| Vec::with_capacity(values.len())).collect();
    let mut nulls = NullBufferBuilder::new(values.len());
    for (row, value) in values.iter().enumerate() {
        let parts = filled(value, |value| parts(value, &names))
            .map_err(|unfit| unfit.of(row, value, to))?;
        nulls.append(parts.is_some());
        match parts {
            Some(parts) => {
                columns.iter_mut().zip(parts).for_each(|(column, part)| column.push(part))
            }
            None => columns.iter_mut().for_each(|column| column.push(none.clone())),
        }
    }
    let nulls = nulls.finish();
    let made = fields.iter().zip(&columns).map(|(field, values)| {
        let column = build(values, field.data_type());
        let column = column.and_then(|column| {
            allowed(field, &column, nulls.as_ref())?;
            Ok(column)
        });
        column.map_err(|fault| fault.in_field(field.name()))
    });
    let made = made.collect::<Result<Vec<_>, Fault>>()?;
    let structs = StructArray::try_new_with_length(fields.clone(), made, nulls, values.len())?;
    Ok(Arc::new(structs))
}

/// What a struct of these names has of a value, a name after the other. A dict lacks what is NULL.
fn parts<'py>(
    value: &Bound<'py, PyAny>,
    names: &[Bound<'py, PyString>],
) -> Result<Vec<Bound<'py, PyAny>>, Unfit> {
    let Some(dict) = dict(value)? else {
        let parts = elements(value)?;
        return match parts.len() == names.len() {
            true => Ok(parts),
            false => {
                let reason = format!("it has {} elements, and not {}", parts.len(), names.len());
                Err(Unfit::Because(reason.into()))
            }
        };
    };
    let mut parts = Vec::with_capacity(names.len());
    let mut found = 0;
    for name in names {
        let part = dict.get_item(name)?;
        found += usize::from(part.is_some());
        parts.push(part.unwrap_or_else(|| dict.py().None().into_bound(dict.py())));
    }
    if found < dict.len() { Err(unknown_key(&dict, names)?) } else { Ok(parts) }
}

/// That a dict has a key that is the name of no field.
fn unknown_key(dict: &Bound<'_, PyDict>, names: &[Bound<'_, PyString>]) -> PyResult<Unfit> {
    for key in dict.keys() {
        let mut known = false;
        for name in names {
            known |= key.eq(name)?;
        }
        if !known {
            let key = shown(&key);
            return Ok(Unfit::Because(format!("it has no field {key}").into()));
        }
    }
    Ok(Unfit::because("two of its fields have one name"))
}

/// A column of maps: of dicts, or of lists of pairs.
pub(super) fn maps(
    values: &[Bound<'_, PyAny>],
    entries: &FieldRef,
    sorted: bool,
    to: &DataType,
) -> Result<ArrayRef, Fault> {
    let DataType::Struct(fields) = entries.data_type() else {
        return Err(Fault::Column(format!("there is no type {to}")));
    };
    let [key, value_field] = &fields[..] else {
        return Err(Fault::Column(format!("there is no type {to}")));
    };
    let (mut keys, mut mapped) = (Vec::new(), Vec::new());
    let mut offsets = Offsets::<i32>::with_capacity(values.len());
    for (row, value) in values.iter().enumerate() {
        let entry = filled(value, pairs).map_err(|unfit| unfit.of(row, value, to))?;
        let given = entry.is_some();
        for (key, value) in entry.into_iter().flatten() {
            keys.push(key);
            mapped.push(value);
        }
        offsets.push(keys.len(), given, to)?;
    }
    let part = |values: &[Bound<'_, PyAny>], field: &FieldRef| {
        let column = build(values, field.data_type())?;
        allowed(field, &column, None)?;
        Ok(column)
    };
    let keys = part(&keys, key).map_err(|fault| offsets.within(fault))?;
    let mapped = part(&mapped, value_field).map_err(|fault| offsets.within(fault))?;
    let entry = StructArray::try_new(fields.clone(), vec![keys, mapped], None)?;
    let (offsets, nulls) = offsets.finish();
    Ok(Arc::new(MapArray::try_new(entries.clone(), offsets, entry, nulls, sorted)?))
}

/// What a value has in it; `None` if it is NULL.
fn filled<'py, V>(
    value: &Bound<'py, PyAny>,
    read: impl Fn(&Bound<'py, PyAny>) -> Result<V, Unfit>,
) -> Result<Option<V>, Unfit> {
    match cell(value, read)? {
        Cell::Null => Ok(None),
        Cell::Value(parts) => Ok(Some(parts)),
        Cell::Text(_) => Err(Unfit::Unknown),
    }
}

/// Fails at a NULL that the field does not allow; NULLs that are within one do not count.
fn allowed(field: &Field, column: &ArrayRef, outer: Option<&NullBuffer>) -> Result<(), Fault> {
    if field.is_nullable() || column.null_count() == 0 {
        return Ok(());
    }
    let wrong =
        |row: &usize| column.is_null(*row) && outer.is_none_or(|outer| outer.is_valid(*row));
    match (0..column.len()).find(wrong) {
        Some(row) => {
            Err(Fault::value(row, format!("None is not allowed for \"{}\"", field.name())))
        }
        None => Ok(()),
    }
}

/// Where the elements of each row end, and which rows are NULL.
struct Offsets<O> {
    ends: Vec<O>,
    nulls: NullBufferBuilder,
}

impl<O: OffsetSizeTrait> Offsets<O> {
    fn with_capacity(rows: usize) -> Self {
        let mut ends = Vec::with_capacity(rows + 1);
        ends.push(O::default());
        Self { ends, nulls: NullBufferBuilder::new(rows) }
    }

    fn push(&mut self, end: usize, given: bool, to: &DataType) -> Result<(), Fault> {
        self.ends.push(O::from_usize(end).ok_or_else(|| Fault::too_many(to))?);
        self.nulls.append(given);
        Ok(())
    }

    /// The fault of the row that an element is in.
    fn within(&self, fault: Fault) -> Fault {
        let row = |element| self.ends.partition_point(|end| end.as_usize() <= element) - 1;
        fault.within(row)
    }

    fn finish(mut self) -> (OffsetBuffer<O>, Option<NullBuffer>) {
        (OffsetBuffer::new(ScalarBuffer::from(self.ends)), self.nulls.finish())
    }
}
