//! Dates, times of day and timestamps: how texts are read.
//!
//! Those forms are read of which Postgres has no doubt, because the year comes first. The engine's casts read the same, but for eras,
//! names of zones, and infinity.
//!
//! ```text
//! date       2024-01-31  2024-1-31  2024/01/31  2024.01.31  20240131
//! time       12:30  12:30:05  12:30:05.123456  123005 (after a date of digits)
//! moment     date [blanks | T] [time] [zone] [BC]
//! zone       Z  UTC  +02  +0200  +02:00  +02:00:30  Europe/Berlin
//! ```

use super::super::numbers::number::trim;
use super::super::rejected::{Rejected, Result, code, shown};
use super::calendar::Day;
use super::moment::{self, DAY, SECOND};
use super::zone::Zone;

/// The days from 1970 to a date; a time after it is left out.
pub(in super::super) fn date(text: &[u8]) -> Result<i32> {
    if let Some(is_positive) = infinity(text) {
        return Ok(if is_positive { i32::MAX } else { i32::MIN });
    }
    let moment = Moment::of(text).map_err(|wrong| wrong.rejected("date", text))?;
    moment::finite_date(moment.days)
}

/// The microseconds from midnight to a time of day; a date before it and a zone after it are left out.
pub(in super::super) fn time(text: &[u8]) -> Result<i64> {
    let time = time_of(text).map_err(|wrong| wrong.rejected("time", text))?;
    moment::time(time)
}

/// The microseconds from 1970 to a time in no zone; a zone after it is left out.
pub(in super::super) fn timestamp(text: &[u8]) -> Result<i64> {
    if let Some(is_positive) = infinity(text) {
        return Ok(if is_positive { i64::MAX } else { i64::MIN });
    }
    let moment = Moment::of(text).map_err(|wrong| wrong.rejected("timestamp", text))?;
    moment::finite_timestamp(moment.local())
}

/// The microseconds from 1970 to an instant, which is one of `zone` if it names none.
pub(in super::super) fn instant(text: &[u8], zone: Zone) -> Result<i64> {
    if let Some(is_positive) = infinity(text) {
        return Ok(if is_positive { i64::MAX } else { i64::MIN });
    }
    let kind = "timestamp with time zone";
    let moment = Moment::of(text).map_err(|wrong| wrong.rejected(kind, text))?;
    let local = moment.local();
    let zone = moment.zone.unwrap_or(zone);
    let near = local.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64;
    moment::finite_timestamp(local - i128::from(zone.offset_when(near)) * i128::from(SECOND))
}

/// Whether a text is infinity, and then whether it is positive.
fn infinity(text: &[u8]) -> Option<bool> {
    let text = trim(text);
    let (is_positive, name) = match text {
        [b'-', name @ ..] => (false, name),
        [b'+', name @ ..] => (true, name),
        name => (true, name),
    };
    name.eq_ignore_ascii_case(b"infinity").then_some(is_positive)
}

/// The fault of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrong {
    /// It has another form.
    Form,
    /// A field of it has a number that it cannot have.
    Field,
    /// No zone has its offset.
    Offset,
    /// There is no zone of its name.
    Zone,
}

impl Wrong {
    fn rejected(self, kind: &str, text: &[u8]) -> Rejected {
        let (code, message) = match self {
            Self::Form => return Rejected::time(kind, text),
            Self::Field => (code::TIME_RANGE, "date/time field value out of range"),
            Self::Offset => (code::ZONE, "time zone displacement out of range"),
            Self::Zone => (code::PARAMETER, "there is no such time zone"),
        };
        Rejected::new(code, format!("{message}: \"{}\"", shown(text)))
    }
}

/// The parts of a text.
struct Moment {
    /// From 1970.
    days: i64,
    /// Microseconds, up to and including 24:00.
    time: Option<i64>,
    zone: Option<Zone>,
}

impl Moment {
    fn of(text: &[u8]) -> std::result::Result<Self, Wrong> {
        let mut rest = Rest(trim(text));
        let (year, month, day, is_dense) = rest.date().ok_or(Wrong::Form)?;
        let before = rest;
        let has_t = rest.takes(b'T') || rest.takes(b't');
        rest.blanks();
        let time = match rest.time()? {
            None if is_dense => rest.dense_time()?,
            time => time,
        };
        if time.is_none() {
            if has_t {
                // A time has to follow a T.
                return Err(Wrong::Form);
            }
            rest = before;
        }
        let is_before = rest.era();
        let zone = rest.zone()?;
        if !rest.0.is_empty() {
            return Err(Wrong::Form);
        }
        let year = match is_before {
            true if year == 0 => return Err(Wrong::Field),
            true => 1 - year,
            // There is no year 0: the one before 1 is 1 BC.
            false if year == 0 => return Err(Wrong::Field),
            false => year,
        };
        let day = Day::new(year, month, day).ok_or(Wrong::Field)?;
        Ok(Self { days: day.days(), time, zone })
    }

