//! Time zones.

use chrono::{DateTime, MappedLocalTime, NaiveDateTime, Offset, TimeZone};
use chrono_tz::{TZ_VARIANTS, Tz};

use super::calendar::{Day, is_leap};

const SECONDS_OF_DAY: i64 = 86_400;
/// Beyond these seconds from 1970 dates of chrono end; the offsets do not change any more.
const REACH: i64 = 8_000_000_000_000;
/// The years for which the database lists each change end before this one. Later years are like one of the last 28.
const LISTED: i64 = 2_100;

/// The zone of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Zone {
    /// Always so many seconds ahead of UTC.
    Fixed(i32),
    /// Of the IANA database.
    Named(Tz),
}

impl Zone {
    /// Coordinated universal time.
    pub(crate) const UTC: Self = Self::Fixed(0);

    /// The zone that a setting names: a name of the IANA database in any case, or an offset in the form of POSIX, which is positive to
    /// the west, as in `GMT-05:30`.
    #[cfg_attr(not(test), expect(dead_code, reason = "sessions are in UTC"))]
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Self::named(text).or_else(|| posix(text).map(Self::Fixed))
    }

    /// The zone of this name in any case.
    pub(in super::super) fn named(name: &str) -> Option<Self> {
        if ["utc", "z", "gmt"].iter().any(|utc| name.eq_ignore_ascii_case(utc)) {
            return Some(Self::UTC);
        }
        let found = TZ_VARIANTS.iter().find(|zone| zone.name().eq_ignore_ascii_case(name));
        found.copied().map(Self::Named)
    }

    /// How many seconds its clocks are ahead of UTC at an instant in microseconds from 1970.
    pub(in super::super) fn offset_at(self, instant: i64) -> i32 {
        match self {
            Self::Fixed(offset) => offset,
            Self::Named(zone) => offset(zone, listed(instant.div_euclid(1_000_000))),
        }
    }

    /// How many seconds its clocks are ahead of UTC when they show a time. A time that they show twice is the later one; one that they
    /// skip is counted on with the clock of before.
    pub(in super::super) fn offset_when(self, local: i64) -> i32 {
        let zone = match self {
            Self::Fixed(offset) => return offset,
            Self::Named(zone) => zone,
        };
        let seconds = listed(local.div_euclid(1_000_000));
        match zone.offset_from_local_datetime(&date_time(seconds)) {
            MappedLocalTime::Single(offset) => offset.fix().local_minus_utc(),
            MappedLocalTime::Ambiguous(first, second) => {
                first.fix().local_minus_utc().min(second.fix().local_minus_utc())
            }
            // With any offset, an instant a day before is before the clocks are changed.
            MappedLocalTime::None => offset(zone, seconds - SECONDS_OF_DAY),
        }
    }
}

fn offset(zone: Tz, seconds: i64) -> i32 {
    zone.offset_from_utc_datetime(&date_time(seconds)).fix().local_minus_utc()
}

fn date_time(seconds: i64) -> NaiveDateTime {
    DateTime::from_timestamp(seconds.clamp(-REACH, REACH), 0).unwrap_or_default().naive_utc()
}

/// Seconds from 1970 of the same time in a year that the database lists: it begins on the same day of the week, and is as long.
fn listed(seconds: i64) -> i64 {
    let day = Day::of(seconds.div_euclid(SECONDS_OF_DAY));
    if day.year < LISTED {
        return seconds;
    }
    let begin = |year: i64| Day { year, month: 1, day: 1 }.days();
    let is_like = |year: &i64| {
        is_leap(*year) == is_leap(day.year) && (begin(*year) - begin(day.year)) % 7 == 0
    };
    let year = (LISTED - 28..LISTED).find(is_like).unwrap_or(LISTED - 1);
    seconds + (begin(year) - begin(day.year)) * SECONDS_OF_DAY
}

/// The seconds ahead of UTC of `GMT-05:30`, `<+05>-05`, `-5`.
fn posix(text: &str) -> Option<i32> {
    let name = match text.strip_prefix('<') {
        Some(quoted) => quoted.find('>')? + 2,
        None => text.find(|character: char| !character.is_ascii_alphabetic())?,
    };
    let (sign, hours) = match text.as_bytes().get(name..)? {
        [b'-', hours @ ..] => (1, hours),
        [b'+', hours @ ..] => (-1, hours),
        hours => (-1, hours),
    };
    let mut seconds = 0;
    let mut unit = 3_600;
    for part in std::str::from_utf8(hours).ok()?.split(':') {
        let is_number =
            (1..=2).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        let number = part.parse::<i32>().ok().filter(|number| is_number && *number < 60)?;
        if unit == 0 {
            return None;
        }
        seconds += number * unit;
        unit /= 60;
    }
    (seconds <= 15 * 3_600 + 3_599).then_some(sign * seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_of_settings_are_positive_to_the_west() {
        assert_eq!(Zone::parse("GMT-05:30"), Some(Zone::Fixed(19_800)));
        assert_eq!(Zone::parse("+05:30"), Some(Zone::Fixed(-19_800)));
        assert_eq!(Zone::parse("<+05:30>-05:30"), Some(Zone::Fixed(19_800)));
        assert_eq!(Zone::parse("europe/BERLIN"), Some(Zone::Named(Tz::Europe__Berlin)));
        for text in ["", "nowhere", "GMT-5:", "GMT-99", "<", "<x", "GMT-1:2:3:4", "ä"] {
            assert_eq!(Zone::parse(text), None, "{text}");
        }
    }

    #[test]
    fn clocks_go_on_being_changed_after_the_years_that_are_listed() {
        let berlin = Zone::Named(Tz::Europe__Berlin);
        let of_day = |year, month| Day { year, month, day: 1 }.days() * SECONDS_OF_DAY * 1_000_000;
        for year in [2024, 2099, 2100, 2400, 9999, 294_000] {
            assert_eq!(berlin.offset_at(of_day(year, 1)), 3_600, "{year}");
            assert_eq!(berlin.offset_at(of_day(year, 7)), 7_200, "{year}");
            assert_eq!(berlin.offset_when(of_day(year, 7)), 7_200, "{year}");
        }
        assert_eq!(berlin.offset_at(i64::MIN), 3_208);
    }
}
