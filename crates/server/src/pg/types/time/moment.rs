//! Dates, times of day and timestamps: how they are written, and their bytes.
//!
//! Arrow counts from 1970, Postgres from 2000. The last number of each is infinity.

use bytes::BytesMut;

use super::super::line::Line;
use super::super::rejected::{Rejected, Result};
use super::calendar::Day;
use super::zone::Zone;

pub(in super::super) const SECOND: i64 = 1_000_000;
pub(in super::super) const DAY: i64 = 86_400 * SECOND;
/// The days from 1970-01-01 to 2000-01-01.
const DAYS_TO_2000: i32 = 10_957;
/// The microseconds from 1970-01-01 to 2000-01-01.
const TO_2000: i64 = DAYS_TO_2000 as i64 * DAY;

/// Writes a date of days from 1970.
pub(in super::super) fn put_date(days: i32, out: &mut BytesMut) {
    let mut line = Line::new();
    match days {
        i32::MAX => line.text(b"infinity"),
        i32::MIN => line.text(b"-infinity"),
        days => {
            let day = Day::of(i64::from(days));
            add_day(day, &mut line);
            add_era(day, &mut line);
        }
    }
    line.put(out);
}

/// Writes a time of microseconds from midnight.
pub(in super::super) fn put_time(time: i64, out: &mut BytesMut) -> Result<()> {
    match u64::try_from(time) {
        Ok(time) if time <= DAY.unsigned_abs() => {
            let mut line = Line::new();
            add_clock(time, &mut line);
            line.put(out);
            Ok(())
        }
        _ => Err(Rejected::time_range("time")),
    }
}

/// Writes a timestamp of microseconds from 1970.
pub(in super::super) fn put_timestamp(time: i64, out: &mut BytesMut) {
    put_moment(time, None, out);
}

/// Writes an instant of microseconds from 1970 as the clocks of a zone show it.
pub(in super::super) fn put_instant(time: i64, zone: Zone, out: &mut BytesMut) {
    put_moment(time, Some(zone.offset_at(time)), out);
}

fn put_moment(time: i64, offset: Option<i32>, out: &mut BytesMut) {
    let mut line = Line::new();
    match time {
        i64::MAX => line.text(b"infinity"),
        i64::MIN => line.text(b"-infinity"),
        time => add_moment(time, offset, &mut line),
    }
    line.put(out);
}

fn add_moment(time: i64, offset: Option<i32>, line: &mut Line) {
    // The local time of an instant may need 65 bits.
    let local = time.rem_euclid(DAY) + i64::from(offset.unwrap_or(0)) * SECOND;
    let day = Day::of(time.div_euclid(DAY) + local.div_euclid(DAY));
    add_day(day, line);
    line.byte(b' ');
    add_clock(local.rem_euclid(DAY).unsigned_abs(), line);
    if let Some(offset) = offset {
        add_offset(offset, line);
    }
    add_era(day, line);
}

fn add_day(day: Day, line: &mut Line) {
    let year = if day.year > 0 { day.year } else { 1 - day.year };
    line.number(year.unsigned_abs(), 4);
    line.byte(b'-');
    line.number(u64::from(day.month), 2);
    line.byte(b'-');
    line.number(u64::from(day.day), 2);
}

fn add_era(day: Day, line: &mut Line) {
    if day.year <= 0 {
        line.text(b" BC");
    }
}

/// Adds hours, minutes and seconds.
pub(in super::super) fn add_clock(time: u64, line: &mut Line) {
    let seconds = time / SECOND.unsigned_abs();
    line.number(seconds / 3_600, 2);
    line.byte(b':');
    line.number(seconds / 60 % 60, 2);
    line.byte(b':');
    line.number(seconds % 60, 2);
    let mut fraction = time % SECOND.unsigned_abs();
    if fraction > 0 {
        let mut digits = 6;
        while fraction.is_multiple_of(10) {
            fraction /= 10;
            digits -= 1;
        }
        line.byte(b'.');
        line.number(fraction, digits);
    }
}

/// Adds how far a clock is ahead of UTC; minutes and seconds where there are some.
fn add_offset(offset: i32, line: &mut Line) {
    line.byte(if offset < 0 { b'-' } else { b'+' });
    let offset = u64::from(offset.unsigned_abs());
    line.number(offset / 3_600, 2);
    if offset % 3_600 > 0 {
        line.byte(b':');
        line.number(offset / 60 % 60, 2);
    }
    if offset % 60 > 0 {
        line.byte(b':');
        line.number(offset % 60, 2);
    }
}

