//! Types of values whose type nothing says.

use alluvium::arrow::datatypes::DataType;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use super::containers::{dict, is_sequence, sequence};
use super::kinds::Kind;
use crate::convert::fault::{Fault, Unfit, shown};
use crate::convert::python::{is_missing, unwrapped};

/// Levels of lists and dicts within one another.
const DEEPEST: usize = 64;

/// The type of a column of these values.
///
/// Integers are BIGINT; UBIGINT if one is too large and none is negative; otherwise DECIMAL(38,0). Among floats they are DOUBLE, and among
/// decimals they are one, of as many digits as all need. A dict is a STRUCT, whose fields are the keys of all dicts in the order in which they
/// come, or a MAP if its keys are no texts; a list or a tuple is a list. Values that are all `None` are of no type, which is `Null`.
///
/// Fails if values are of types that have none in common, or of a class that no type is for.
pub(super) fn data_type(values: &[Bound<'_, PyAny>]) -> Result<DataType, Fault> {
    let mut kind = Kind::Null;
    let mut outer = Vec::new();
    for (row, value) in values.iter().enumerate() {
        add(&mut kind, value, &mut outer).map_err(|fault| fault.within(|_| row))?;
    }
    kind.data_type()
}

/// Widens the kind, so that it is one of the value too. `outer` are the containers that the value is in.
fn add<'py>(
    kind: &mut Kind,
    value: &Bound<'py, PyAny>,
    outer: &mut Vec<Bound<'py, PyAny>>,
) -> Result<(), Fault> {
    if value.is_none() {
        return Ok(());
    }
    let fault = |unfit: Unfit| unfit.of(0, value, &DataType::Decimal128(38, 0));
    if let Some(found) = Kind::of_scalar(value).map_err(fault)? {
        return kind.widen(found).map_err(|[before, found]| conflict(value, &before, &found));
    }
    if let Some(dict) = dict(value).map_err(fault)? {
        within(value, outer)?;
        add_dict(kind, &dict, outer)?;
    } else if is_sequence(value) {
        within(value, outer)?;
        let elements = sequence(value).map_err(fault)?;
        let Some(of) = kind.list() else {
            return Err(conflict(value, &kind.name(), "a list"));
        };
        elements.iter().try_for_each(|element| add(of, element, outer))?;
    } else {
        if is_missing(value)? {
            return Ok(());
        }
        let Some(plain) = unwrapped(value)? else {
            let class = value.get_type().name()?;
            let message =
                format!("{} is of class {class}, which no type of SQL is for", shown(value));
            return Err(Fault::value(0, message));
        };
        within(value, outer)?;
        add(kind, &plain, outer)?;
    }
    outer.pop();
    Ok(())
}

fn add_dict<'py>(
    kind: &mut Kind,
    dict: &Bound<'py, PyDict>,
    outer: &mut Vec<Bound<'py, PyAny>>,
) -> Result<(), Fault> {
    let is_map = match dict.iter().next() {
        Some((key, _)) => !key.is_instance_of::<PyString>(),
        None => matches!(kind, Kind::Map(..)),
    };
    if is_map {
        let Some((keys, values)) = kind.entries() else {
            return Err(conflict(dict, &kind.name(), "a MAP"));
        };
        return dict.iter().try_for_each(|(key, value)| {
            add(keys, &key, outer)?;
            add(values, &value, outer)
        });
    }
    let Some(fields) = kind.fields() else {
        return Err(conflict(dict, &kind.name(), "a STRUCT"));
    };
    let entries: Vec<_> = dict.iter().collect();
    for (place, (key, value)) in entries.into_iter().enumerate() {
        let key = match key.cast::<PyString>().map(|key| key.to_str()) {
            Ok(Ok(key)) => key,
            _ => {
                let message = format!("{} is the key of a dict, and no str", shown(&key));
                return Err(Fault::value(0, message));
            }
        };
        // Dicts of one shape have a key where the one before had it.
        let place = match fields.get(place) {
            Some((name, _)) if name == key => place,
            _ => fields.iter().position(|(name, _)| name == key).unwrap_or_else(|| {
                fields.push((key.to_owned(), Kind::Null));
                fields.len() - 1
            }),
        };
        add(&mut fields[place].1, &value, outer).map_err(|fault| fault.in_field(key))?;
    }
    Ok(())
}

/// Enters a container, unless it is within itself or too deep.
fn within<'py>(value: &Bound<'py, PyAny>, outer: &mut Vec<Bound<'py, PyAny>>) -> Result<(), Fault> {
    if outer.iter().any(|container| container.is(value)) {
        return Err(Fault::value(0, "a container is within itself".to_owned()));
    }
    if outer.len() == DEEPEST {
        let message = format!("it has more than {DEEPEST} levels of containers");
        return Err(Fault::value(0, message));
    }
    outer.push(value.clone());
    Ok(())
}

fn conflict(value: &Bound<'_, PyAny>, before: &str, found: &str) -> Fault {
    let message = format!("{} is {found}, and the values before it are {before}", shown(value));
    Fault::value(0, message)
}
