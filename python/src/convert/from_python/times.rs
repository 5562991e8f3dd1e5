//! Dates, times, timestamps and intervals.

use alluvium::arrow::datatypes::{IntervalMonthDayNano, TimeUnit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDate, PyDateTime, PyDelta, PyString, PyTime};

use crate::convert::fault::Unfit;
use crate::convert::python::{epoch, epoch_utc, is_missing, microsecond};

/// Microseconds of a day.
const DAY: i64 = 24 * 60 * 60 * 1_000_000;

/// What `date.toordinal` has for 1970-01-01.
const ORDINAL_OF_1970: i32 = 719_163;

/// Days since 1970.
pub(super) fn date(value: &Bound<'_, PyAny>) -> Result<i32, Unfit> {
    if value.is_exact_instance_of::<PyDate>() {
        return days(value);
    }
    if is_datetime(value)? {
        let (microseconds, aware) = moment(value)?;
        if aware {
            return Err(Unfit::because("it has a time zone"));
        }
        if microseconds % DAY != 0 {
            return Err(Unfit::because("it has a time of day; take its .date()"));
        }
        return i32::try_from(microseconds / DAY).map_err(|_| Unfit::Beyond);
    }
    match value.is_instance_of::<PyDate>() && !is_missing(value)? {
        true => days(value),
        false => Err(Unfit::Unknown),
    }
}

/// Milliseconds from 1970 to the begin of a day.
pub(super) fn date_milliseconds(value: &Bound<'_, PyAny>) -> Result<i64, Unfit> {
    Ok(i64::from(date(value)?) * (DAY / 1_000))
}

fn days(date: &Bound<'_, PyAny>) -> Result<i32, Unfit> {
    let ordinal: i32 = date.call_method0(intern!(date.py(), "toordinal"))?.extract()?;
    ordinal.checked_sub(ORDINAL_OF_1970).ok_or(Unfit::Beyond)
}

/// The time since midnight, in units of which a second has so many.
pub(super) fn time<N: TryFrom<i64>>(value: &Bound<'_, PyAny>, per_second: i64) -> Result<N, Unfit> {
    let py = value.py();
    if !value.is_instance_of::<PyTime>() {
        return Err(Unfit::Unknown);
    }
    if !value.getattr(intern!(py, "tzinfo"))?.is_none() {
        return Err(Unfit::because("it has a time zone"));
    }
    let hour = field(value, intern!(py, "hour"))?;
    let minute = field(value, intern!(py, "minute"))?;
    let second = field(value, intern!(py, "second"))?;
    let microsecond = field(value, intern!(py, "microsecond"))?;
    let seconds = (hour * 60 + minute) * 60 + second;
    let part = match per_second {
        1_000_000_000 => microsecond * 1_000,
        _ => microsecond / (1_000_000 / per_second),
    };
    N::try_from(seconds * per_second + part).map_err(|_| Unfit::Beyond)
}

/// The time since 1970, in UTC if the column has a time zone. A `datetime` without a zone is then one of UTC, and a `date` is its midnight.
pub(super) fn timestamp(
    value: &Bound<'_, PyAny>,
    unit: TimeUnit,
    zoned: bool,
) -> Result<i64, Unfit> {
    if is_datetime(value)? {
        let (microseconds, aware) = moment(value)?;
        if aware && !zoned {
            return Err(Unfit::because(
                "it has a time zone, and the column has none; give the time of one zone, with .replace(tzinfo=None)",
            ));
        }
        return match unit {
            TimeUnit::Second => Ok(microseconds.div_euclid(1_000_000)),
            TimeUnit::Millisecond => Ok(microseconds.div_euclid(1_000)),
            TimeUnit::Microsecond => Ok(microseconds),
            TimeUnit::Nanosecond => {
                let rest = finer(value, "nanosecond")?;
                let nanoseconds = microseconds.checked_mul(1_000);
                nanoseconds.and_then(|count| count.checked_add(rest)).ok_or(Unfit::Beyond)
            }
        };
    }
    let days = i64::from(date(value)?);
    let per_day = match unit {
        TimeUnit::Second => DAY / 1_000_000,
        TimeUnit::Millisecond => DAY / 1_000,
        TimeUnit::Microsecond => DAY,
        TimeUnit::Nanosecond => DAY * 1_000,
    };
    days.checked_mul(per_day).ok_or(Unfit::Beyond)
}

