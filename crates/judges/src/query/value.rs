//! SQL values, as literals and as the naive evaluator computes with them.

use std::cmp::Ordering;
use std::fmt::Write;

use super::kind::Kind;
use crate::answers::row::Cell;

/// A value. Dates are days, times seconds since 1970.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Null,
    Boolean(bool),
    Whole(i128),
    Float(f64),
    /// Units, and the scale: the number of decimal digits.
    Decimal(i128, u8),
    Text(String),
    Bytes(Vec<u8>),
    Date(i64),
    Clock(i64),
    Moment(i64),
    Zoned(i64),
    List(Vec<Value>),
    Struct(Vec<(String, Value)>),
    Map(Vec<(String, Value)>),
}

const DAY: i64 = 86_400;

impl Value {
    pub(crate) fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// Its value as a float, if it is a number.
    pub(crate) fn number(&self) -> Option<f64> {
        match self {
            Value::Whole(value) => Some(*value as f64),
            Value::Float(value) => Some(*value),
            Value::Decimal(units, scale) => Some(*units as f64 / 10f64.powi((*scale).into())),
            _ => None,
        }
    }

    /// Whether it is NaN, an infinity or -0.0.
    pub(crate) fn is_special(&self) -> bool {
        matches!(self, Value::Float(value) if !value.is_finite() || value.to_bits() == (-0.0f64).to_bits())
    }

    fn rank(&self) -> u8 {
        match self {
            Value::Null => 0,
            Value::Boolean(_) => 1,
            Value::Whole(_) | Value::Float(_) | Value::Decimal(..) => 2,
            Value::Text(_) => 3,
            Value::Bytes(_) => 4,
            Value::Date(_) | Value::Clock(_) | Value::Moment(_) | Value::Zoned(_) => 5,
            Value::List(_) => 6,
            Value::Struct(_) => 7,
            Value::Map(_) => 8,
        }
    }

    /// As a time by which rows may come late: a number, or seconds.
    pub(crate) fn as_time(&self) -> Option<i64> {
        match self {
            Value::Whole(number) => i64::try_from(*number).ok(),
            Value::Moment(seconds) => Some(*seconds),
            _ => None,
        }
    }

    /// As a value of a row.
    pub(crate) fn cell(&self) -> Cell {
        match self {
            Value::Null => Cell::Null,
            Value::Boolean(value) => Cell::Boolean(*value),
            Value::Whole(value) => Cell::Integer(*value),
            Value::Float(value) => Cell::Float(*value),
            Value::Decimal(..) => Cell::Decimal(self.plain()),
            Value::Text(value) => Cell::Text(value.clone()),
            Value::Bytes(value) => Cell::Bytes(value.clone()),
            _ => Cell::Time(self.plain()),
        }
    }

    /// The value of a row's cell for a column of this type; `None` if the cell is ambiguous.
    pub(crate) fn of_cell(cell: &Cell, kind: Kind) -> Option<Value> {
        Some(match cell {
            Cell::Null => Value::Null,
            Cell::Boolean(value) => Value::Boolean(*value),
            Cell::Integer(value) => Value::Whole(*value),
            Cell::Float(value) => Value::Float(*value),
            Cell::Text(value) => Value::Text(value.clone()),
            Cell::Bytes(value) => Value::Bytes(value.clone()),
            Cell::Decimal(digits) => {
                let scale = digits.split_once('.').map_or(0, |(_, fraction)| fraction.len());
                Value::Decimal(digits.replace('.', "").parse().ok()?, scale as u8)
            }
            Cell::Time(text) => match kind {
                Kind::Date => Value::Date(days(text)?),
                Kind::Moment => Value::Moment(seconds(text)?),
                Kind::Zoned => Value::Zoned(seconds(text.strip_suffix('Z')?)?),
                Kind::Clock => Value::Clock(clock(text)?),
                _ => return None,
            },
        })
    }

    /// Its text, as a cast to text returns it.
    pub(crate) fn plain(&self) -> String {
        match self {
            Value::Null => "NULL".to_owned(),
            Value::Boolean(value) => value.to_string(),
            Value::Whole(value) => value.to_string(),
            Value::Float(value) => format!("{value:?}"),
            Value::Decimal(units, scale) => {
                let scale = usize::from(*scale);
                let sign = if *units < 0 { "-" } else { "" };
                let mut digits = format!("{:0>width$}", units.abs(), width = scale + 1);
                if scale > 0 {
                    digits.insert(digits.len() - scale, '.');
                }
                format!("{sign}{digits}")
            }
            Value::Text(value) => value.clone(),
            Value::Bytes(value) => value.iter().fold(String::new(), |mut text, byte| {
                let _ = write!(text, "{byte:02x}");
                text
            }),
            Value::Date(days) => date(*days),
            Value::Clock(seconds) => time(*seconds),
            Value::Moment(seconds) => {
                format!("{} {}", date(seconds.div_euclid(DAY)), time(seconds.rem_euclid(DAY)))
            }
            Value::Zoned(seconds) => format!("{}Z", Value::Moment(*seconds).plain()),
            Value::List(values) => format!("[{}]", joined(values.iter().map(Value::plain))),
            Value::Struct(fields) | Value::Map(fields) => {
                let fields =
                    fields.iter().map(|(name, value)| format!("{name}: {}", value.plain()));
                format!("{{{}}}", joined(fields))
            }
        }
    }

