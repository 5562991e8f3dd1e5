//! Kinds of values, from which types follow once all values are seen.

use std::sync::Arc;

use alluvium::arrow::datatypes::{DataType, Field, Fields, IntervalUnit, TimeUnit};
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDate, PyDelta, PyFloat, PyInt, PyMemoryView, PyString, PyTime,
};

use super::decimals::Digits;
use super::numbers::whole;
use super::times::{is_aware, is_datetime};
use crate::convert::fault::{Fault, Unfit};
use crate::convert::python::{is_decimal, is_missing, is_uuid};
use crate::convert::sql_type;

/// Digits of the largest DECIMAL.
const DIGITS: usize = 38;

/// What the values of a column are.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// All of them NULL.
    Null,
    /// Integers, the least and the greatest of them.
    Integers(i128, i128),
    /// Decimals, with so many digits before and behind the point.
    Decimals(usize, usize),
    /// Values of one type.
    Scalars(DataType),
    List(Box<Kind>),
    Struct(Vec<(String, Kind)>),
    /// Of its keys and its values.
    Map(Box<Kind>, Box<Kind>),
}

impl Kind {
    /// The kind of a value that is no container; none if no kind is known for it.
    pub(super) fn of_scalar(value: &Bound<'_, PyAny>) -> Result<Option<Self>, Unfit> {
        let data_type = if value.is_instance_of::<PyString>() {
            DataType::Utf8
        } else if value.is_instance_of::<PyBool>() {
            DataType::Boolean
        } else if value.is_instance_of::<PyInt>() {
            let number = integer(value)?;
            return Ok(Some(Self::Integers(number, number)));
        } else if value.is_instance_of::<PyFloat>() {
            DataType::Float64
        } else if value.is_instance_of::<PyBytes>()
            || value.is_instance_of::<PyByteArray>()
            || value.is_instance_of::<PyMemoryView>()
        {
            DataType::Binary
        } else if value.is_instance_of::<PyDate>() {
            if is_missing(value)? {
                return Ok(Some(Self::Null));
            }
            match is_datetime(value)? {
                false => DataType::Date32,
                true if is_aware(value)? => {
                    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
                }
                true => DataType::Timestamp(TimeUnit::Microsecond, None),
            }
        } else if value.is_instance_of::<PyTime>() {
            DataType::Time64(TimeUnit::Microsecond)
        } else if value.is_instance_of::<PyDelta>() {
            DataType::Interval(IntervalUnit::MonthDayNano)
        } else if is_decimal(value)? {
            let (before, behind) = Digits::of(value)?.places();
            return Ok(Some(Self::Decimals(before, behind)));
        } else if is_uuid(value)? {
            DataType::Utf8
        } else {
            return Ok(None);
        };
        Ok(Some(Self::Scalars(data_type)))
    }

    /// Widens it to one of both, or fails with their names.
    pub(super) fn widen(&mut self, other: Self) -> Result<(), [String; 2]> {
        const DOUBLE: DataType = DataType::Float64;
        let wide = match (&*self, &other) {
            (_, Self::Null) => return Ok(()),
            (Self::Null, _) => other,
            (Self::Integers(least, most), Self::Integers(one, _)) => {
                Self::Integers(*least.min(one), *most.max(one))
            }
            (Self::Decimals(before, behind), Self::Decimals(others, further)) => {
                Self::Decimals(*before.max(others), *behind.max(further))
            }
            (Self::Integers(least, most), Self::Decimals(before, behind))
            | (Self::Decimals(before, behind), Self::Integers(least, most)) => {
                Self::Decimals((*before).max(digits(*least)).max(digits(*most)), *behind)
            }
            (Self::Scalars(DOUBLE), Self::Integers(..)) => return Ok(()),
            (Self::Integers(..), Self::Scalars(DOUBLE)) => Self::Scalars(DOUBLE),
            (Self::Scalars(before), Self::Scalars(found)) if before == found => return Ok(()),
            _ => return Err([self.name(), other.name()]),
        };
        *self = wide;
        Ok(())
    }

