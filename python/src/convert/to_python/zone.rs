//! Time zones.

use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDateTime, PyDelta, PyTzInfo};

use super::times::{DAY, clock, date};
use crate::error;

/// The zone of a column of timestamps.
pub(super) enum Zone<'py> {
    /// None: the time is that of the clock on the wall.
    Naive,
    /// As many microseconds ahead of UTC.
    Fixed(Bound<'py, PyTzInfo>, i128),
    /// One whose distance to UTC varies.
    Named(Bound<'py, PyTzInfo>),
}

impl<'py> Zone<'py> {
    /// The zone that Arrow has a name or an offset for.
    pub(super) fn new(py: Python<'py>, name: Option<&str>) -> PyResult<Self> {
        let Some(name) = name else { return Ok(Self::Naive) };
        let seconds = match name {
            "UTC" | "utc" | "Z" | "z" | "Etc/UTC" => Some(0),
            name => offset(name),
        };
        match seconds {
            Some(0) => Ok(Self::Fixed(PyTzInfo::utc(py)?.to_owned(), 0)),
            Some(seconds) => {
                let zone = PyTzInfo::fixed_offset(py, PyDelta::new(py, 0, seconds, 0, true)?)?;
                Ok(Self::Fixed(zone, i128::from(seconds) * 1_000_000))
            }
            None => PyTzInfo::timezone(py, name).map(Self::Named).map_err(|cause| {
                let message = format!(
                    "zoneinfo has no zone {name:?}: install the package tzdata, or read it as Arrow"
                );
                let unknown = error::data(py, &message);
                unknown.set_cause(py, Some(cause));
                unknown
            }),
        }
    }

    /// The `datetime` of microseconds since 1970; none if its year is none of 1 to 9999.
    pub(super) fn datetime(
        &self,
        py: Python<'py>,
        microseconds: i128,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self {
            Self::Naive => new(py, microseconds, None),
            Self::Fixed(zone, ahead) => new(py, microseconds + ahead, Some(zone)),
            Self::Named(zone) => {
                let utc = PyTzInfo::utc(py)?;
                let Some(datetime) = new(py, microseconds, Some(&utc))? else { return Ok(None) };
                match datetime.call_method1(intern!(py, "astimezone"), (zone,)) {
                    Err(error) if error.is_instance_of::<PyOverflowError>(py) => Ok(None),
                    Err(error) if error.is_instance_of::<PyValueError>(py) => Ok(None),
                    datetime => datetime.map(Some),
                }
            }
        }
    }
}

/// Seconds ahead of UTC of an offset such as `+02:00`, `-0330` or `+01`.
fn offset(text: &str) -> Option<i32> {
    let (sign, digits) = match text.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let digits = digits.replacen(':', "", 1);
    if !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let (hours, minutes) = match digits.len() {
        2 => (digits.as_str(), "0"),
        4 => digits.split_at(2),
        _ => return None,
    };
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    (hours < 24 && minutes < 60).then_some(sign * (hours * 60 + minutes) * 60)
}

fn new<'py>(
    py: Python<'py>,
    microseconds: i128,
    zone: Option<&Bound<'py, PyTzInfo>>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some((year, month, day)) = date(microseconds.div_euclid(DAY)) else { return Ok(None) };
    let (hour, minute, second, microsecond) = clock(microseconds.rem_euclid(DAY));
    let made = PyDateTime::new(py, year, month, day, hour, minute, second, microsecond, zone)?;
    Ok(Some(made.into_any()))
}
