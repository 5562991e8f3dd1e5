//! Differences, buckets and parts of times.

use std::sync::Arc;

use arrow::array::types::{Int64Type, IntervalMonthDayNanoType, TimestampMicrosecondType};
use arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, Int64Array, IntervalMonthDayNanoArray,
    Time64NanosecondArray, TimestampMicrosecondArray, new_null_array,
};
use arrow::compute::kernels::numeric::{add, sub};
use arrow::compute::{cast, concat};
use arrow::datatypes::{DataType, Float64Type, IntervalMonthDayNano, IntervalUnit, TimeUnit};
use chrono::{DateTime, Datelike, Days, Months, NaiveDate, NaiveDateTime};
use datafusion_common::{Result, exec_datafusion_err, exec_err, plan_err};
use datafusion_expr::ScalarUDF;

use super::super::date_bin::Bins;
use super::plain::{Plain, wrong_number};

pub(in super::super) const TIMESTAMP: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);
const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);
const DAY: i64 = 86_400_000_000;

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    let big = |_: &[DataType]| DataType::Int64;
    let bucket = |types: &[DataType]| types[1].clone();
    let by_kind =
        |types: &[DataType]| if types[0] == DataType::Int64 { TIMESTAMP } else { DataType::Int64 };
    let time = |_: &[DataType]| DataType::Time64(TimeUnit::Nanosecond);
    vec![
        Plain::function(&["date_diff", "datediff"], part_and_times, big, |of| {
            differences(of, diff)
        }),
        Plain::function(&["date_sub", "datesub"], part_and_times, big, |of| differences(of, whole)),
        Plain::function(&["age"], two_times, |_| INTERVAL, age),
        Plain::function(&["time_bucket"], bucketed, bucket, time_bucket),
        Plain::function(&["make_timestamp"], fields::<6, 3>, |_| TIMESTAMP, make_timestamp),
        Plain::function(&["make_time"], fields::<3, 0>, time, make_time),
        Plain::function(&["epoch_ms"], time_or_integer, by_kind, |of| epoch(of, 1_000, 1)),
        Plain::function(&["epoch_us"], time_or_integer, by_kind, |of| epoch(of, 1, 1)),
        Plain::function(&["epoch_ns"], time_or_integer, by_kind, |of| epoch(of, 1, 1_000)),
    ]
}

/// The type in which a time is computed with.
pub(super) fn as_time(argument: &DataType) -> Result<DataType> {
    match argument {
        DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) | DataType::Null => {
            Ok(TIMESTAMP)
        }
        text if text.is_string() => Ok(TIMESTAMP),
        other => plan_err!("a date or timestamp is expected, not {other}"),
    }
}

fn part_and_times(arguments: &[DataType]) -> Result<Vec<DataType>> {
    let [_, start, end] = arguments else { return wrong_number(3, 3, arguments.len()) };
    Ok(vec![DataType::Utf8, as_time(start)?, as_time(end)?])
}

fn two_times(arguments: &[DataType]) -> Result<Vec<DataType>> {
    let [end, start] = arguments else { return wrong_number(2, 2, arguments.len()) };
    Ok(vec![as_time(end)?, as_time(start)?])
}

fn bucketed(arguments: &[DataType]) -> Result<Vec<DataType>> {
    let (2 | 3, [_, time, rest @ ..]) = (arguments.len(), arguments) else {
        return wrong_number(2, 3, arguments.len());
    };
    let time = match time {
        DataType::Date32 => DataType::Date32,
        DataType::Timestamp(_, zone) => DataType::Timestamp(TimeUnit::Microsecond, zone.clone()),
        other => as_time(other)?,
    };
    let mut types = vec![INTERVAL, time];
    if let [from] = rest {
        types.push(match from {
            DataType::Interval(_) => INTERVAL,
            other => as_time(other)?,
        });
    }
    Ok(types)
}

/// `ALL` numbers, the last of which is DOUBLE, or one integer if `ALONE` is not zero.
fn fields<const ALL: usize, const ALONE: usize>(arguments: &[DataType]) -> Result<Vec<DataType>> {
    if arguments.len() == 1 && ALONE > 0 {
        return Ok(vec![DataType::Int64]);
    }
    if arguments.len() != ALL {
        return wrong_number(ALL, ALL, arguments.len());
    }
    let mut types = vec![DataType::Int64; ALL];
    types[ALL - 1] = DataType::Float64;
    Ok(types)
}

