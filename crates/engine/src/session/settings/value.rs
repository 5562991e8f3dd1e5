//! The values of settings.

use std::time::Duration;

use alluvium_sql::name;

use super::table::Setting;
use crate::error::{Error, Result, SqlState};

/// How a setting shows that it is on.
pub(super) const ON: &str = "on";

/// The values that a setting takes.
pub(super) enum Values {
    /// Any text.
    Text,
    /// On or off, in Postgres's spellings.
    Boolean,
    /// A length of time: milliseconds, or a number with a unit.
    Duration,
    /// Names of schemas.
    Schemas,
    /// One of these, in any case.
    OneOf(&'static [&'static str]),
    /// The default, in these spellings and in any case; the reason why it is the only one.
    Only(&'static [&'static str], &'static str),
    /// ISO, and an order of day, month and year.
    DateStyle,
    /// None: it cannot be set.
    Fixed,
}

/// The longest length of time, in milliseconds.
const LONGEST: f64 = i32::MAX as f64;

/// Units of time in milliseconds, the longest first.
const UNITS: [(&str, u64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000), ("ms", 1)];

impl Values {
    /// The value as it is shown.
    ///
    /// # Errors
    /// If the setting does not take it.
    pub(super) fn check(&self, value: &str, setting: &Setting) -> Result<String> {
        let name = setting.name;
        let wrong = |what: &str| {
            Error::sql(format!("the setting \"{name}\" takes {what}, not \"{value}\""))
                .with_sqlstate(SqlState::INVALID_VALUE)
        };
        let given = value.trim();
        match self {
            Self::Text => Ok(value.to_owned()),
            Self::Boolean => match boolean(given) {
                Some(true) => Ok(ON.to_owned()),
                Some(false) => Ok("off".to_owned()),
                None => Err(wrong("on or off")),
            },
            Self::Duration => match milliseconds(given) {
                Some(milliseconds) => Ok(written(milliseconds)),
                None => Err(wrong("a number of milliseconds, or one with ms, s, min, h or d")),
            },
            Self::Schemas => Ok(spelled(&schemas(value))),
            Self::OneOf(values) => {
                let found = values.iter().find(|known| known.eq_ignore_ascii_case(given));
                found.map(|found| (*found).to_owned()).ok_or_else(|| wrong(&values.join(", ")))
            }
            Self::Only(spellings, why) => {
                match spellings.iter().any(|spelling| spelling.eq_ignore_ascii_case(given)) {
                    true => Ok(setting.default.to_owned()),
                    false => Err(refused(setting, value, why)),
                }
            }
            Self::DateStyle => date_style(given).ok_or_else(|| {
                refused(setting, value, "dates have the form of ISO, with an order: ISO, MDY")
            }),
            Self::Fixed if given.eq_ignore_ascii_case(setting.default) => {
                Ok(setting.default.to_owned())
            }
            Self::Fixed => Err(Error::sql(format!("the setting \"{name}\" cannot be changed"))),
        }
    }

    /// The values, for the reference.
    #[cfg(test)]
    pub(super) fn documented(&self) -> String {
        match self {
            Self::Text => "any text".to_owned(),
            Self::Boolean => "`on`, `off`".to_owned(),
            Self::Duration => "a time".to_owned(),
            Self::Schemas => "names of schemas".to_owned(),
            Self::OneOf(values) => {
                let quoted: Vec<String> = values.iter().map(|value| format!("`{value}`")).collect();
                quoted.join(", ")
            }
            Self::Only(..) => "the default".to_owned(),
            Self::DateStyle => "`ISO` with `MDY`, `DMY` or `YMD`".to_owned(),
            Self::Fixed => "cannot be set".to_owned(),
        }
    }
}

fn refused(setting: &Setting, value: &str, why: &str) -> Error {
    let name = setting.name;
    Error::sql(format!("the setting \"{name}\" cannot be \"{value}\": {why}"))
        .with_sqlstate(SqlState::INVALID_VALUE)
}

