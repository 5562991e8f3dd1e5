//! `timezone(zone, t)`, which `t AT TIME ZONE zone` stands for.
//!
//! The wall clock of a zone at an instant, a TIMESTAMP; or the instant at which a wall clock shows a time, a TIMESTAMPTZ in
//! UTC. Where clocks are set back an hour is shown twice, and the later one is meant. Where they are set forward an hour is
//! left out, and is counted on with the clock of before. PostgreSQL and DuckDB do the same.
//!
//! DataFusion's cast to a type with a zone is not used: some functions of such a type take its local time, others UTC.

use std::str::FromStr;
use std::sync::Arc;

use alluvium_dataflow::messages::wording::type_name;
use arrow::array::types::{IntervalMonthDayNanoType, TimestampMicrosecondType};
use arrow::array::{Array, ArrayRef, AsArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field, FieldRef, IntervalMonthDayNano, IntervalUnit, TimeUnit};
use chrono::{Days, FixedOffset, MappedLocalTime, NaiveDateTime, Offset, TimeDelta, TimeZone};
use chrono_tz::{TZ_VARIANTS, Tz};
use datafusion_common::{Result, ScalarValue, exec_datafusion_err, exec_err, plan_err};
use datafusion_expr::expr::Cast;
use datafusion_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use super::duckdb::{TIMESTAMP, date_time};
use super::names::did_you_mean;
use crate::fault::{self, Fault};

const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

/// The function.
pub(super) fn function() -> Arc<ScalarUDF> {
    let signature = Signature::user_defined(Volatility::Immutable);
    Arc::new(ScalarUDF::from(TimeZoned { signature }))
}

fn timestamptz() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into()))
}

/// A time zone.
#[derive(Clone, Copy, Debug)]
enum Zone {
    Named(Tz),
    /// Always as far from UTC, positive to the east.
    Fixed(FixedOffset),
}

impl Zone {
    /// The zone of a name of the IANA database in any case, or of an offset such as `+02:00`.
    fn of(name: &str) -> Result<Zone> {
        let name = name.trim();
        if let Ok(zone) = Tz::from_str(name) {
            return Ok(Zone::Named(zone));
        }
        if let Some(offset) = offset(name) {
            return Ok(Zone::Fixed(offset));
        }
        if name.eq_ignore_ascii_case("z") {
            return Ok(Zone::Named(Tz::UTC));
        }
        match TZ_VARIANTS.iter().find(|zone| zone.name().eq_ignore_ascii_case(name)) {
            Some(zone) => Ok(Zone::Named(*zone)),
            None => {
                let near = did_you_mean(name, TZ_VARIANTS.iter().map(|zone| zone.name()));
                let shown: String = name.chars().take(40).collect();
                exec_err!("there is no time zone \"{shown}\"{near}")
            }
        }
    }

    /// The zone that is so far from UTC.
    fn at(offset: IntervalMonthDayNano) -> Result<Zone> {
        let seconds = offset.nanoseconds / 1_000_000_000;
        let is_offset = offset.months == 0 && offset.days == 0;
        match i32::try_from(seconds).ok().filter(|_| is_offset).and_then(FixedOffset::east_opt) {
            Some(offset) => Ok(Zone::Fixed(offset)),
            None => {
                exec_err!("an interval that is a time zone has less than 24 hours, and no days")
            }
        }
    }

    fn is_utc(self) -> bool {
        match self {
            Zone::Named(zone) => matches!(zone, Tz::UTC | Tz::GMT | Tz::Etc__UTC | Tz::Zulu),
            Zone::Fixed(offset) => offset.local_minus_utc() == 0,
        }
    }

    /// How far its clocks are from UTC at an instant.
    fn offset_at(self, utc: NaiveDateTime) -> FixedOffset {
        match self {
            Zone::Named(zone) if fault::armed(Fault::LateClock) => {
                let before = utc.checked_sub_signed(TimeDelta::hours(1)).unwrap_or(utc);
                zone.offset_from_utc_datetime(&before).fix()
            }
            Zone::Named(zone) => zone.offset_from_utc_datetime(&utc).fix(),
            Zone::Fixed(offset) => offset,
        }
    }

