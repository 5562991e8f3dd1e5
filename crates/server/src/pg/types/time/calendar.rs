//! The calendar of the Gregorian rules, for all years before and after they were made.
//!
//! The algorithms are those of Howard Hinnant, <http://howardhinnant.github.io/date_algorithms.html>: they count in eras of 400 years
//! that begin in March. The year before 1 is 0, which people call 1 BC.

/// The days of an era.
const ERA: i64 = 146_097;
/// The days from the first era's begin, 0000-03-01, to 1970-01-01.
const BEGIN: i64 = 719_468;

/// A day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Day {
    /// 0 is 1 BC.
    pub(in super::super) year: i64,
    /// 1 to 12.
    pub(in super::super) month: u8,
    /// 1 to 31.
    pub(in super::super) day: u8,
}

impl Day {
    /// The day that is so many days after 1970-01-01. All days that fit in 60 bits are right.
    pub(in super::super) fn of(days: i64) -> Self {
        let days = days + BEGIN;
        let era = days.div_euclid(ERA);
        let of_era = days.rem_euclid(ERA);
        let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        let from_march = (5 * of_year + 2) / 153;
        let day = of_year - (153 * from_march + 2) / 5 + 1;
        let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
        let year = year + era * 400 + i64::from(month <= 2);
        Self { year, month: month as u8, day: day as u8 }
    }

    /// The day of a month; `None` if the month does not have it, or if the year has more than nine digits.
    pub(in super::super) fn new(year: i64, month: u8, day: u8) -> Option<Self> {
        let is_day = (1..=12).contains(&month)
            && (1..=days_of(year, month)).contains(&day)
            && year.unsigned_abs() < 1_000_000_000;
        is_day.then_some(Self { year, month, day })
    }

    /// The days from 1970-01-01 to it.
    pub(in super::super) fn days(self) -> i64 {
        let month = i64::from(self.month);
        let year = self.year - i64::from(month <= 2);
        let era = year.div_euclid(400);
        let of_era = year.rem_euclid(400);
        let from_march = if month > 2 { month - 3 } else { month + 9 };
        let of_year = (153 * from_march + 2) / 5 + i64::from(self.day) - 1;
        era * ERA + of_era * 365 + of_era / 4 - of_era / 100 + of_year - BEGIN
    }
}

/// Whether a year has a 29th of February.
pub(in super::super) fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_of(year: i64, month: u8) -> u8 {
    match month {
        2 => 28 + u8::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_follow_each_other() {
        let mut last = Day::of(-1_000_001);
        for days in -1_000_000..1_000_000 {
            let day = Day::of(days);
            assert_eq!(day.days(), days);
            let is_next = (day.year, day.month, day.day) == (last.year, last.month, last.day + 1);
            assert!(is_next || day.day == 1 && last.day == days_of(last.year, last.month));
            last = day;
        }
        assert_eq!(Day::of(0), Day { year: 1970, month: 1, day: 1 });
        assert_eq!(Day::new(2023, 2, 29), None);
        assert_eq!(Day::new(2000, 2, 29).map(Day::days), Some(11_016));
    }
}
