//! Intervals: how they are read.
//!
//! ```text
//! Postgres   1 year 2 mons -3 days +04:05:06.789   @ 1 hour ago   1.5 weeks
//! SQL        1-2   3 4:05:06   -5
//! ISO 8601   P1Y2M3DT4H5M6.789S   P2W
//! ```

use arrow::datatypes::IntervalMonthDayNano;

use super::super::numbers::number::trim;
use super::super::rejected::{Rejected, Result, code, shown};

const SECOND: f64 = 1e6;
const DAY: f64 = 86_400.0 * SECOND;
const DAYS_OF_MONTH: f64 = 30.0;

/// A unit: months, days or microseconds, and how many of them.
#[derive(Clone, Copy)]
enum Unit {
    Months(i64),
    Days(i64),
    Microseconds(i64),
}

/// The sum of an interval's parts.
#[derive(Default)]
struct Sum {
    months: i64,
    days: i64,
    microseconds: i64,
    /// Whether a field of a time is one that a clock does not show.
    is_beyond: bool,
}

/// A number: its whole part, and its fraction with the same sign.
#[derive(Clone, Copy)]
struct Number {
    whole: i64,
    fraction: f64,
}

/// Reads an interval.
pub(in super::super) fn read(text: &[u8]) -> Result<IntervalMonthDayNano> {
    let trimmed = trim(text);
    let sum = match trimmed {
        [b'P', parts @ ..] => iso(parts),
        parts => postgres(parts),
    };
    let sum = sum.ok_or_else(|| Rejected::time("interval", text))?;
    let interval = of_parts(sum.months, sum.days, sum.microseconds).ok();
    interval.filter(|_| !sum.is_beyond).ok_or_else(|| {
        let message = format!("interval field value out of range: \"{}\"", shown(text));
        Rejected::new(code::INTERVAL_RANGE, message)
    })
}

/// The interval of so many months, days and microseconds.
pub(in super::super) fn of_parts(
    months: i64,
    days: i64,
    microseconds: i64,
) -> Result<IntervalMonthDayNano> {
    let parts = || {
        let nanoseconds = microseconds.checked_mul(1_000)?;
        let (months, days) = (i32::try_from(months).ok()?, i32::try_from(days).ok()?);
        Some(IntervalMonthDayNano { months, days, nanoseconds })
    };
    parts().ok_or_else(|| Rejected::time_range("interval"))
}

impl Sum {
    fn add(&mut self, number: Number, unit: Unit) -> Option<()> {
        match unit {
            Unit::Months(months) => {
                self.months = self.months.checked_add(number.whole.checked_mul(months)?)?;
                match months {
                    1 => self.add_days(number.fraction * DAYS_OF_MONTH)?,
                    months => {
                        let more = (number.fraction * months as f64).round_ties_even() as i64;
                        self.months = self.months.checked_add(more)?;
                    }
                }
            }
            Unit::Days(days) => {
                self.days = self.days.checked_add(number.whole.checked_mul(days)?)?;
                match days {
                    1 => self.add_microseconds(number.fraction * DAY)?,
                    days => self.add_days(number.fraction * days as f64)?,
                }
            }
            // Postgres rounds small units as a whole.
            Unit::Microseconds(microseconds @ ..=1_000) if number.whole.abs() < 1 << 40 => {
                self.add_microseconds(
                    (number.whole as f64 + number.fraction) * microseconds as f64,
                )?;
            }
            Unit::Microseconds(microseconds) => {
                let whole = number.whole.checked_mul(microseconds)?;
                self.microseconds = self.microseconds.checked_add(whole)?;
                self.add_microseconds(number.fraction * microseconds as f64)?;
            }
        }
        Some(())
    }

    fn add_days(&mut self, days: f64) -> Option<()> {
        self.days = self.days.checked_add(days.trunc() as i64)?;
        self.add_microseconds(days.fract() * DAY)
    }

    fn add_microseconds(&mut self, microseconds: f64) -> Option<()> {
        self.microseconds = self.microseconds.checked_add(microseconds.round_ties_even() as i64)?;
        Some(())
    }
}