fn time_or_integer(arguments: &[DataType]) -> Result<Vec<DataType>> {
    match arguments {
        [integer] if integer.is_integer() => Ok(vec![DataType::Int64]),
        [time] => Ok(vec![as_time(time)?]),
        _ => wrong_number(1, 1, arguments.len()),
    }
}

/// The date and time that a timestamp is.
pub(in super::super) fn date_time(microseconds: i64) -> Result<NaiveDateTime> {
    DateTime::from_timestamp_micros(microseconds)
        .map(|time| time.naive_utc())
        .ok_or_else(|| exec_datafusion_err!("the timestamp is too far from 1970"))
}

/// The unit that is counted between two times.
#[derive(Clone, Copy)]
enum Unit {
    Years(i32),
    IsoYears,
    /// So many months.
    Months(i64),
    Weeks,
    /// So many microseconds.
    Microseconds(i64),
}

impl Unit {
    fn of(part: &str) -> Result<Unit> {
        Ok(match part.trim().to_lowercase().as_str() {
            "millennium" | "millennia" | "millenium" | "mil" | "mils" => Unit::Years(1_000),
            "century" | "centuries" | "cent" | "c" => Unit::Years(100),
            "decade" | "decades" | "dec" | "decs" => Unit::Years(10),
            "year" | "years" | "yr" | "yrs" | "y" => Unit::Years(1),
            "isoyear" => Unit::IsoYears,
            "quarter" | "quarters" => Unit::Months(3),
            "month" | "months" | "mon" | "mons" => Unit::Months(1),
            "week" | "weeks" | "w" | "yearweek" => Unit::Weeks,
            "day" | "days" | "d" | "dow" | "isodow" | "doy" | "dayofweek" | "dayofyear"
            | "weekday" => Unit::Microseconds(DAY),
            "hour" | "hours" | "hr" | "hrs" | "h" => Unit::Microseconds(DAY / 24),
            "minute" | "minutes" | "min" | "mins" | "m" => Unit::Microseconds(60_000_000),
            "second" | "seconds" | "sec" | "secs" | "s" | "epoch" => Unit::Microseconds(1_000_000),
            "millisecond" | "milliseconds" | "ms" | "msec" | "msecs" => Unit::Microseconds(1_000),
            "microsecond" | "microseconds" | "us" | "usec" | "usecs" => Unit::Microseconds(1),
            _ => return exec_err!("a time has no part \"{part}\""),
        })
    }
}

fn differences(
    arguments: &[ArrayRef],
    difference: fn(Unit, i64, i64) -> Result<i64>,
) -> Result<ArrayRef> {
    let parts = arguments[0].as_string::<i32>();
    let starts = arguments[1].as_primitive::<TimestampMicrosecondType>();
    let ends = arguments[2].as_primitive::<TimestampMicrosecondType>();
    let mut last: Option<(&str, Unit)> = None;
    let differences = parts.iter().zip(starts).zip(ends).map(|((part, start), end)| {
        let (Some(part), Some(start), Some(end)) = (part, start, end) else { return Ok(None) };
        let unit = match last {
            Some((known, unit)) if known == part => unit,
            _ => Unit::of(part)?,
        };
        last = Some((part, unit));
        difference(unit, start, end).map(Some)
    });
    Ok(Arc::new(differences.collect::<Result<Int64Array>>()?))
}

/// How many boundaries of a unit are between two times.
fn diff(unit: Unit, start: i64, end: i64) -> Result<i64> {
    let each = |count: &dyn Fn(NaiveDateTime) -> i64| {
        Ok(count(date_time(end)?) - count(date_time(start)?))
    };
    match unit {
        Unit::Years(years) => each(&|time| i64::from(time.year().div_euclid(years))),
        Unit::IsoYears => each(&|time| i64::from(time.iso_week().year())),
        Unit::Months(months) => each(&|time| {
            (i64::from(time.year()) * 12 + i64::from(time.month0())).div_euclid(months)
        }),
        Unit::Weeks => Ok((end.div_euclid(DAY) - start.div_euclid(DAY)) / 7),
        Unit::Microseconds(length) => Ok(end.div_euclid(length) - start.div_euclid(length)),
    }
}

/// How many whole units are between two times.
fn whole(unit: Unit, start: i64, end: i64) -> Result<i64> {
    let between = || {
        end.checked_sub(start).ok_or_else(|| exec_datafusion_err!("the times are too far apart"))
    };
    Ok(match unit {
        Unit::Years(years) => whole_months(start, end)? / (12 * i64::from(years)),
        Unit::IsoYears => whole_months(start, end)? / 12,
        Unit::Months(months) => whole_months(start, end)? / months,
        Unit::Weeks => between()? / (7 * DAY),
        Unit::Microseconds(length) => between()? / length,
    })
}

