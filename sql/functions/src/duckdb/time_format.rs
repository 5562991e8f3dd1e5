//! `strftime` and `strptime`, with DuckDB's fields.

use std::sync::Arc;

use arrow::array::types::TimestampMicrosecondType;
use arrow::array::{ArrayRef, AsArray, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::DataType;
use chrono::format::{Item, Parsed, StrftimeItems, parse};
use datafusion_common::{Result, exec_datafusion_err, plan_err};
use datafusion_expr::ScalarUDF;

use super::plain::{Plain, texts, wrong_number};
use super::time::{TIMESTAMP, as_time, date_time};

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    vec![
        Plain::function(&["strftime"], time_and_format, |_| DataType::Utf8, strftime),
        Plain::function(&["strptime"], texts::<2, 2>, |_| TIMESTAMP, |of| strptime(of, false)),
        Plain::function(&["try_strptime"], texts::<2, 2>, |_| TIMESTAMP, |of| strptime(of, true)),
    ]
}

/// A time and a format, in any order.
fn time_and_format(arguments: &[DataType]) -> Result<Vec<DataType>> {
    match arguments {
        [format, time] if format.is_string() && !time.is_string() => {
            Ok(vec![DataType::Utf8, as_time(time)?])
        }
        [time, format] if format.is_string() || format.is_null() => {
            Ok(vec![as_time(time)?, DataType::Utf8])
        }
        [_, _] => plan_err!("a time and a format are expected"),
        _ => wrong_number(2, 2, arguments.len()),
    }
}

/// The format of the library that means the same as one of DuckDB.
fn translated(format: &str, reads: bool) -> String {
    let mut translated = String::with_capacity(format.len() + 16);
    let mut characters = format.chars();
    while let Some(character) = characters.next() {
        if character != '%' {
            translated.push(character);
            continue;
        }
        match characters.next() {
            // The library reads digits after a point only together with the point.
            Some('f' | 'g' | 'n') if reads && translated.ends_with('.') => {
                translated.pop();
                translated.push_str("%.f");
            }
            Some('f') => translated.push_str("%6f"),
            Some('g') => translated.push_str("%3f"),
            Some('n') => translated.push_str("%9f"),
            Some('c') => translated.push_str("%Y-%m-%d %H:%M:%S"),
            Some('x') => translated.push_str("%Y-%m-%d"),
            Some('X') => translated.push_str("%H:%M:%S"),
            Some('z') if !reads => translated.push_str("+00"),
            Some('Z') if !reads => {}
            next => {
                translated.push('%');
                translated.extend(next);
            }
        }
    }
    translated
}

/// The formats of rows, of which equal ones that follow each other are read once.
struct Formats {
    reads: bool,
    last: Option<(String, Vec<Item<'static>>)>,
}

impl Formats {
    fn items(&mut self, format: &str) -> Result<&[Item<'static>]> {
        if self.last.as_ref().is_none_or(|(known, _)| known != format) {
            let items = StrftimeItems::new(&translated(format, self.reads)).parse_to_owned();
            let items =
                items.map_err(|_| exec_datafusion_err!("\"{format}\" is no format of a time"))?;
            self.last = Some((format.to_owned(), items));
        }
        Ok(self.last.as_ref().map_or(&[], |(_, items)| items))
    }
}

fn strftime(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let is_reversed = arguments[0].data_type() == &DataType::Utf8;
    let (times, formats) = if is_reversed { (1, 0) } else { (0, 1) };
    let times = arguments[times].as_primitive::<TimestampMicrosecondType>();
    let formats = arguments[formats].as_string::<i32>();
    let mut read = Formats { reads: false, last: None };
    let written = times.iter().zip(formats).map(|(time, format)| match (time, format) {
        (Some(time), Some(format)) => {
            let items = read.items(format)?.iter();
            Ok(Some(date_time(time)?.format_with_items(items).to_string()))
        }
        _ => Ok(None),
    });
    Ok(Arc::new(written.collect::<Result<StringArray>>()?))
}

fn strptime(arguments: &[ArrayRef], or_null: bool) -> Result<ArrayRef> {
    let texts = arguments[0].as_string::<i32>();
    let formats = arguments[1].as_string::<i32>();
    let mut read = Formats { reads: true, last: None };
    let times = texts.iter().zip(formats).map(|(text, format)| {
        let (Some(text), Some(format)) = (text, format) else { return Ok(None) };
        match time_of(text, read.items(format)?) {
            None if !or_null => {
                Err(exec_datafusion_err!("\"{text}\" is no time in the format \"{format}\""))
            }
            time => Ok(time),
        }
    });
    Ok(Arc::new(times.collect::<Result<TimestampMicrosecondArray>>()?))
}

/// The time that a text is. Fields that the format leaves out are those of 1900-01-01 00:00.
fn time_of(text: &str, items: &[Item<'static>]) -> Option<i64> {
    let mut parsed = Parsed::new();
    parse(&mut parsed, text.trim(), items.iter()).ok()?;
    if parsed.timestamp().is_none() {
        let has_year = parsed.year().is_some()
            || parsed.year_mod_100().is_some()
            || parsed.isoyear().is_some();
        if !has_year {
            parsed.set_year(1900).ok()?;
        }
        let has_day = parsed.ordinal().is_some()
            || parsed.week_from_sun().is_some()
            || parsed.week_from_mon().is_some()
            || parsed.isoweek().is_some();
        if !has_day {
            if parsed.month().is_none() {
                parsed.set_month(1).ok()?;
            }
            if parsed.day().is_none() {
                parsed.set_day(1).ok()?;
            }
        }
        if parsed.hour_mod_12().is_none() {
            parsed.set_hour(0).ok()?;
        } else if parsed.hour_div_12().is_none() {
            parsed.set_ampm(false).ok()?;
        }
        if parsed.minute().is_none() {
            parsed.set_minute(0).ok()?;
        }
    }
    let offset = parsed.offset().unwrap_or(0);
    let local = parsed.to_naive_datetime_with_offset(offset).ok()?;
    let local = local.and_utc().timestamp_micros();
    local.checked_sub(i64::from(offset) * 1_000_000)
}
