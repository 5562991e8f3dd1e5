//! Dates, times, timestamps and intervals.

use alluvium::arrow::array::{Array, ArrowPrimitiveType, AsArray};
use alluvium::arrow::datatypes::{
    ArrowTimestampType, DataType, Date32Type, Date64Type, DurationMicrosecondType,
    DurationMillisecondType, DurationNanosecondType, DurationSecondType, IntervalDayTimeType,
    IntervalMonthDayNanoType, IntervalUnit, IntervalYearMonthType, Time32MillisecondType,
    Time32SecondType, Time64MicrosecondType, Time64NanosecondType, TimeUnit,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType,
};
use pyo3::prelude::*;
use pyo3::types::{PyDate, PyDelta, PyTime};

use super::zone::Zone;
use super::{Reader, beyond, nullable};

/// Microseconds of a day.
pub(super) const DAY: i128 = 24 * 60 * 60 * 1_000_000;

/// Days of a month, in a `timedelta`.
const DAYS_OF_MONTH: i128 = 30;

/// Days from 1970 to the first and the last that `datetime` has.
const FIRST: i128 = -719_162;
const LAST: i128 = 2_932_896;

/// The reader of a column of dates, times, timestamps or intervals.
pub(super) fn reader<'a, 'py: 'a>(
    py: Python<'py>,
    array: &'a dyn Array,
) -> PyResult<Reader<'a, 'py>> {
    Ok(match array.data_type() {
        DataType::Date32 => dates::<Date32Type>(py, array, i128::from),
        DataType::Date64 => dates::<Date64Type>(py, array, |milliseconds| {
            i128::from(milliseconds.div_euclid(24 * 60 * 60 * 1_000))
        }),
        DataType::Time32(TimeUnit::Second) => {
            times::<Time32SecondType>(py, array, |value| i128::from(value) * 1_000_000)
        }
        DataType::Time32(_) => {
            times::<Time32MillisecondType>(py, array, |value| i128::from(value) * 1_000)
        }
        DataType::Time64(TimeUnit::Nanosecond) => {
            times::<Time64NanosecondType>(py, array, |value| i128::from(value.div_euclid(1_000)))
        }
        DataType::Time64(_) => times::<Time64MicrosecondType>(py, array, i128::from),
        DataType::Timestamp(unit, zone) => {
            let zone = Zone::new(py, zone.as_deref())?;
            match unit {
                TimeUnit::Second => timestamps::<TimestampSecondType>(py, array, zone),
                TimeUnit::Millisecond => timestamps::<TimestampMillisecondType>(py, array, zone),
                TimeUnit::Microsecond => timestamps::<TimestampMicrosecondType>(py, array, zone),
                TimeUnit::Nanosecond => timestamps::<TimestampNanosecondType>(py, array, zone),
            }
        }
        DataType::Duration(TimeUnit::Second) => {
            spans::<DurationSecondType>(py, array, |value| i128::from(value) * 1_000_000)
        }
        DataType::Duration(TimeUnit::Millisecond) => {
            spans::<DurationMillisecondType>(py, array, |value| i128::from(value) * 1_000)
        }
        DataType::Duration(TimeUnit::Nanosecond) => {
            spans::<DurationNanosecondType>(py, array, |value| i128::from(value / 1_000))
        }
        DataType::Interval(IntervalUnit::YearMonth) => {
            spans::<IntervalYearMonthType>(py, array, |months| {
                i128::from(months) * DAYS_OF_MONTH * DAY
            })
        }
        DataType::Interval(IntervalUnit::DayTime) => {
            spans::<IntervalDayTimeType>(py, array, |value| {
                i128::from(value.days) * DAY + i128::from(value.milliseconds) * 1_000
            })
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            spans::<IntervalMonthDayNanoType>(py, array, |value| {
                let days = i128::from(value.months) * DAYS_OF_MONTH + i128::from(value.days);
                days * DAY + i128::from(value.nanoseconds / 1_000)
            })
        }
        _ => spans::<DurationMicrosecondType>(py, array, i128::from),
    })
}