/// A date as Postgres counts it.
pub(in super::super) fn date_from_1970(days: i32) -> Result<i32> {
    match days {
        i32::MAX | i32::MIN => Ok(days),
        days => days.checked_sub(DAYS_TO_2000).ok_or_else(|| Rejected::time_range("date")),
    }
}

/// A date as Arrow counts it.
pub(in super::super) fn date_from_2000(days: i32) -> Result<i32> {
    match days {
        i32::MAX | i32::MIN => Ok(days),
        days => finite_date(i64::from(days) + i64::from(DAYS_TO_2000)),
    }
}

/// A day that is not infinity.
pub(in super::super) fn finite_date(days: i64) -> Result<i32> {
    let days = i32::try_from(days).ok().filter(|days| !matches!(*days, i32::MAX | i32::MIN));
    days.ok_or_else(|| Rejected::time_range("date"))
}

/// A time of day, which is one of less than 24 hours here.
pub(in super::super) fn time(time: i64) -> Result<i64> {
    match (0..DAY).contains(&time) {
        true => Ok(time),
        false => Err(Rejected::time_range("time")),
    }
}

/// A timestamp as Postgres counts it.
pub(in super::super) fn timestamp_from_1970(time: i64) -> Result<i64> {
    match time {
        i64::MAX | i64::MIN => Ok(time),
        time => time.checked_sub(TO_2000).ok_or_else(|| Rejected::time_range("timestamp")),
    }
}

/// A timestamp as Arrow counts it.
pub(in super::super) fn timestamp_from_2000(time: i64) -> Result<i64> {
    match time {
        i64::MAX | i64::MIN => Ok(time),
        time => finite_timestamp(i128::from(time) + i128::from(TO_2000)),
    }
}

/// A moment that is not infinity.
pub(in super::super) fn finite_timestamp(time: i128) -> Result<i64> {
    let time = i64::try_from(time).ok().filter(|time| !matches!(*time, i64::MAX | i64::MIN));
    time.ok_or_else(|| Rejected::time_range("timestamp"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(put: impl Fn(&mut BytesMut)) -> String {
        let mut out = BytesMut::new();
        put(&mut out);
        String::from_utf8(out.to_vec()).unwrap()
    }

    #[test]
    fn years_before_the_first_have_an_era() {
        let date = |days| text(|out| put_date(days, out));
        assert_eq!(date(-719_162), "0001-01-01");
        assert_eq!(date(-719_163), "0001-12-31 BC");
        assert_eq!(date(2_932_897), "10000-01-01");
        assert_eq!(date(i32::MIN), "-infinity");
        assert_eq!(text(|out| put_timestamp(i64::MIN + 1, out)), "290309-12-21 19:59:05.224193 BC");
        assert_eq!(text(|out| put_timestamp(i64::MAX - 1, out)), "294247-01-10 04:00:54.775806");
    }

    #[test]
    fn instants_are_shown_by_the_clocks_of_a_zone() {
        let shown = |time, zone: &str| {
            let zone = Zone::named(zone).unwrap();
            text(|out| put_instant(time, zone, out))
        };
        assert_eq!(shown(0, "UTC"), "1970-01-01 00:00:00+00");
        assert_eq!(shown(500_000, "Asia/Kolkata"), "1970-01-01 05:30:00.5+05:30");
        assert_eq!(shown(-5_364_662_400 * SECOND, "Europe/Berlin"), "1800-01-01 00:53:28+00:53:28");
        assert_eq!(shown(i64::MAX - 1, "Asia/Kolkata"), "294247-01-10 09:30:54.775806+05:30");
        assert_eq!(shown(i64::MAX, "Asia/Kolkata"), "infinity");
    }

    #[test]
    fn the_ends_of_both_calendars_are_kept_apart() {
        assert_eq!(timestamp_from_2000(i64::MAX), Ok(i64::MAX));
        assert!(timestamp_from_2000(i64::MAX - 1).is_err());
        assert!(timestamp_from_1970(i64::MIN + 1).is_err());
        assert_eq!(date_from_1970(0), Ok(-10_957));
        assert!(time(DAY).is_err());
    }
}