    /// The kind of the elements, if it can be one of lists.
    pub(super) fn list(&mut self) -> Option<&mut Self> {
        if matches!(self, Self::Null) {
            *self = Self::List(Box::new(Self::Null));
        }
        match self {
            Self::List(of) => Some(of),
            _ => None,
        }
    }

    /// The names and kinds of the fields, if it can be one of dicts.
    pub(super) fn fields(&mut self) -> Option<&mut Vec<(String, Self)>> {
        if matches!(self, Self::Null) {
            *self = Self::Struct(Vec::new());
        }
        match self {
            Self::Struct(fields) => Some(fields),
            _ => None,
        }
    }

    /// The kinds of the keys and the values, if it can be one of dicts whose keys are no names.
    pub(super) fn entries(&mut self) -> Option<(&mut Self, &mut Self)> {
        // So far there may have been empty dicts.
        if matches!(self, Self::Null) || matches!(self, Self::Struct(fields) if fields.is_empty()) {
            *self = Self::Map(Box::new(Self::Null), Box::new(Self::Null));
        }
        match self {
            Self::Map(key, value) => Some((key, value)),
            _ => None,
        }
    }

    /// What errors call it.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Null => "NULL".to_owned(),
            Self::Integers(..) => sql_type(&DataType::Int64),
            Self::Decimals(..) => "DECIMAL".to_owned(),
            Self::Scalars(data_type) => sql_type(data_type),
            Self::List(_) => "lists".to_owned(),
            Self::Struct(_) => "STRUCT".to_owned(),
            Self::Map(..) => "MAP".to_owned(),
        }
    }

    /// The type of such values.
    pub(super) fn data_type(self) -> Result<DataType, Fault> {
        Ok(match self {
            Self::Null => DataType::Null,
            Self::Integers(least, most) if fits::<i64>(least) && fits::<i64>(most) => {
                DataType::Int64
            }
            Self::Integers(least, most) if fits::<u64>(least) && fits::<u64>(most) => {
                DataType::UInt64
            }
            Self::Integers(..) => DataType::Decimal128(DIGITS as u8, 0),
            Self::Decimals(before, behind) => {
                let digits = before.saturating_add(behind).max(1);
                if digits > DIGITS {
                    let message = format!(
                        "its values have {before} digits before the point and {behind} behind it: more than the {DIGITS} that a DECIMAL has"
                    );
                    return Err(Fault::Column(message));
                }
                DataType::Decimal128(digits as u8, behind as i8)
            }
            Self::Scalars(data_type) => data_type,
            Self::List(of) => {
                DataType::List(Arc::new(Field::new_list_field(of.data_type()?, true)))
            }
            Self::Struct(fields) => {
                let fields = fields
                    .into_iter()
                    .map(|(name, kind)| Ok(Field::new(name, kind.data_type()?, true)));
                DataType::Struct(fields.collect::<Result<Fields, Fault>>()?)
            }
            Self::Map(key, value) => {
                let key = Field::new("key", key.data_type()?, false);
                let value = Field::new("value", value.data_type()?, true);
                let entries = DataType::Struct(Fields::from(vec![key, value]));
                DataType::Map(Arc::new(Field::new("entries", entries, false)), false)
            }
        })
    }
}

/// The value of an `int`, if a DECIMAL holds it.
fn integer(value: &Bound<'_, PyAny>) -> Result<i128, Unfit> {
    match whole(value) {
        Ok(number) => Ok(number),
        Err(_) => Digits::of(&value.py().get_type::<PyInt>().call1((value,))?)?.whole(),
    }
}

fn fits<N: TryFrom<i128>>(number: i128) -> bool {
    N::try_from(number).is_ok()
}

fn digits(number: i128) -> usize {
    number.unsigned_abs().checked_ilog10().map_or(0, |log| log as usize + 1)
}