/// Words with numbers before them, and times of day.
fn postgres(text: &[u8]) -> Option<Sum> {
    let text = std::str::from_utf8(text).ok()?;
    let mut sum = Sum::default();
    let mut words = Words(text.strip_prefix('@').unwrap_or(text));
    let mut is_empty = true;
    let mut is_ago = false;
    while let Some(word) = words.next() {
        if is_ago {
            return None;
        }
        is_ago = is_end(word) && !is_empty;
        if is_ago {
            continue;
        }
        is_empty = false;
        let (is_negative, digits) = match word.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, word.strip_prefix('+').unwrap_or(word)),
        };
        if digits.contains(':') {
            let time = time(digits)?;
            let microseconds = if is_negative { -time.microseconds } else { time.microseconds };
            sum.microseconds = sum.microseconds.checked_add(microseconds)?;
            sum.is_beyond |= time.is_beyond;
        } else if let Some((years, months)) = digits.split_once('-') {
            let (years, months) = (number(years, is_negative)?, number(months, is_negative)?);
            sum.add(years, Unit::Months(12))?;
            sum.add(months, Unit::Months(1))?;
        } else {
            let number = number(digits, is_negative)?;
            let unit = match words.peek() {
                Some(next)
                    if next.starts_with(|first: char| first.is_ascii_alphabetic())
                        && !is_end(next) =>
                {
                    words.next();
                    unit(next)?
                }
                // Days stand without their unit before a time and before hours.
                Some(next) if next.contains(':') || words.has_hours() => Unit::Days(1),
                Some(next) if !is_end(next) => return None,
                _ => Unit::Microseconds(1_000_000),
            };
            sum.add(number, unit)?;
        }
    }
    if is_empty {
        return None;
    }
    if is_ago {
        sum.months = sum.months.checked_neg()?;
        sum.days = sum.days.checked_neg()?;
        sum.microseconds = sum.microseconds.checked_neg()?;
    }
    Some(sum)
}

/// Whether a word turns the signs of all numbers before it.
fn is_end(word: &str) -> bool {
    word.eq_ignore_ascii_case("ago")
}

/// The words of a text: letters apart from digits, with signs at numbers.
#[derive(Clone, Copy)]
struct Words<'a>(&'a str);

impl<'a> Words<'a> {
    fn next(&mut self) -> Option<&'a str> {
        let is_blank = |character: char| character.is_ascii_whitespace() || character == ',';
        let rest = self.0.trim_start_matches(is_blank);
        let first = rest.chars().next()?;
        let end = match first.is_ascii_alphabetic() {
            true => rest.find(|character: char| !character.is_ascii_alphabetic()),
            false => {
                rest.find(|character: char| is_blank(character) || character.is_ascii_alphabetic())
            }
        };
        let (word, rest) = rest.split_at(end.unwrap_or(rest.len()));
        self.0 = rest;
        Some(word)
    }

    fn peek(mut self) -> Option<&'a str> {
        self.next()
    }

    /// Whether a number of hours comes next.
    fn has_hours(mut self) -> bool {
        self.next();
        let unit = self.next().and_then(unit);
        matches!(unit, Some(Unit::Microseconds(3_600_000_000)))
    }
}

/// `h:m`, `h:m:s`, `m:s.f`.
fn time(text: &str) -> Option<Sum> {
    let mut parts = text.split(':');
    let (first, second, third) = (parts.next()?, parts.next()?, parts.next());
    if parts.next().is_some() {
        return None;
    }
    let (hours, minutes, seconds) = match third {
        Some(seconds) => (first, second, seconds),
        None if second.contains('.') => ("0", first, second),
        None => (first, second, "0"),
    };
    let whole = |digits: &str| {
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| digits.parse::<i64>().ok())?
    };
    let (hours, minutes, seconds) = (whole(hours)?, whole(minutes)?, number(seconds, false)?);
    let mut sum = Sum { is_beyond: minutes > 59 || seconds.whole > 60, ..Sum::default() };
    sum.add(Number { whole: hours, fraction: 0.0 }, Unit::Microseconds(3_600_000_000))?;
    sum.add(Number { whole: minutes, fraction: 0.0 }, Unit::Microseconds(60_000_000))?;
    sum.add(seconds, Unit::Microseconds(1_000_000))?;
    Some(sum)
}

/// Digits with or without a point.
fn number(digits: &str, is_negative: bool) -> Option<Number> {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = whole.len() + fraction.len() > 0
        && whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit());
    if !is_number {
        return None;
    }
    let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let fraction: f64 = format!("0.{fraction}0").parse().ok()?;
    Some(match is_negative {
        true => Number { whole: -whole, fraction: -fraction },
        false => Number { whole, fraction },
    })
}

