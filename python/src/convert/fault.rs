//! Values that do not fit.

use std::borrow::Cow;

use alluvium::arrow::datatypes::DataType;
use alluvium::arrow::error::ArrowError;
use pyo3::prelude::*;

use super::sql_type;
use crate::error;

/// Characters of a value that an error shows.
const SHOWN: usize = 60;

/// Why a value cannot be of a type.
#[derive(Debug)]
pub(super) enum Unfit {
    /// It is of a class that the type knows nothing of.
    Unknown,
    /// It is a number or a time that the type cannot hold.
    Beyond,
    /// Something else, in words.
    Because(Cow<'static, str>),
    /// Python code of its class failed.
    Python(PyErr),
}

impl From<PyErr> for Unfit {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

impl Unfit {
    pub(super) fn because(reason: &'static str) -> Self {
        Self::Because(reason.into())
    }

    /// The fault of a value in this row.
    pub(super) fn of(self, row: usize, value: &Bound<'_, PyAny>, data_type: &DataType) -> Fault {
        let value = shown(value);
        let wanted = sql_type(data_type);
        let message = match self {
            Self::Unknown => format!("{value} is no {wanted}"),
            Self::Beyond => format!("{value} is beyond the range of {wanted}"),
            Self::Because(reason) => format!("{value} is no {wanted}: {reason}"),
            Self::Python(error) => return Fault::Python(error),
        };
        Fault::value(row, message)
    }
}

/// Why no column can be made of values.
#[derive(Debug)]
pub(super) enum Fault {
    /// A value is wrong: that of a row, or one within it at a path of names of fields.
    Value { row: usize, path: String, message: String },
    /// The type is, or the sum of the values.
    Column(String),
    /// Python code of a value failed.
    Python(PyErr),
}

impl From<PyErr> for Fault {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

impl From<ArrowError> for Fault {
    fn from(error: ArrowError) -> Self {
        Self::Column(error.to_string())
    }
}

impl Fault {
    pub(super) fn value(row: usize, message: String) -> Self {
        Self::Value { row, path: String::new(), message }
    }

    /// More values than offsets of 32 bits can count.
    pub(super) fn too_many(data_type: &DataType) -> Self {
        let message =
            format!("the values are more than one column of {} holds", sql_type(data_type));
        Self::Column(message)
    }

    /// The fault of the row that a row of a nested column is in.
    pub(super) fn within(self, outer: impl FnOnce(usize) -> usize) -> Self {
        match self {
            Self::Value { row, path, message } => Self::Value { row: outer(row), path, message },
            other => other,
        }
    }

    /// The fault of a struct with this field.
    pub(super) fn in_field(self, name: &str) -> Self {
        match self {
            Self::Value { row, path, message } => {
                Self::Value { row, path: format!(".{name}{path}"), message }
            }
            other => other,
        }
    }

    /// The exception, about a column of this name.
    pub(super) fn of_column(self, py: Python<'_>, column: &str, first: usize) -> PyErr {
        match self {
            Self::Value { row, path, message } => {
                let row = first + row;
                error::data(py, &format!("column \"{column}{path}\", row {row}: {message}"))
            }
            Self::Column(message) => error::data(py, &format!("column \"{column}\": {message}")),
            Self::Python(error) => error,
        }
    }

    /// The exception, about a parameter.
    pub(super) fn of_parameter(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Value { path, message, .. } => match path.strip_prefix('.') {
                Some(path) => error::data(py, &format!("parameter, \"{path}\" in it: {message}")),
                None => error::data(py, &format!("parameter: {message}")),
            },
            Self::Column(message) => error::data(py, &format!("parameter: {message}")),
            Self::Python(error) => error,
        }
    }
}

/// A value as errors show it.
pub(super) fn shown(value: &Bound<'_, PyAny>) -> String {
    let whole = match value.repr() {
        Ok(text) => text.to_string_lossy().into_owned(),
        Err(_) => match value.get_type().name() {
            Ok(class) => format!("a value of {class}"),
            Err(_) => "a value".to_owned(),
        },
    };
    match whole.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &whole[..end]),
        None => whole,
    }
}