    /// The microseconds that a clock has counted since 1970.
    fn local(&self) -> i128 {
        i128::from(self.days) * i128::from(DAY) + i128::from(self.time.unwrap_or(0))
    }
}

fn time_of(text: &[u8]) -> std::result::Result<i64, Wrong> {
    let mut rest = Rest(trim(text));
    match rest.time()? {
        Some(time) => {
            rest.zone()?;
            if rest.0.is_empty() { Ok(time) } else { Err(Wrong::Form) }
        }
        None => Moment::of(text)?.time.ok_or(Wrong::Form),
    }
}

/// The rest of a text.
#[derive(Clone, Copy)]
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
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
        (least..=most).contains(&digits).then(|| self.first(digits))
    }

    /// The number of so many digits, which are there.
    fn first(&mut self, digits: usize) -> i64 {
        let (number, rest) = self.0.split_at(digits);
        self.0 = rest;
        number.iter().fold(0, |all, digit| all * 10 + i64::from(digit - b'0'))
    }

    /// The year, month and day of a date, and whether it is written without signs between them.
    fn date(&mut self) -> Option<(i64, u8, u8, bool)> {
        let digits = self.digits();
        if (8..=10).contains(&digits) {
            let (year, month, day) = (self.first(digits - 4), self.first(2), self.first(2));
            return Some((year, month as u8, day as u8, true));
        }
        let year = self.number(4, 7)?;
        let sign = match self.0 {
            [sign @ (b'-' | b'/' | b'.'), ..] => *sign,
            _ => return None,
        };
        self.takes(sign);
        let month = self.number(1, 2)?;
        let day = self.takes(sign).then(|| self.number(1, 2))??;
        Some((year, month as u8, day as u8, false))
    }

    /// A time with colons; `None` if there is none, and then nothing is taken.
    fn time(&mut self) -> std::result::Result<Option<i64>, Wrong> {
        let mut rest = *self;
        let fields = |rest: &mut Self| {
            let hour = rest.number(1, 2)?;
            let minute = rest.takes(b':').then(|| rest.number(1, 2))??;
            let second = if rest.takes(b':') { rest.number(1, 2)? } else { 0 };
            Some((hour, minute, second))
        };
        let Some((hour, minute, second)) = fields(&mut rest) else { return Ok(None) };
        let time = clock(hour, minute, second, rest.fraction())?;
        *self = rest;
        Ok(Some(time))
    }

    /// `123005`, with a fraction.
    fn dense_time(&mut self) -> std::result::Result<Option<i64>, Wrong> {
        let (hour, minute, second) = match self.digits() {
            6 => (self.first(2), self.first(2), self.first(2)),
            4 => (self.first(2), self.first(2), 0),
            _ => return Ok(None),
        };
        clock(hour, minute, second, self.fraction()).map(Some)
    }

    /// The microseconds of the digits after a point, if there is one.
    fn fraction(&mut self) -> i64 {
        if !self.takes(b'.') {
            return 0;
        }
        let digits = &self.0[..self.digits()];
        self.0 = &self.0[digits.len()..];
        if digits.len() > 6 {
            // Postgres rounds the binary fraction, which is why ties may go either way.
            let text = String::from_utf8_lossy(&digits[..digits.len().min(24)]);
            let fraction: f64 = format!("0.{text}").parse().unwrap_or(0.0);
            return (fraction * 1e6).round_ties_even() as i64;
        }
        let digit = |place: usize| digits.get(place).map_or(0, |digit| i64::from(digit - b'0'));
        (0..6).fold(0, |all, place| all * 10 + digit(place))
    }

    /// Whether the text ends in the era before the first year; that is taken, and the other one.
    fn era(&mut self) -> bool {
        let Some((rest, era)) = self.0.split_last_chunk::<2>() else { return false };
        let is_before = era.eq_ignore_ascii_case(b"BC");
        // After letters it is the end of a name.
        let is_era = (is_before || era.eq_ignore_ascii_case(b"AD"))
            && !rest.last().is_some_and(u8::is_ascii_alphabetic);
        if is_era {
            self.0 = rest.trim_ascii_end();
        }
        is_era && is_before
    }

    /// The zone that is the rest of the text.
    fn zone(&mut self) -> std::result::Result<Option<Zone>, Wrong> {
        self.blanks();
        let sign = match self.0 {
            [] => return Ok(None),
            [b'+', rest @ ..] => {
                self.0 = rest;
                1
            }
            [b'-', rest @ ..] => {
                self.0 = rest;
                -1
            }
            name => {
                self.0 = &[];
                // The names of the database begin with a letter.
                let is_name = name[0].is_ascii_alphabetic() && name.contains(&b'/');
                let wrong = if is_name { Wrong::Zone } else { Wrong::Form };
                let zone = std::str::from_utf8(name).ok().and_then(Zone::named);
                return zone.map(Some).ok_or(wrong);
            }
        };
        let fields = |rest: &mut Self| match rest.digits() {
            digits @ 1..=2 => {
                let hours = rest.first(digits);
                let minutes = if rest.takes(b':') { rest.number(2, 2)? } else { 0 };
                Some((hours, minutes))
            }
            4 => Some((rest.first(2), rest.first(2))),
            _ => None,
        };
        let (hours, minutes) = fields(self).ok_or(Wrong::Form)?;
        let seconds = if self.takes(b':') { self.number(2, 2).ok_or(Wrong::Form)? } else { 0 };
        if hours > 15 || minutes > 59 || seconds > 59 {
            return Err(Wrong::Offset);
        }
        let offset = sign * (hours * 3_600 + minutes * 60 + seconds);
        Ok(Some(Zone::Fixed(offset as i32)))
    }
}