fn whole_months(start: i64, end: i64) -> Result<i64> {
    if start > end {
        return Ok(-whole_months(end, start)?);
    }
    let (start, end) = (date_time(start)?, date_time(end)?);
    let month = |time: NaiveDateTime| i64::from(time.year()) * 12 + i64::from(time.month0());
    let months = month(end) - month(start);
    let added = u32::try_from(months).ok().and_then(|months| {
        // The last day of a month that is shorter.
        start.checked_add_months(Months::new(months))
    });
    Ok(if added.is_some_and(|added| added > end) { months - 1 } else { months })
}

/// `age(end, start)`: years and months, then days, then a time.
fn age(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let ends = arguments[0].as_primitive::<TimestampMicrosecondType>();
    let starts = arguments[1].as_primitive::<TimestampMicrosecondType>();
    let ages = ends.iter().zip(starts).map(|(end, start)| match (end, start) {
        (Some(end), Some(start)) if end < start => {
            let age = age_of(start, end)?;
            Ok(Some(IntervalMonthDayNano::new(-age.months, -age.days, -age.nanoseconds)))
        }
        (Some(end), Some(start)) => age_of(end, start).map(Some),
        _ => Ok(None),
    });
    Ok(Arc::new(ages.collect::<Result<IntervalMonthDayNanoArray>>()?))
}

fn age_of(end: i64, start: i64) -> Result<IntervalMonthDayNano> {
    let (last, first) = (date_time(end)?, date_time(start)?);
    let mut months = (last.year() - first.year()) * 12 + last.month() as i32 - first.month() as i32;
    let mut days = last.day() as i32 - first.day() as i32;
    let mut microseconds = end.rem_euclid(DAY) - start.rem_euclid(DAY);
    if microseconds < 0 {
        microseconds += DAY;
        days -= 1;
    }
    if days < 0 {
        days += days_of_month(first.date());
        months -= 1;
    }
    Ok(IntervalMonthDayNano::new(months, days, microseconds * 1_000))
}

fn days_of_month(date: NaiveDate) -> i32 {
    let last = date
        .with_day(1)
        .and_then(|first| first.checked_add_months(Months::new(1)))
        .and_then(|next| next.checked_sub_days(Days::new(1)));
    last.map_or(31, |last| last.day() as i32)
}

/// 2000-01-03, a Monday, and 2000-01-01: where buckets start that are made of days, and of months.
const ORIGINS: (i64, i64) = (946_857_600_000_000, 946_684_800_000_000);

fn time_bucket(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let [widths, times, from @ ..] = arguments else { return exec_err!("a time is missing") };
    let widths = widths.as_primitive::<IntervalMonthDayNanoType>();
    let rows = times.len();
    let is_same = |column: &ArrayRef| {
        column.len() < 2 || (1..rows).all(|row| column.slice(row, 1) == column.slice(0, 1))
    };
    if rows == 0 {
        return Ok(Arc::clone(times));
    }
    let is_constant = (1..rows).all(|row| {
        widths.is_valid(row) == widths.is_valid(0) && widths.value(row) == widths.value(0)
    });
    if is_constant && from.iter().all(is_same) {
        let width = widths.is_valid(0).then(|| widths.value(0));
        return buckets(width, times, from.first());
    }
    let each = (0..rows).map(|row| {
        let width = widths.is_valid(row).then(|| widths.value(row));
        buckets(width, &times.slice(row, 1), from.first().map(|from| from.slice(row, 1)).as_ref())
    });
    let each = each.collect::<Result<Vec<_>>>()?;
    let each: Vec<&dyn Array> = each.iter().map(|bucket| bucket.as_ref()).collect();
    Ok(concat(&each)?)
}