/// Whether it is a `datetime`; `pandas.NaT` is of a class of them, and none.
pub(super) fn is_datetime(value: &Bound<'_, PyAny>) -> Result<bool, Unfit> {
    Ok(value.is_exact_instance_of::<PyDateTime>()
        || value.is_instance_of::<PyDateTime>() && !is_missing(value)?)
}

/// Whether a `datetime` has a time zone, in the sense of Python: one without an offset is none.
pub(super) fn is_aware(value: &Bound<'_, PyAny>) -> Result<bool, Unfit> {
    let py = value.py();
    Ok(!value.getattr(intern!(py, "tzinfo"))?.is_none()
        && !value.call_method0(intern!(py, "utcoffset"))?.is_none())
}

/// Microseconds of a `datetime` since 1970, and whether it has a time zone; they are of UTC if it has.
fn moment(value: &Bound<'_, PyAny>) -> Result<(i64, bool), Unfit> {
    let py = value.py();
    let aware = is_aware(value)?;
    let since = value.sub(if aware { epoch_utc(py)? } else { epoch(py)? })?;
    let microseconds = since.floor_div(microsecond(py)?)?.extract().map_err(|_| Unfit::Beyond)?;
    Ok((microseconds, aware))
}

/// Days and nanoseconds of a `timedelta`.
pub(super) fn interval(value: &Bound<'_, PyAny>) -> Result<IntervalMonthDayNano, Unfit> {
    let (days, microseconds) = span(value)?;
    let nanoseconds = microseconds * 1_000 + finer(value, "nanoseconds")?;
    let days = i32::try_from(days).map_err(|_| Unfit::Beyond)?;
    Ok(IntervalMonthDayNano::new(0, days, nanoseconds))
}

/// A `timedelta`, as a count of the unit.
pub(super) fn duration(value: &Bound<'_, PyAny>, unit: TimeUnit) -> Result<i64, Unfit> {
    let (days, microseconds) = span(value)?;
    let whole = i128::from(days) * i128::from(DAY) + i128::from(microseconds);
    let count = match unit {
        TimeUnit::Second => whole / 1_000_000,
        TimeUnit::Millisecond => whole / 1_000,
        TimeUnit::Microsecond => whole,
        TimeUnit::Nanosecond => whole * 1_000 + i128::from(finer(value, "nanoseconds")?),
    };
    i64::try_from(count).map_err(|_| Unfit::Beyond)
}

/// Days of a `timedelta`, and the microseconds beside them.
fn span(value: &Bound<'_, PyAny>) -> Result<(i64, i64), Unfit> {
    let py = value.py();
    if !value.is_instance_of::<PyDelta>() {
        return Err(Unfit::Unknown);
    }
    let days = field(value, intern!(py, "days"))?;
    let seconds = field(value, intern!(py, "seconds"))?;
    let microseconds = field(value, intern!(py, "microseconds"))?;
    Ok((days, seconds * 1_000_000 + microseconds))
}

fn field(value: &Bound<'_, PyAny>, name: &Bound<'_, PyString>) -> Result<i64, Unfit> {
    Ok(value.getattr(name)?.extract::<i32>()?.into())
}

/// Nanoseconds beside the microseconds, which the classes of pandas have.
fn finer(value: &Bound<'_, PyAny>, name: &str) -> Result<i64, Unfit> {
    if value.is_exact_instance_of::<PyDateTime>() || value.is_exact_instance_of::<PyDelta>() {
        return Ok(0);
    }
    let nanoseconds = value.getattr_opt(name)?;
    Ok(nanoseconds.and_then(|nanoseconds| nanoseconds.extract::<i32>().ok()).map_or(0, i64::from))
}