    /// As an SQL literal, as far as dialects agree.
    pub(crate) fn literal(&self) -> String {
        match self {
            Value::Null => "NULL".to_owned(),
            Value::Boolean(value) => value.to_string().to_uppercase(),
            Value::Whole(_) | Value::Decimal(..) => self.plain(),
            // The digits of -0.0 would be a decimal, which has no sign of its own.
            Value::Float(_) if !self.is_special() => self.plain(),
            Value::Float(_) => format!("CAST('{}' AS DOUBLE)", self.plain()),
            Value::Bytes(_) => format!("x'{}'", self.plain()),
            Value::List(values) => {
                format!("[{}]", joined(values.iter().map(|value| value.literal())))
            }
            Value::Struct(fields) => {
                let fields =
                    fields.iter().map(|(name, value)| format!("'{name}': {}", value.literal()));
                format!("{{{}}}", joined(fields))
            }
            Value::Map(fields) => {
                let fields =
                    fields.iter().map(|(name, value)| format!("'{name}': {}", value.literal()));
                format!("MAP {{{}}}", joined(fields))
            }
            _ => format!("'{}'", self.plain().replace('\'', "''")),
        }
    }
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(", ")
}

/// Equal as in GROUP BY: NULLs are equal, integers equal floats, both zeros are equal, and all NaNs, which are greater than all
/// numbers.
impl Ord for Value {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Value::Boolean(a), Value::Boolean(b)) => a.cmp(b),
            (Value::Whole(a), Value::Whole(b)) => a.cmp(b),
            (Value::Decimal(a, s), Value::Decimal(b, t)) if s == t => a.cmp(b),
            (Value::Text(a), Value::Text(b)) => a.cmp(b),
            (Value::Bytes(a), Value::Bytes(b)) => a.cmp(b),
            (Value::List(a), Value::List(b)) => a.cmp(b),
            (Value::Struct(a), Value::Struct(b)) | (Value::Map(a), Value::Map(b)) => a.cmp(b),
            _ => match (self.number(), other.number()) {
                (Some(a), Some(b)) => {
                    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
                }
                _ => match (self.instant(), other.instant()) {
                    (Some(a), Some(b)) => a.cmp(&b),
                    _ => self.rank().cmp(&other.rank()),
                },
            },
        }
    }
}

impl Value {
    /// Seconds, if it is a time; a date is its midnight.
    pub(crate) fn instant(&self) -> Option<i64> {
        match self {
            Value::Date(days) => Some(days * DAY),
            Value::Clock(seconds) | Value::Moment(seconds) | Value::Zoned(seconds) => {
                Some(*seconds)
            }
            _ => None,
        }
    }
}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Value {}

fn time(seconds: i64) -> String {
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// A day as year, month and day, by counting the days of eras of 400 years that start in March.
pub(crate) fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, day) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let rest = day - (365 * year + year / 4 - year / 100);
    let month = (5 * rest + 2) / 153;
    let number = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(number <= 2), number, rest - (153 * month + 2) / 5 + 1)
}

/// The inverse of [`civil`].
pub(crate) fn day_of(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let shifted = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * shifted + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + day_of_year - 719_468
}

fn date(days: i64) -> String {
    let (year, month, day) = civil(days);
    format!("{year:04}-{month:02}-{day:02}")
}

fn days(text: &str) -> Option<i64> {
    let mut parts = text.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    Some(day_of(parts.next()??, parts.next()??, parts.next()??))
}

fn clock(text: &str) -> Option<i64> {
    let mut parts = text.splitn(3, ':').map(|part| part.parse::<i64>().ok());
    Some(parts.next()?? * 3600 + parts.next()?? * 60 + parts.next()??)
}

pub(crate) fn seconds(text: &str) -> Option<i64> {
    let (day, time) = text.split_once([' ', 'T'])?;
    Some(days(day)? * DAY + clock(time)?)
}

#[test]
fn days_and_dates_are_each_others_inverse() {
    for day in (-200_000..200_000).step_by(97) {
        let (year, month, of_month) = civil(day);
        assert_eq!(day_of(year, month, of_month), day);
    }
    assert_eq!(date(0), "1970-01-01");
    assert_eq!(days("2024-02-29"), Some(19_782));
}

#[test]
fn decimals_keep_their_digits() {
    assert_eq!(Value::Decimal(-5, 2).plain(), "-0.05");
    assert_eq!(Value::Decimal(12_345, 2).plain(), "123.45");
}