/// The starts of buckets; `from` is where one starts, or an interval by which all are shifted.
fn buckets(
    width: Option<IntervalMonthDayNano>,
    times: &ArrayRef,
    from: Option<&ArrayRef>,
) -> Result<ArrayRef> {
    let Some(width) = width else { return Ok(new_null_array(times.data_type(), times.len())) };
    let length = i128::from(width.days) * i128::from(DAY) * 1_000 + i128::from(width.nanoseconds);
    let (bins, mut origin) = match (width.months, length) {
        (0, length) if length > 0 => (Bins::Nanoseconds(length), ORIGINS.0),
        (months, 0) if months > 0 => (Bins::Months(months), ORIGINS.1),
        (0, _) | (_, 0) => return exec_err!("the width of a bucket must be positive"),
        _ => return exec_err!("the width of a bucket has either months, or days and a time"),
    };
    let moments = cast(times, &TIMESTAMP)?;
    let starts = match from {
        Some(from) if from.data_type() == &INTERVAL => {
            let shift =
                if from.len() == moments.len() { Arc::clone(from) } else { from.slice(0, 1) };
            add(&bins.starts(&sub(&moments, &shift)?, origin)?, &shift)?
        }
        Some(from) => {
            let from = from.as_primitive::<TimestampMicrosecondType>();
            if from.is_null(0) {
                return Ok(new_null_array(times.data_type(), times.len()));
            }
            origin = from.value(0);
            bins.starts(&moments, origin)?
        }
        None => bins.starts(&moments, origin)?,
    };
    Ok(cast(&starts, times.data_type())?)
}

/// Hours, minutes and seconds in microseconds.
fn time_of_day(hour: i64, minute: i64, second: f64) -> Result<i64> {
    let is_time =
        (0..24).contains(&hour) && (0..60).contains(&minute) && (0.0..61.0).contains(&second);
    if !is_time {
        return exec_err!("there is no time {hour}:{minute}:{second}");
    }
    Ok((hour * 60 + minute) * 60_000_000 + (second * 1e6).round() as i64)
}

fn make_timestamp(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    if let [microseconds] = arguments {
        return Ok(cast(microseconds, &TIMESTAMP)?);
    }
    let integer = |place: usize| arguments[place].as_primitive::<Int64Type>();
    let [years, months, days, hours, minutes] = [0, 1, 2, 3, 4].map(integer);
    let seconds = arguments[5].as_primitive::<Float64Type>();
    let is_valid = |row: usize| arguments.iter().all(|argument| argument.is_valid(row));
    let made = (0..years.len()).map(|row| {
        if !is_valid(row) {
            return Ok(None);
        }
        let (year, month, day) = (years.value(row), months.value(row), days.value(row));
        let date = match (i32::try_from(year), u32::try_from(month), u32::try_from(day)) {
            (Ok(year), Ok(month), Ok(day)) => NaiveDate::from_ymd_opt(year, month, day),
            _ => None,
        };
        let Some(date) = date else {
            return exec_err!("there is no date {year}-{month}-{day}");
        };
        let time = time_of_day(hours.value(row), minutes.value(row), seconds.value(row))?;
        let midnight = date.and_time(chrono::NaiveTime::MIN).and_utc().timestamp_micros();
        Ok(Some(midnight + time))
    });
    Ok(Arc::new(made.collect::<Result<TimestampMicrosecondArray>>()?))
}

fn make_time(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let hours = arguments[0].as_primitive::<Int64Type>().iter();
    let minutes = arguments[1].as_primitive::<Int64Type>();
    let seconds: &Float64Array = arguments[2].as_primitive::<Float64Type>();
    let made = hours.zip(minutes).zip(seconds).map(|((hour, minute), second)| {
        let (Some(hour), Some(minute), Some(second)) = (hour, minute, second) else {
            return Ok(None);
        };
        let microseconds = time_of_day(hour, minute, second)?;
        match microseconds < DAY {
            true => Ok(Some(microseconds * 1_000)),
            false => exec_err!("there is no time {hour}:{minute}:{second}"),
        }
    });
    Ok(Arc::new(made.collect::<Result<Time64NanosecondArray>>()?))
}

/// Times as numbers of units of so many microseconds, or of which a microsecond has so many; and numbers of units as times.
fn epoch(arguments: &[ArrayRef], microseconds: i64, per_microsecond: i64) -> Result<ArrayRef> {
    let overflow = || exec_datafusion_err!("overflow: the time is too far from 1970");
    if arguments[0].data_type() == &DataType::Int64 {
        let numbers = arguments[0].as_primitive::<Int64Type>().iter();
        let times = numbers.map(|number| {
            let Some(number) = number else { return Ok(None) };
            let time = number.checked_mul(microseconds).ok_or_else(overflow)?;
            Ok(Some(time.div_euclid(per_microsecond)))
        });
        return Ok(Arc::new(times.collect::<Result<TimestampMicrosecondArray>>()?));
    }
    let times = arguments[0].as_primitive::<TimestampMicrosecondType>();
    let numbers: Int64Array = times.try_unary(|time| {
        // As in DuckDB, the fraction is cut off.
        (time / microseconds).checked_mul(per_microsecond).ok_or_else(overflow)
    })?;
    Ok(Arc::new(numbers))
}