fn dates<'a, 'py: 'a, T: ArrowPrimitiveType>(
    py: Python<'py>,
    array: &'a dyn Array,
    days: impl Fn(T::Native) -> i128 + 'a,
) -> Reader<'a, 'py> {
    let values = array.as_primitive::<T>();
    nullable(py, array, move |row| match date(days(values.value(row))) {
        Some((year, month, day)) => Ok(PyDate::new(py, year, month, day)?.into_any()),
        None => Err(beyond(py, array, row, "datetime.date")),
    })
}

fn times<'a, 'py: 'a, T: ArrowPrimitiveType>(
    py: Python<'py>,
    array: &'a dyn Array,
    microseconds: impl Fn(T::Native) -> i128 + 'a,
) -> Reader<'a, 'py> {
    let values = array.as_primitive::<T>();
    nullable(py, array, move |row| {
        let microseconds = microseconds(values.value(row));
        if !(0..DAY).contains(&microseconds) {
            return Err(beyond(py, array, row, "datetime.time"));
        }
        let (hour, minute, second, microsecond) = clock(microseconds);
        Ok(PyTime::new(py, hour, minute, second, microsecond, None)?.into_any())
    })
}

fn timestamps<'a, 'py: 'a, T: ArrowTimestampType>(
    py: Python<'py>,
    array: &'a dyn Array,
    zone: Zone<'py>,
) -> Reader<'a, 'py> {
    let values = array.as_primitive::<T>();
    nullable(py, array, move |row| {
        let value = values.value(row);
        let microseconds = match T::UNIT {
            TimeUnit::Second => i128::from(value) * 1_000_000,
            TimeUnit::Millisecond => i128::from(value) * 1_000,
            TimeUnit::Microsecond => i128::from(value),
            TimeUnit::Nanosecond => i128::from(value.div_euclid(1_000)),
        };
        match zone.datetime(py, microseconds)? {
            Some(datetime) => Ok(datetime),
            None => Err(beyond(py, array, row, "datetime.datetime")),
        }
    })
}

fn spans<'a, 'py: 'a, T: ArrowPrimitiveType>(
    py: Python<'py>,
    array: &'a dyn Array,
    microseconds: impl Fn(T::Native) -> i128 + 'a,
) -> Reader<'a, 'py> {
    /// Days of the longest `timedelta`.
    const MOST: i128 = 999_999_999;
    let values = array.as_primitive::<T>();
    nullable(py, array, move |row| {
        let microseconds = microseconds(values.value(row));
        let (days, rest) = (microseconds.div_euclid(DAY), microseconds.rem_euclid(DAY));
        if !(-MOST..=MOST).contains(&days) {
            return Err(beyond(py, array, row, "datetime.timedelta"));
        }
        let (seconds, microseconds) = (rest / 1_000_000, rest % 1_000_000);
        let span = PyDelta::new(py, days as i32, seconds as i32, microseconds as i32, false)?;
        Ok(span.into_any())
    })
}

/// The year, month and day of a day since 1970, if `datetime` has it.
///
/// The algorithm is `civil_from_days` of Howard Hinnant's "chrono-Compatible Low-Level Date Algorithms": years begin in March, and 400 of
/// them, an era, have 146097 days.
pub(super) fn date(days: i128) -> Option<(i32, u8, u8)> {
    if !(FIRST..=LAST).contains(&days) {
        return None;
    }
    let since_march_of_0 = days as i32 + 719_468;
    let (era, day) = (since_march_of_0 / 146_097, since_march_of_0 % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (year, month) = match month {
        0..10 => (year, month + 3),
        _ => (year + 1, month - 9),
    };
    Some((era * 400 + year, month as u8, day as u8))
}

/// The hour, minute, second and microsecond of microseconds within a day.
pub(super) fn clock(microseconds: i128) -> (u8, u8, u8, u32) {
    let (seconds, microsecond) = (microseconds as i64 / 1_000_000, microseconds as i64 % 1_000_000);
    let (minutes, second) = (seconds / 60, seconds % 60);
    ((minutes / 60) as u8, (minutes % 60) as u8, second as u8, microsecond as u32)
}
