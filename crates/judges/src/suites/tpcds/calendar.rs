//! Days around the dates that a query names.

use std::collections::BTreeSet;

use chrono::{Datelike, Days, NaiveDate};
use fastrand::Rng;

use super::constants::Constants;

/// How many days there are.
const DAYS: usize = 40;

/// How many days are drawn at most, some of them twice.
const DRAWS: usize = 100 * DAYS;

/// The days of `date_dim`.
pub(super) struct Calendar {
    days: Vec<NaiveDate>,
}

/// Draws a day.
type Draw<'a> = dyn Fn(&mut Rng) -> Option<NaiveDate> + 'a;

impl Calendar {
    /// Chooses days in the years, in the months and after the dates of a query, and days some weeks apart from these.
    pub(super) fn new(constants: &Constants, rng: &mut Rng) -> Self {
        let mut days = BTreeSet::new();
        for _ in 0..DRAWS {
            if days.len() == DAYS {
                break;
            }
            let kinds: [&Draw; 4] = [
                &|rng| {
                    let months = constants.of_column("d_moy");
                    let month = choose(months, rng).and_then(|month| month.parse().ok());
                    let year = choose(&constants.years, rng).copied();
                    day(
                        year.unwrap_or_else(|| rng.i32(1998..=2002)),
                        month.filter(|_| rng.u8(..4) > 0).unwrap_or_else(|| rng.u32(1..=12)),
                        constants,
                        rng,
                    )
                },
                &|rng| {
                    let month = choose(&constants.months, rng)? + rng.i32(0..12);
                    day(1900 + month / 12, month as u32 % 12 + 1, constants, rng)
                },
                &|rng| {
                    let date = choose(&constants.dates, rng)?;
                    let later = if rng.bool() { 0 } else { rng.u64(..80) };
                    date.checked_sub_days(Days::new(5))?.checked_add_days(Days::new(later.max(5)))
                },
                &|rng| {
                    let days: Vec<NaiveDate> = days.iter().copied().collect();
                    let apart = [1, 7, 14, 30, 90, 364, 365, 371];
                    choose(&days, rng)?.checked_add_days(Days::new(*choose(&apart, rng)?))
                },
            ];
            let drawn = choose(&kinds, rng).and_then(|draw| draw(rng));
            days.extend(drawn);
        }
        Self { days: days.into_iter().collect() }
    }

    /// The key of one of the days.
    pub(super) fn key(&self, rng: &mut Rng) -> String {
        choose(&self.days, rng).map_or(0, number).to_string()
    }

    /// Some day.
    pub(super) fn day(&self, rng: &mut Rng) -> String {
        choose(&self.days, rng).map(NaiveDate::to_string).unwrap_or_default()
    }

    pub(super) fn len(&self) -> usize {
        self.days.len()
    }

    /// The value of a column of `date_dim` in a row. Fiscal and other years are the same, and today is none of the days.
    pub(super) fn value(&self, column: &str, row: usize) -> String {
        let day = &self.days[row];
        let (year, month) = (day.year(), day.month0() as i32);
        let quarter = month / 3 + 1;
        let weekday = day.weekday().num_days_from_sunday();
        match column {
            "d_date_sk" => number(day).to_string(),
            "d_date" => day.to_string(),
            "d_month_seq" => ((year - 1900) * 12 + month).to_string(),
            "d_week_seq" | "d_fy_week_seq" => ((number(day) + 1) / 7).to_string(),
            "d_quarter_seq" | "d_fy_quarter_seq" => ((year - 1900) * 4 + quarter).to_string(),
            "d_year" | "d_fy_year" => year.to_string(),
            "d_dow" => weekday.to_string(),
            "d_moy" => day.month().to_string(),
            "d_dom" => day.day().to_string(),
            "d_qoy" => quarter.to_string(),
            "d_day_name" => day.format("%A").to_string(),
            "d_quarter_name" => format!("{year}Q{quarter}"),
            "d_weekend" if weekday == 0 || weekday == 6 => "Y".to_owned(),
            "d_first_dom" => (number(day) - i64::from(day.day0())).to_string(),
            "d_last_dom" => (number(day) + 27 - i64::from(day.day0())).to_string(),
            "d_same_day_ly" => (number(day) - 365).to_string(),
            "d_same_day_lq" => (number(day) - 91).to_string(),
            "d_date_id" => format!("day {}", number(day)),
            _ => "N".to_owned(),
        }
    }
}

/// A day of a month: one that the query names, or any.
fn day(year: i32, month: u32, constants: &Constants, rng: &mut Rng) -> Option<NaiveDate> {
    let named = choose(constants.of_column("d_dom"), rng).and_then(|day| day.parse().ok());
    let day = named.filter(|_| rng.u8(..4) > 0).unwrap_or_else(|| rng.u32(1..=31));
    NaiveDate::from_ymd_opt(year, month, day)
}

/// The number of a day since that of the Julian calendar.
fn number(day: &NaiveDate) -> i64 {
    i64::from(day.num_days_from_ce()) + 1_721_425
}

/// One of some values.
pub(super) fn choose<'a, T>(values: &'a [T], rng: &mut Rng) -> Option<&'a T> {
    (!values.is_empty()).then(|| &values[rng.usize(..values.len())])
}

#[test]
fn days_have_the_keys_and_the_weekdays_of_the_benchmark() {
    let days = vec![NaiveDate::from_ymd_opt(1998, 1, 1).unwrap()];
    let calendar = Calendar { days };
    for (column, value) in [
        ("d_date_sk", "2450815"),
        ("d_month_seq", "1176"),
        ("d_quarter_name", "1998Q1"),
        ("d_day_name", "Thursday"),
        ("d_dow", "4"),
        ("d_weekend", "N"),
    ] {
        assert_eq!(calendar.value(column, 0), value, "{column}");
    }
}
