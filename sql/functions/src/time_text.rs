//! Texts as dates and times.
//!
//! Casts, literals and readers of files share this, so that a text is the same time wherever it stands. It reads what
//! PostgreSQL reads without a doubt about the order of the fields: the year comes first.
//!
//! ```text
//! date       2024-01-31  2024-1-31  2024/01/31  2024.01.31  20240131, a year of four to six digits
//! time       12:30  12:30:05  1:2:3  12:30:05.123456  123005 (behind a date of digits)
//! timestamp  date  date [blanks | T] time [blanks] [zone]
//! zone       Z  UTC  GMT  +02  +0200  +02:00  +02:00:30
//! ```
//!
//! Fractions of microseconds are rounded. Arrow cuts them off, and of its parsers only some take blanks around a text, fields
//! of one digit, and times without seconds.

use chrono::{Datelike, NaiveDate};

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;

/// The days from 1970 to a date; the time after it is left out. `None` for another text.
pub fn date(text: &str) -> Option<i32> {
    let parts = Parts::of(text)?;
    i32::try_from(parts.days).ok()
}

/// The microseconds from 1970 to a time in no zone; a zone after it is left out. `None` for another text.
pub fn timestamp(text: &str) -> Option<i64> {
    let parts = Parts::of(text)?;
    parts.days.checked_mul(DAY)?.checked_add(parts.time)
}

/// The microseconds from 1970 to an instant, which is one in UTC without a zone. `None` for another text.
pub fn instant(text: &str) -> Option<i64> {
    let parts = Parts::of(text)?;
    let local = parts.days.checked_mul(DAY)?.checked_add(parts.time)?;
    local.checked_sub(parts.offset * SECOND)
}

/// The microseconds from midnight to a time of day; a date before it and a zone after it are left out. `None` for another text.
pub fn time_of_day(text: &str) -> Option<i64> {
    let mut rest = Rest(text.trim_ascii().as_bytes());
    let time = match rest.time() {
        Some(time) => {
            rest.zone()?;
            rest.0.is_empty().then_some(time)?
        }
        None => Parts::of(text).filter(|parts| parts.has_time)?.time,
    };
    (time < DAY).then_some(time)
}

/// The parts of a text.
struct Parts {
    /// From 1970.
    days: i64,
    has_time: bool,
    /// Microseconds, up to and including 24:00.
    time: i64,
    /// The seconds by which its zone is ahead of UTC.
    offset: i64,
}

impl Parts {
    fn of(text: &str) -> Option<Parts> {
        let mut rest = Rest(text.trim_ascii().as_bytes());
        let (days, is_dense) = rest.date()?;
        let before = rest.0;
        let has_t = matches!(rest.0, [b'T' | b't', ..]);
        if has_t {
            rest.0 = &rest.0[1..];
        } else {
            rest.blanks();
        }
        let time = match is_dense {
            true => rest.time().or_else(|| rest.dense_time()),
            false => rest.time(),
        };
        if time.is_none() {
            // A T says that a time follows.
            rest.0 = if has_t { return None } else { before };
        }
        let offset = rest.zone()?;
        let time = (time.is_some(), time.unwrap_or(0));
        rest.0.is_empty().then_some(Parts { days, has_time: time.0, time: time.1, offset })
    }
}