    /// How far its clocks are from UTC when they show a time.
    fn offset_when(self, local: NaiveDateTime) -> FixedOffset {
        let zone = match self {
            Zone::Named(zone) => zone,
            Zone::Fixed(offset) => return offset,
        };
        match zone.offset_from_local_datetime(&local) {
            MappedLocalTime::Single(offset) => offset.fix(),
            MappedLocalTime::Ambiguous(first, second) => {
                // The later instant is the one of the clock that is less ahead.
                let (first, second) = (first.fix(), second.fix());
                let is_first_later = first.local_minus_utc() < second.local_minus_utc();
                if is_first_later != fault::armed(Fault::FirstClock) { first } else { second }
            }
            // With any offset, an instant a day before is before the clocks are changed.
            MappedLocalTime::None => {
                self.offset_at(local.checked_sub_days(Days::new(1)).unwrap_or(local))
            }
        }
    }
}

/// The offset `+02`, `+0200`, `+02:00` or `-9:30`.
fn offset(text: &str) -> Option<FixedOffset> {
    let (sign, digits) = match text.as_bytes() {
        [b'+', digits @ ..] => (1, digits),
        [b'-', digits @ ..] => (-1, digits),
        _ => return None,
    };
    let number = |digits: &[u8]| {
        let is_number = (1..=2).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
        is_number.then(|| digits.iter().fold(0, |all, digit| all * 10 + i32::from(digit - b'0')))
    };
    let (hours, minutes) = match digits.iter().position(|byte| *byte == b':') {
        Some(colon) => (number(&digits[..colon])?, number(&digits[colon + 1..])?),
        None if digits.len() > 2 => {
            let (hours, minutes) = digits.split_at(digits.len() - 2);
            (number(hours)?, number(minutes)?)
        }
        None => (number(digits)?, 0),
    };
    (hours < 16 && minutes < 60)
        .then(|| FixedOffset::east_opt(sign * (hours * 60 + minutes) * 60))?
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct TimeZoned {
    signature: Signature,
}

impl ScalarUDFImpl for TimeZoned {
    fn name(&self) -> &str {
        "timezone"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        let [zone, time] = arguments else {
            return plan_err!("it has 2 arguments, not {}", arguments.len());
        };
        let zone = match zone {
            DataType::Interval(_) => INTERVAL,
            zone if zone.is_string() || zone.is_null() => DataType::Utf8,
            other => {
                return plan_err!("a time zone is a text or an INTERVAL, not {}", type_name(other));
            }
        };
        let time = match time {
            DataType::Date32 | DataType::Date64 | DataType::Timestamp(_, None) => TIMESTAMP,
            // A text is an instant, as in PostgreSQL.
            DataType::Timestamp(..) | DataType::Null => timestamptz(),
            text if text.is_string() => timestamptz(),
            other => {
                let other = type_name(other);
                return plan_err!(
                    "AT TIME ZONE is of a TIMESTAMP or a TIMESTAMP WITH TIME ZONE, not of {other}"
                );
            }
        };
        Ok(vec![zone, time])
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(match arguments {
            [_, DataType::Timestamp(_, None)] => timestamptz(),
            _ => TIMESTAMP,
        })
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        // A constant that is no zone fails before there are rows.
        if let Some(zone) = arguments.scalar_arguments.first().copied().flatten()
            && let Some(name) = zone.try_as_str().flatten()
        {
            Zone::of(name)?;
        }
        let types = arguments.arg_fields.iter().map(|field| field.data_type().clone());
        let kind = self.return_type(&types.collect::<Vec<_>>())?;
        Ok(Arc::new(Field::new(self.name(), kind, true)))
    }

    /// In UTC the clock shows the instant, and whether values are compared with the time is seen through a cast.
    fn simplify(
        &self,
        mut arguments: Vec<Expr>,
        context: &SimplifyContext,
    ) -> Result<ExprSimplifyResult> {
        let is_utc = match arguments.first() {
            Some(Expr::Literal(zone, _)) => constant(zone)?.is_some_and(Zone::is_utc),
            _ => false,
        };
        if !is_utc || arguments.len() != 2 {
            return Ok(ExprSimplifyResult::Original(arguments));
        }
        let time = arguments.remove(1);
        let kind = match context.get_data_type(&time)? {
            DataType::Timestamp(_, None) => timestamptz(),
            _ => TIMESTAMP,
        };
        Ok(ExprSimplifyResult::Simplified(Expr::Cast(Cast::new(Box::new(time), kind))))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [zones, times] = &arguments.args[..] else {
            return exec_err!("a time zone and a time are expected");
        };
        let is_local = matches!(times.data_type(), DataType::Timestamp(_, None));
        let converted = |zone: Zone, time: i64| match is_local {
            true => instant(zone, time),
            false => wall_clock(zone, time),
        };
        let columns = |times: &ArrayRef| -> Result<ArrayRef> {
            let times = times.as_primitive::<TimestampMicrosecondType>();
            let converted: TimestampMicrosecondArray = match zones {
                ColumnarValue::Scalar(zone) => match constant(zone)? {
                    Some(zone) => times.try_unary(|time| converted(zone, time))?,
                    None => TimestampMicrosecondArray::new_null(times.len()),
                },
                ColumnarValue::Array(zones) => {
                    let mut last = Last::default();
                    let each = times.iter().enumerate().map(|(row, time)| {
                        match (last.zone(zones, row)?, time) {
                            (Some(zone), Some(time)) => converted(zone, time).map(Some),
                            _ => Ok(None),
                        }
                    });
                    each.collect::<Result<_>>()?
                }
            };
            let zone = is_local.then(|| "+00:00".into());
            Ok(Arc::new(converted.with_timezone_opt::<Arc<str>>(zone)))
        };
        match (zones, times) {
            (ColumnarValue::Scalar(_), ColumnarValue::Scalar(time)) => {
                let converted = columns(&time.to_array()?)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&converted, 0)?))
            }
            (_, times) => {
                columns(&times.to_array(arguments.number_rows)?).map(ColumnarValue::Array)
            }
        }
    }
}

