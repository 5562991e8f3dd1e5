//! The clocks of time zones, by the rules in force since 2008.

use super::{Fault, Outcome};
use crate::query::value::{civil, day_of};
use crate::query::{Length, Value, Zone};

const HOUR: i64 = 3_600;
const DAY: i64 = 86_400;

/// Clocks ahead of UTC, in seconds: when they show winter and summer, and the instants of one year between which it is summer
/// in the north, or winter in the south.
struct Rule {
    winter: i64,
    summer: i64,
    between: Option<(i64, i64)>,
    is_south: bool,
}

fn rule(zone: Zone, year: i64) -> Outcome<Rule> {
    if year < 2008 {
        return Err(Fault::Unknown("older rules of time zones"));
    }
    let fixed = |offset| Rule { winter: offset, summer: offset, between: None, is_south: false };
    Ok(match zone {
        Zone::Utc => fixed(0),
        Zone::Kolkata => fixed(5 * HOUR + HOUR / 2),
        // From the last Sunday of March to that of October, at 01:00 UTC.
        Zone::Berlin => Rule {
            winter: HOUR,
            summer: 2 * HOUR,
            between: Some((
                sunday(year, 4, 1) * DAY - 7 * DAY + HOUR,
                sunday(year, 11, 1) * DAY - 7 * DAY + HOUR,
            )),
            is_south: false,
        },
        // From the second Sunday of March to the first of November, at 02:00 on its clocks.
        Zone::NewYork => Rule {
            winter: -5 * HOUR,
            summer: -4 * HOUR,
            between: Some((
                sunday(year, 3, 8) * DAY + 7 * HOUR,
                sunday(year, 11, 1) * DAY + 6 * HOUR,
            )),
            is_south: false,
        },
        // Winter from the first Sunday of April to that of October, at 02:00 on its clocks.
        Zone::LordHowe => Rule {
            winter: 10 * HOUR + HOUR / 2,
            summer: 11 * HOUR,
            between: Some((
                sunday(year, 4, 1) * DAY - 9 * HOUR,
                sunday(year, 10, 1) * DAY - 8 * HOUR - HOUR / 2,
            )),
            is_south: true,
        },
    })
}

/// The first Sunday on or after a day. The day 0 was a Thursday.
fn sunday(year: i64, month: i64, day: i64) -> i64 {
    let day = day_of(year, month, day);
    day + (3 - day).rem_euclid(7)
}

/// How far the clocks of a zone are ahead of UTC at an instant.
fn offset(zone: Zone, instant: i64) -> Outcome<i64> {
    let rule = rule(zone, civil(instant.div_euclid(DAY)).0)?;
    let is_between = rule.between.is_some_and(|(start, end)| (start..end).contains(&instant));
    Ok(if is_between != rule.is_south { rule.summer } else { rule.winter })
}

/// The time that the clocks of a zone show at an instant.
pub(super) fn shown(zone: Zone, instant: i64) -> Outcome<i64> {
    Ok(instant + offset(zone, instant)?)
}

/// The instant at which the clocks of a zone show a time: of two the later one. A time that they leave out is counted on with the
/// clock of before, which showed winter.
pub(super) fn instant(zone: Zone, shown: i64) -> Outcome<i64> {
    let Rule { winter, summer, .. } = rule(zone, civil(shown.div_euclid(DAY)).0)?;
    for ahead in [winter, summer] {
        if offset(zone, shown - ahead)? == ahead {
            return Ok(shown - ahead);
        }
    }
    Ok(shown - winter)
}

/// A number of seconds since 1970, moved: by months first, which end on their last day, then by days, then by seconds.
pub(super) fn moved(seconds: i64, length: Length) -> i64 {
    let (year, month, day) = civil(seconds.div_euclid(DAY));
    let months = year * 12 + month - 1 + length.months;
    let (year, month) = (months.div_euclid(12), months.rem_euclid(12) + 1);
    let next = day_of(year + i64::from(month == 12), month % 12 + 1, 1);
    let day = day_of(year, month, day).min(next - 1) + length.days;
    day * DAY + seconds.rem_euclid(DAY) + length.seconds
}

/// The difference of two times of one type: days between dates, seconds otherwise.
pub(super) fn apart(a: &Value, b: &Value) -> Outcome<Value> {
    Ok(match (a, b) {
        (Value::Null, _) | (_, Value::Null) => Value::Null,
        (Value::Date(a), Value::Date(b)) => Value::Whole((a - b).into()),
        _ => match a.instant().zip(b.instant()) {
            Some((a, b)) => Value::Float((a - b) as f64),
            None => return Err(Fault::Unknown("a difference")),
        },
    })
}

#[test]
fn clocks_change_when_they_did() {
    let at = |text: &str| crate::query::value::seconds(text).expect("a time");
    let cases = [
        (Zone::Berlin, "2024-03-31 00:59:59", "2024-03-31 01:59:59"),
        (Zone::Berlin, "2024-03-31 01:00:00", "2024-03-31 03:00:00"),
        (Zone::Berlin, "2024-10-27 00:59:59", "2024-10-27 02:59:59"),
        (Zone::Berlin, "2024-10-27 01:00:00", "2024-10-27 02:00:00"),
        (Zone::NewYork, "2024-03-10 06:59:59", "2024-03-10 01:59:59"),
        (Zone::NewYork, "2024-03-10 07:00:00", "2024-03-10 03:00:00"),
        (Zone::NewYork, "2024-11-03 06:00:00", "2024-11-03 01:00:00"),
        (Zone::LordHowe, "2024-04-06 14:59:59", "2024-04-07 01:59:59"),
        (Zone::LordHowe, "2024-04-06 15:00:00", "2024-04-07 01:30:00"),
        (Zone::LordHowe, "2024-10-05 15:30:00", "2024-10-06 02:30:00"),
        (Zone::Kolkata, "2024-01-01 00:00:00", "2024-01-01 05:30:00"),
    ];
    for (zone, utc, local) in cases {
        assert_eq!(shown(zone, at(utc)), Ok(at(local)), "{zone:?} {utc}");
    }
    let back = [
        ("2024-03-31 02:30:00", "2024-03-31 01:30:00"),
        ("2024-10-27 02:30:00", "2024-10-27 01:30:00"),
        ("2024-07-01 12:00:00", "2024-07-01 10:00:00"),
    ];
    for (local, utc) in back {
        assert_eq!(instant(Zone::Berlin, at(local)), Ok(at(utc)), "{local}");
    }
}

#[test]
fn months_end_on_their_last_day() {
    let at = |text: &str| crate::query::value::seconds(text).expect("a time");
    let by = |months, days, seconds| Length { months, days, seconds };
    let day = at("2024-01-31 10:00:00");
    assert_eq!(moved(day, by(1, 0, 0)), at("2024-02-29 10:00:00"));
    assert_eq!(moved(day, by(13, 1, -36_000)), at("2025-03-01 00:00:00"));
    assert_eq!(moved(day, by(-2, 0, 0)), at("2023-11-30 10:00:00"));
}