/// The microseconds of a time, up to 24:00 and with a second that is inserted.
fn clock(hour: i64, minute: i64, second: i64, fraction: i64) -> std::result::Result<i64, Wrong> {
    let time = ((hour * 60 + minute) * 60 + second) * SECOND + fraction;
    let is_time = hour <= 24 && minute < 60 && second <= 60 && time <= DAY;
    if is_time { Ok(time) } else { Err(Wrong::Field) }
}

#[cfg(test)]
mod tests {
    use chrono_tz::Tz;

    use super::*;

    #[test]
    fn times_may_leave_seconds_and_zeros_out() {
        for text in [
            "1970-01-02 03:04",
            "1970-01-02T03:04",
            "1970-01-02 03:04 Z",
            "1970/1/2 3:4:00.",
            "1970.01.02   03:04",
            " 19700102 0304 ",
            "19700102T030400",
            "1970-01-02 03:04 UTC",
            "1970-01-02 03:04 AD",
        ] {
            let expected = DAY + (3 * 60 + 4) * 60 * SECOND;
            assert_eq!(timestamp(text.as_bytes()), Ok(expected), "{text}");
            assert_eq!(instant(text.as_bytes(), Zone::UTC), Ok(expected), "{text}");
            assert_eq!(date(text.as_bytes()), Ok(1), "{text}");
            assert_eq!(time(text.as_bytes()), Ok(expected - DAY), "{text}");
        }
    }

    #[test]
    fn zones_move_instants() {
        let berlin = Zone::Named(Tz::Europe__Berlin);
        let at = |text: &str| instant(text.as_bytes(), berlin).map(|time| time / SECOND);
        assert_eq!(at("1970-01-01 01:00"), Ok(0));
        assert_eq!(at("1970-01-01 00:00Z"), Ok(0));
        assert_eq!(at("1970-01-01 05:30+05:30"), Ok(0));
        assert_eq!(at("1970-01-01 05:30 Asia/Kolkata"), Ok(0));
        // Skipped, and shown twice.
        assert_eq!(at("2024-03-31 02:30"), at("2024-03-31 03:30+02"));
        assert_eq!(at("2024-10-27 02:30"), at("2024-10-27 02:30+01"));
        assert_eq!(at("0001-01-01 00:53:28 BC"), at("0001-01-01 00:00:00+00 BC"));
    }

    #[test]
    fn other_texts_are_refused_with_their_reason() {
        let code = |text: &str| timestamp(text.as_bytes()).map_err(|error| error.code());
        for text in [
            "",
            "2024",
            "2024-01",
            "x",
            "2024-01-02T",
            "2024-01-02 03",
            "2024-01-02 3:4 nowhere",
            "24-1-2",
            "2024-01/02",
        ] {
            assert_eq!(code(text), Err("22007"), "{text}");
        }
        for text in [
            "2023-02-29",
            "2024-01-02 24:01",
            "2024-01-02 3:60",
            "0000-01-01",
            "294248-01-01",
            "9999999-01-01",
        ] {
            assert_eq!(code(text), Err("22008"), "{text}");
        }
        assert_eq!(time(b"24:00").map_err(|error| error.code()), Err("22008"));
        assert_eq!(timestamp(b"2024-01-01 23:59:60"), timestamp(b"2024-01-02"));
        assert_eq!((timestamp(b"-Infinity"), date(b"infinity")), (Ok(i64::MIN), Ok(i32::MAX)));
    }
}