/// The rest of a text.
#[derive(Clone, Copy)]
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn blanks(&mut self) {
        self.0 = self.0.trim_ascii_start();
    }

    fn takes(&mut self, byte: u8) -> bool {
        match self.0 {
            [first, rest @ ..] if *first == byte => {
                self.0 = rest;
                true
            }
            _ => false,
        }
    }

    /// How many digits come next.
    fn digits(&self) -> usize {
        self.0.iter().take_while(|byte| byte.is_ascii_digit()).count()
    }

    /// The number of the next digits, if there are between `least` and `most`.
    fn number(&mut self, least: usize, most: usize) -> Option<i64> {
        let digits = self.digits();
        if !(least..=most).contains(&digits) {
            return None;
        }
        self.first(digits)
    }

    /// The number of so many digits, which are there.
    fn first(&mut self, digits: usize) -> Option<i64> {
        let (number, rest) = self.0.split_at_checked(digits)?;
        self.0 = rest;
        number.iter().try_fold(0_i64, |all, digit| {
            digit.is_ascii_digit().then(|| all * 10 + i64::from(digit - b'0'))
        })
    }

    /// A date, and whether it is written without signs between its fields.
    fn date(&mut self) -> Option<(i64, bool)> {
        let digits = self.digits();
        if digits == 8 {
            let (year, month, day) = (self.first(4)?, self.first(2)?, self.first(2)?);
            return Some((days(year, month, day)?, true));
        }
        let year = self.number(4, 6)?;
        let sign = match self.0 {
            [sign @ (b'-' | b'/' | b'.'), ..] => *sign,
            _ => return None,
        };
        self.takes(sign);
        let month = self.number(1, 2)?;
        let day = self.takes(sign).then(|| self.number(1, 2))??;
        Some((days(year, month, day)?, false))
    }

    /// A time with colons, which changes nothing if there is none.
    fn time(&mut self) -> Option<i64> {
        let mut rest = *self;
        let hour = rest.number(1, 2)?;
        let minute = rest.takes(b':').then(|| rest.number(1, 2))??;
        let second = match rest.takes(b':') {
            true => rest.number(1, 2)?,
            false => 0,
        };
        let time = time(hour, minute, second)?.checked_add(rest.fraction())?;
        *self = rest;
        (time <= DAY).then_some(time)
    }

    /// `123005`, with a fraction.
    fn dense_time(&mut self) -> Option<i64> {
        let mut rest = *self;
        let (hour, minute, second) = match rest.digits() {
            6 => (rest.first(2)?, rest.first(2)?, rest.first(2)?),
            4 => (rest.first(2)?, rest.first(2)?, 0),
            _ => return None,
        };
        let time = time(hour, minute, second)?.checked_add(rest.fraction())?;
        *self = rest;
        (time <= DAY).then_some(time)
    }

    /// The microseconds of the digits after a point, if there is one.
    fn fraction(&mut self) -> i64 {
        if !self.takes(b'.') {
            return 0;
        }
        let digits = &self.0[..self.digits()];
        self.0 = &self.0[digits.len()..];
        let digit = |place: usize| digits.get(place).map_or(0, |digit| i64::from(digit - b'0'));
        let microseconds = (0..6).fold(0, |all, place| all * 10 + digit(place));
        microseconds + i64::from(digit(6) >= 5)
    }

    /// The seconds by which a zone is ahead of UTC; zero without one.
    fn zone(&mut self) -> Option<i64> {
        self.blanks();
        let sign = match self.0 {
            [] => return Some(0),
            [b'+', rest @ ..] => {
                self.0 = rest;
                1
            }
            [b'-', rest @ ..] => {
                self.0 = rest;
                -1
            }
            letters => {
                let is_utc = ["z", "utc", "gmt"]
                    .iter()
                    .any(|name| letters.eq_ignore_ascii_case(name.as_bytes()));
                self.0 = &[];
                return is_utc.then_some(0);
            }
        };
        let (hours, minutes) = match self.digits() {
            digits @ 1..=2 => {
                let hours = self.first(digits)?;
                let minutes = if self.takes(b':') { self.number(2, 2)? } else { 0 };
                (hours, minutes)
            }
            4 => (self.first(2)?, self.first(2)?),
            _ => return None,
        };
        let seconds = if self.takes(b':') { self.number(2, 2)? } else { 0 };
        let is_offset = hours < 16 && minutes < 60 && seconds < 60;
        is_offset.then_some(sign * (hours * 3_600 + minutes * 60 + seconds))
    }
}

/// The microseconds of a time, up to 24:00 and with a second that is inserted.
fn time(hour: i64, minute: i64, second: i64) -> Option<i64> {
    let is_time = hour <= 24 && minute < 60 && second <= 60;
    is_time.then_some(((hour * 60 + minute) * 60 + second) * SECOND)
}

