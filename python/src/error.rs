//! Exceptions.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyModule};

use crate::failure::Failure;

/// The exception of a failure. `sql` is the text that its position is in.
pub(crate) fn raised(py: Python<'_>, failure: &Failure, sql: Option<&str>) -> PyErr {
    let details = PyDict::new(py);
    let described = || {
        details.set_item("sqlstate", &failure.sqlstate)?;
        if let Some((line, column)) = failure.position {
            details.set_item("line", line)?;
            details.set_item("column", column)?;
            details.set_item("sql", sql)?;
        }
        PyResult::Ok(())
    };
    match described() {
        Ok(()) => new(py, failure.class, &failure.message, Some(&details)),
        Err(error) => error,
    }
}

/// The same exception with a hint, if it is about a relation that does not exist and there is a hint for its name.
pub(crate) fn hinted(
    py: Python<'_>,
    error: PyErr,
    sql: &str,
    hint: impl FnOnce(&str) -> Option<String>,
) -> PyErr {
    let value = error.value(py);
    let text = |name: &str| value.getattr(name).ok()?.extract::<String>().ok();
    if text("sqlstate").as_deref() != Some("42P01") {
        return error;
    }
    let message = text("message").unwrap_or_default();
    let name = message.split('"').nth(1).unwrap_or_default();
    match hint(name) {
        Some(hint) => reworded(py, error, sql, |message| format!("{message}; {hint}")),
        None => error,
    }
}

/// The same exception, of a statement that ran for this row of values.
pub(crate) fn of_row(py: Python<'_>, error: PyErr, sql: &str, row: usize) -> PyErr {
    let is_of_row = ERRORS_OF_CALLS.iter().all(|class| !is(py, &error, class));
    match is_of_row && is(py, &error, "Error") {
        true => reworded(py, error, sql, |message| format!("row {row}: {message}")),
        false => error,
    }
}

/// The errors that say nothing about a row.
const ERRORS_OF_CALLS: [&str; 3] = ["InterfaceError", "InterruptedError", "InternalError"];

/// Whether an exception is of one of the package's classes.
fn is(py: Python<'_>, error: &PyErr, class: &str) -> bool {
    let class = errors(py).and_then(|errors| errors.getattr(class));
    class.is_ok_and(|class| error.matches(py, class).unwrap_or(false))
}

/// The same exception of the package with another message, about this text.
fn reworded(py: Python<'_>, error: PyErr, sql: &str, reword: impl FnOnce(&str) -> String) -> PyErr {
    let value = error.value(py);
    let described = || {
        let details = PyDict::new(py);
        for name in ["sqlstate", "line", "column"] {
            details.set_item(name, value.getattr(name)?)?;
        }
        details.set_item("sql", sql)?;
        let message: String = value.getattr("message")?.extract()?;
        let made = value.get_type().call((reword(&message),), Some(&details))?;
        PyResult::Ok(PyErr::from_value(made))
    };
    match described() {
        Ok(reworded) => {
            reworded.set_cause(py, error.cause(py));
            reworded
        }
        Err(other) => other,
    }
}

/// The error of a statement that cannot be run here.
pub(crate) fn programming(py: Python<'_>, message: &str) -> PyErr {
    new(py, "ProgrammingError", message, None)
}

/// The error of a caller.
pub(crate) fn interface(py: Python<'_>, message: &str) -> PyErr {
    new(py, "InterfaceError", message, None)
}

/// The error of values that do not fit.
pub(crate) fn data(py: Python<'_>, message: &str) -> PyErr {
    new(py, "DataError", message, None)
}

/// The error of what is not supported.
pub(crate) fn not_supported(py: Python<'_>, message: &str) -> PyErr {
    new(py, "NotSupportedError", message, None)
}

/// A fault of this package.
pub(crate) fn internal(py: Python<'_>, message: &str) -> PyErr {
    new(py, "InternalError", message, None)
}

/// An error of Arrow.
pub(crate) fn arrow(py: Python<'_>, error: &alluvium::arrow::error::ArrowError) -> PyErr {
    data(py, &error.to_string())
}

/// The module of the package's exceptions.
fn errors(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    static ERRORS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let errors = ERRORS.get_or_try_init(py, || py.import("alluvium._errors").map(Bound::unbind))?;
    Ok(errors.bind(py))
}

fn new(py: Python<'_>, class: &str, message: &str, details: Option<&Bound<'_, PyDict>>) -> PyErr {
    let made = || errors(py)?.getattr(class)?.call((message,), details);
    match made() {
        Ok(error) => PyErr::from_value(error),
        // The interpreter is ending.
        Err(_) => PyRuntimeError::new_err(message.to_owned()),
    }
}