fn unit(name: &str) -> Option<Unit> {
    let name = name.to_ascii_lowercase();
    Some(match name.as_str() {
        "us" | "usec" | "usecs" | "usecond" | "useconds" | "microsecond" | "microseconds" => {
            Unit::Microseconds(1)
        }
        "ms" | "msec" | "msecs" | "msecond" | "mseconds" | "millisecond" | "milliseconds" => {
            Unit::Microseconds(1_000)
        }
        "s" | "sec" | "secs" | "second" | "seconds" => Unit::Microseconds(1_000_000),
        "m" | "min" | "mins" | "minute" | "minutes" => Unit::Microseconds(60_000_000),
        "h" | "hr" | "hrs" | "hour" | "hours" => Unit::Microseconds(3_600_000_000),
        "d" | "day" | "days" => Unit::Days(1),
        "w" | "week" | "weeks" => Unit::Days(7),
        "mon" | "mons" | "month" | "months" => Unit::Months(1),
        "y" | "yr" | "yrs" | "year" | "years" => Unit::Months(12),
        "dec" | "decs" | "decade" | "decades" => Unit::Months(120),
        "c" | "cent" | "century" | "centuries" => Unit::Months(1_200),
        "mil" | "mils" | "millennium" | "millennia" => Unit::Months(12_000),
        _ => return None,
    })
}

/// The parts after the `P`, each a number and a letter.
fn iso(text: &[u8]) -> Option<Sum> {
    let mut rest = std::str::from_utf8(text).ok()?;
    let mut sum = Sum::default();
    let mut is_time = false;
    let mut is_empty = true;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('T').filter(|_| !is_time) {
            (rest, is_time) = (after, true);
            continue;
        }
        let end = rest.find(|character: char| character.is_ascii_alphabetic())?;
        let (digits, after) = rest.split_at(end);
        let unit = match (after.as_bytes().first()?, is_time) {
            (b'Y', false) => Unit::Months(12),
            (b'M', false) => Unit::Months(1),
            (b'W', false) => Unit::Days(7),
            (b'D', false) => Unit::Days(1),
            (b'H', true) => Unit::Microseconds(3_600_000_000),
            (b'M', true) => Unit::Microseconds(60_000_000),
            (b'S', true) => Unit::Microseconds(1_000_000),
            _ => return None,
        };
        let (is_negative, digits) = match digits.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, digits),
        };
        sum.add(number(digits, is_negative)?, unit)?;
        rest = &after[1..];
        is_empty = false;
    }
    (!is_empty).then_some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_have_several_forms() {
        for (text, months, days, microseconds) in [
            ("1 year 2 mons -3 days +04:05:06.789", 14, -3, 14_706_789_000),
            ("@ 1 hour ago", 0, 0, -3_600_000_000),
            ("1.5 weeks", 0, 10, 43_200_000_000),
            ("1-2", 14, 0, 0),
            ("-1-2", -14, 0, 0),
            ("3 4:05:06", 0, 3, 14_706_000_000),
            ("-5", 0, 0, -5_000_000),
            ("7 -3 hours", 0, 7, -10_800_000_000),
            ("P1Y2M3DT4H5M6.789S", 14, 3, 14_706_789_000),
            ("P2W", 0, 14, 0),
            ("PT-1.5S", 0, 0, -1_500_000),
            ("1day2hours", 0, 1, 7_200_000_000),
            ("0 years 1 mons 2 days 0 hours 3 mins 4.5 secs", 1, 2, 184_500_000),
            ("00:00:00", 0, 0, 0),
            ("1.5 years 1.5 months", 19, 15, 0),
        ] {
            let interval = read(text.as_bytes()).unwrap();
            let parts = (interval.months, interval.days, interval.nanoseconds / 1_000);
            assert_eq!(parts, (months, days, microseconds), "{text}");
        }
    }

    #[test]
    fn other_texts_are_no_intervals() {
        for text in [
            "",
            "@",
            "ago",
            "1 parsec",
            "1 day ago 1",
            "P",
            "PT",
            "P1",
            "P1H",
            "1:2:3:4",
            "1 ä",
            "ä",
            "- 1 day",
            "1.2.3 days",
        ] {
            assert_eq!(read(text.as_bytes()).map_err(|error| error.code()), Err("22007"), "{text}");
        }
        for text in ["3000000000 days", "1:60", "0:0:61"] {
            assert_eq!(read(text.as_bytes()).map_err(|error| error.code()), Err("22015"), "{text}");
        }
    }
}