/// The days from 1970 to a date.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    let (month, day) = (u32::try_from(month).ok()?, u32::try_from(day).ok()?);
    let date = NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, day)?;
    Some(i64::from(date.num_days_from_ce()) - 719_163)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2024-01-02.
    const THE_DAY: i64 = 19_724;

    fn at(hour: i64, minute: i64, second: i64) -> Option<i64> {
        Some(THE_DAY * DAY + ((hour * 60 + minute) * 60 + second) * SECOND)
    }

    #[test]
    fn times_may_leave_seconds_and_zeros_out() {
        for text in [
            "2024-01-02 03:04",
            "2024-01-02T03:04",
            "2024-01-02t03:04z",
            "2024-01-02 03:04 UTC",
            "2024/01/02 03:04:00",
            "2024.01.02 3:4",
            "2024-1-2 3:04:00.",
            "  2024-01-02   03:04 ",
            "20240102 0304",
            "20240102T030400",
            "20240102 03:04+00",
        ] {
            assert_eq!(timestamp(text), at(3, 4, 0), "{text}");
            assert_eq!(instant(text), at(3, 4, 0), "{text}");
            assert_eq!(date(text).map(i64::from), Some(THE_DAY), "{text}");
        }
        for text in ["2024-01-02", "2024-1-2", " 20240102 ", "2024/1/02", "2024-01-02Z"] {
            assert_eq!(timestamp(text), at(0, 0, 0), "{text}");
            assert_eq!(date(text).map(i64::from), Some(THE_DAY), "{text}");
        }
    }

    #[test]
    fn a_zone_moves_instants_only() {
        for zone in ["+02", "+0200", "+02:00", " +02:00", "+2", "+02:00:00"] {
            let text = format!("2024-01-02 03:04{zone}");
            assert_eq!(timestamp(&text), at(3, 4, 0), "{text}");
            assert_eq!(instant(&text), at(1, 4, 0), "{text}");
        }
        assert_eq!(instant("2024-01-02 03:04-0230"), at(5, 34, 0));
    }

    #[test]
    fn fractions_are_rounded_to_microseconds() {
        let time = |fraction: &str| timestamp(&format!("2024-01-02 03:04:05.{fraction}"));
        assert_eq!(time("5"), at(3, 4, 5).map(|time| time + 500_000));
        assert_eq!(time("1234565"), at(3, 4, 5).map(|time| time + 123_457));
        assert_eq!(time("9999996"), at(3, 4, 6));
        assert_eq!(time("00000049999999999999999999"), at(3, 4, 5));
    }

    #[test]
    fn days_end_at_24_hours() {
        assert_eq!(timestamp("2024-01-02 24:00:00"), at(24, 0, 0));
        assert_eq!(timestamp("2024-01-02 23:59:60"), at(24, 0, 0));
        assert_eq!(time_of_day("23:59:59.999999"), Some(DAY - 1));
        assert_eq!(time_of_day(" 10:00 "), Some(36_000 * SECOND));
        assert_eq!(time_of_day("2024-01-02 10:00"), Some(36_000 * SECOND));
        for text in ["24:00", "10", "1000", "10:60", "25:00", "2024-01-02", ""] {
            assert_eq!(time_of_day(text), None, "{text}");
        }
    }

    #[test]
    fn years_have_four_to_six_digits() {
        assert_eq!(date("0001-01-01"), Some(-719_162));
        assert_eq!(date("9999-12-31"), Some(2_932_896));
        assert_eq!(date("12024-01-02").map(|day| day > 2_932_896), Some(true));
        assert_eq!(timestamp("999999-01-01"), None);
    }

    #[test]
    fn other_texts_are_no_times() {
        for text in [
            "",
            " ",
            "2024",
            "2024-01",
            "24-01-02",
            "01-02-2024",
            "2024-02-30",
            "2023-02-29",
            "2024-13-01",
            "2024-01/02",
            "2024-01-02T",
            "2024-01-02 03",
            "2024-01-02 24:00:01",
            "2024-01-02 03:60",
            "2024-01-02 03:04:61",
            "2024-01-02 03:04+",
            "2024-01-02 03:04+16",
            "2024-01-02 03:04 noon",
            "2024-01-02 03:04:05,5",
            "2024-01-02x",
            "infinity",
            "2024-01-02 ä",
            "-0001-01-01",
        ] {
            assert_eq!(timestamp(text), None, "{text}");
            assert_eq!(instant(text), None, "{text}");
            assert_eq!(date(text), None, "{text}");
        }
    }
}