/// The zone that a value names; `None` of NULL.
fn constant(zone: &ScalarValue) -> Result<Option<Zone>> {
    match zone {
        ScalarValue::IntervalMonthDayNano(offset) => offset.map(Zone::at).transpose(),
        zone => zone.try_as_str().flatten().map(Zone::of).transpose(),
    }
}

/// The zone of the row before, whose name need not be looked up again.
#[derive(Default)]
struct Last<'a>(Option<(&'a str, Zone)>);

impl<'a> Last<'a> {
    fn zone(&mut self, zones: &'a ArrayRef, row: usize) -> Result<Option<Zone>> {
        if zones.is_null(row) {
            return Ok(None);
        }
        if let Some(offsets) = zones.as_primitive_opt::<IntervalMonthDayNanoType>() {
            return Zone::at(offsets.value(row)).map(Some);
        }
        let name = zones.as_string::<i32>().value(row);
        match self.0 {
            Some((known, zone)) if known == name => Ok(Some(zone)),
            _ => {
                let zone = Zone::of(name)?;
                self.0 = Some((name, zone));
                Ok(Some(zone))
            }
        }
    }
}

/// The time that the clocks of a zone show at an instant.
fn wall_clock(zone: Zone, instant: i64) -> Result<i64> {
    shifted(instant, zone.offset_at(date_time(instant)?).local_minus_utc())
}

/// When the clocks of a zone show a time.
fn instant(zone: Zone, local: i64) -> Result<i64> {
    shifted(local, -zone.offset_when(date_time(local)?).local_minus_utc())
}

fn shifted(time: i64, seconds: i32) -> Result<i64> {
    time.checked_add(i64::from(seconds) * 1_000_000)
        .ok_or_else(|| exec_datafusion_err!("overflow: the timestamp is too far from 1970"))
}