/// Postgres's spellings: on, off, 1, 0, and beginnings of true, false, yes and no.
fn boolean(value: &str) -> Option<bool> {
    let value = value.to_ascii_lowercase();
    let begins = |word: &str| !value.is_empty() && word.starts_with(&value);
    match value.as_str() {
        "on" | "1" => Some(true),
        "off" | "of" | "0" => Some(false),
        _ if begins("true") || begins("yes") => Some(true),
        _ if begins("false") || begins("no") => Some(false),
        _ => None,
    }
}

/// A length of time as it was written.
fn milliseconds(value: &str) -> Option<u64> {
    let end = value.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(value.len());
    let (number, unit) = value.split_at(end);
    let number: f64 = number.trim().parse().ok()?;
    let milliseconds = match unit {
        "" => number,
        "us" => number / 1_000.0,
        unit => number * UNITS.iter().find(|(name, _)| *name == unit)?.1 as f64,
    };
    let rounded = milliseconds.round();
    (0.0..=LONGEST).contains(&rounded).then_some(rounded as u64)
}

/// A length of time in its largest whole unit.
fn written(milliseconds: u64) -> String {
    let unit = UNITS.iter().find(|(_, length)| milliseconds.is_multiple_of(*length));
    match unit {
        Some((unit, length)) if milliseconds > 0 => format!("{}{unit}", milliseconds / length),
        _ => milliseconds.to_string(),
    }
}

/// A length of time that was checked; `None` if it is 0.
pub(super) fn duration(value: &str) -> Option<Duration> {
    milliseconds(value).filter(|length| *length > 0).map(Duration::from_millis)
}

/// The form of dates as it is shown.
fn date_style(value: &str) -> Option<String> {
    let mut order = "MDY";
    for part in value.split(',') {
        match part.trim().to_ascii_lowercase().as_str() {
            "iso" | "" => {}
            "mdy" | "us" | "noneuro" | "noneuropean" => order = "MDY",
            "dmy" | "euro" | "european" => order = "DMY",
            "ymd" => order = "YMD",
            _ => return None,
        }
    }
    Some(format!("ISO, {order}"))
}

/// The names in a list of names, which may stand in quotes.
pub(super) fn schemas(list: &str) -> Vec<String> {
    let (mut names, mut name, mut is_quoted) = (Vec::new(), String::new(), false);
    let mut was_quoted = false;
    let mut letters = list.chars().chain([',']).peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if is_quoted && letters.peek() == Some(&'"') => {
                letters.next();
                name.push('"');
            }
            '"' => (is_quoted, was_quoted) = (!is_quoted, true),
            ',' if !is_quoted || letters.peek().is_none() => {
                let found = std::mem::take(&mut name);
                if was_quoted || !found.is_empty() {
                    names.push(found);
                }
                was_quoted = false;
            }
            letter if is_quoted => name.push(letter),
            letter if letter.is_whitespace() => {}
            letter => name.extend(letter.to_lowercase()),
        }
    }
    names
}

/// Names as a list of them.
pub(super) fn spelled(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| name::spelled(name)).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_in_their_largest_unit() {
        for (given, shown) in [
            ("0", "0"),
            ("250", "250ms"),
            ("30s", "30s"),
            ("90 s", "90s"),
            ("1.5s", "1500ms"),
            ("3600000", "1h"),
            ("2min", "2min"),
            ("1d", "1d"),
            ("400us", "0"),
        ] {
            assert_eq!(milliseconds(given).map(written).as_deref(), Some(shown), "{given}");
        }
        for wrong in ["", "-1", "1 year", "s", "NaN", "9999999999", "1 S"] {
            assert_eq!(milliseconds(wrong), None, "{wrong}");
        }
        assert_eq!(duration("2min"), Some(Duration::from_secs(120)));
        assert_eq!(duration("0"), None);
    }

    #[test]
    fn lists_of_schemas_are_read_as_they_are_spelled() {
        for (list, names) in [
            ("a, B", vec!["a", "b"]),
            ("\"A b\", c", vec!["A b", "c"]),
            ("\"a\"\"b\"", vec!["a\"b"]),
            ("\"\"", vec![""]),
            ("", vec![]),
            ("\"a,b\"", vec!["a,b"]),
            ("\"open,", vec!["open,"]),
        ] {
            assert_eq!(schemas(list), names, "{list}");
            assert_eq!(schemas(&spelled(&schemas(list))), names, "{list}");
        }
    }
}
