//! The answer of a database to an expression, in a form in which the answers of several can be compared.

use std::fmt;

use serde_json::Value as Json;

/// The answer to one expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Answer {
    /// It knows no such expression of these types.
    Refused(String),
    /// It fails for these values.
    Failed(String),
    Value(Value),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Null,
    Boolean(bool),
    /// Whole numbers and decimals, without zeros that say nothing.
    Exact(String),
    Float(f64),
    Single(f64),
    Text(String),
    /// As hexadecimal digits.
    Bytes(String),
    Date(String),
    Time(String),
    Timestamp(String),
    /// In UTC.
    Instant(String),
    /// In months, days and microseconds.
    Interval(i64, i64, i64),
    /// A list, struct or map, written in one way.
    Nested(String),
}

impl Answer {
    /// From `[type, text]`, `{"refused": why}` or `{"failed": why}`; `None` from `null`, which says that the database was not asked.
    pub(super) fn read(json: &Json) -> Option<Self> {
        let text = |json: &Json| json.as_str().unwrap_or_default().to_owned();
        if json.is_null() {
            return None;
        }
        Some(if let Some(why) = json.get("refused") {
            Self::Refused(text(why))
        } else if let Some(why) = json.get("failed") {
            Self::Failed(text(why))
        } else if json[1].is_null() {
            Self::Value(Value::Null)
        } else {
            Self::Value(Value::read(&text(&json[0]), &text(&json[1])))
        })
    }

    /// Whether two databases mean the same: that both fail is the same, whatever they say.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Value(one), Self::Value(two)) => one.is_same(two),
            (Self::Failed(_) | Self::Refused(_), Self::Failed(_) | Self::Refused(_)) => true,
            _ => false,
        }
    }

    /// Whether both are numbers that differ by less than others round to: `epoch` counts from another year in between, and
    /// sums of products are rounded in another order.
    pub(super) fn is_close(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Value(Value::Float(one)), Self::Value(Value::Float(two))) => {
                (one - two).abs() < 1e-12
            }
            _ => false,
        }
    }
}

impl Value {
    /// A value of a type of DuckDB or Postgres, from its text.
    pub(super) fn read(kind: &str, text: &str) -> Self {
        let kind = kind.to_ascii_lowercase();
        let base = kind.split('(').next().unwrap_or_default().trim();
        if kind.ends_with(']') || matches!(base, "struct" | "map" | "record" | "row") {
            return Self::Nested(nested(text));
        }
        match base {
            "boolean" => Self::Boolean(text.starts_with('t')),
            "tinyint" | "smallint" | "integer" | "bigint" | "hugeint" | "utinyint"
            | "usmallint" | "uinteger" | "ubigint" | "uhugeint" | "bignum" => {
                Self::Exact(exact(text))
            }
            "decimal" | "numeric" => match text {
                "NaN" | "Infinity" | "-Infinity" => Self::Float(float(text)),
                _ => Self::Exact(exact(text)),
            },
            "double" | "double precision" => Self::Float(float(text)),
            "float" | "real" => Self::Single(float(text)),
            "bytea" | "blob" => Self::Bytes(text.trim_start_matches("\\x").to_lowercase()),
            "date" => Self::Date(calendar(text)),
            "time" | "time without time zone" => Self::Time(time(text)),
            "timestamp"
            | "timestamp without time zone"
            | "timestamp_ns"
            | "timestamp_s"
            | "timestamp_ms" => Self::Timestamp(time(text)),
            "timestamp with time zone" => Self::Instant(time(&text.replace("+00", ""))),
            "interval" => interval(text).unwrap_or_else(|| Self::Text(text.to_owned())),
            // An expression of NULL alone has a type of its own.
            "\"null\"" | "null" => Self::Null,
            _ => Self::Text(text.to_owned()),
        }
    }

    /// Whether two databases mean the same: floating results may differ in the last digits.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Float(one), Self::Float(two)) => is_near(*one, *two, 4e-15, f64::MIN_POSITIVE),
            (Self::Single(one), Self::Single(two) | Self::Float(two))
            | (Self::Float(one), Self::Single(two)) => {
                is_near(*one, *two, 2e-7, f32::MIN_POSITIVE.into())
            }
            (Self::Exact(one), Self::Float(two)) | (Self::Float(two), Self::Exact(one)) => {
                one.parse().is_ok_and(|one: f64| is_near(one, *two, 4e-15, f64::MIN_POSITIVE))
            }
            (Self::Exact(one), Self::Single(two)) | (Self::Single(two), Self::Exact(one)) => {
                one.parse().is_ok_and(|one: f64| is_near(one, *two, 2e-7, f32::MIN_POSITIVE.into()))
            }
            _ => self == other,
        }
    }
}

/// The same to some digits. The two zeros differ, and all NaN are the same.
fn is_near(one: f64, two: f64, precision: f64, smallest: f64) -> bool {
    if one.is_nan() || two.is_nan() {
        return one.is_nan() && two.is_nan();
    }
    if one == two {
        return one != 0.0 || one.is_sign_negative() == two.is_sign_negative();
    }
    // Numbers below the normal ones have fewer digits.
    (one - two).abs() <= precision * one.abs().max(two.abs()).max(smallest)
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(why) => write!(f, "refused ({why})"),
            Self::Failed(why) => write!(f, "error ({why})"),
            Self::Value(value) => write!(f, "{value}"),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("NULL"),
            Self::Boolean(value) => write!(f, "{value}"),
            Self::Exact(text) => f.write_str(text),
            Self::Float(value) => write!(f, "{value:?}"),
            Self::Single(value) => write!(f, "{value:?}f"),
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Bytes(digits) => write!(f, "x'{digits}'"),
            Self::Date(text) => write!(f, "date {text}"),
            Self::Time(text) => write!(f, "time {text}"),
            Self::Timestamp(text) => write!(f, "timestamp {text}"),
            Self::Instant(text) => write!(f, "timestamptz {text}"),
            Self::Interval(months, days, micros) => write!(f, "interval {months} {days} {micros}"),
            Self::Nested(text) => f.write_str(text),
        }
    }
}

/// A number without zeros at its end and `-0`.
pub(super) fn exact(text: &str) -> String {
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text };
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

pub(super) fn float(text: &str) -> f64 {
    text.parse().unwrap_or(f64::NAN)
}

/// A date whose year counts the one before year 1 as 0, and whose years beyond 9999 have no sign.
pub(super) fn calendar(text: &str) -> String {
    let before = text.replace(" (BC)", "").replace(" BC", "");
    if before.len() == text.len() {
        return text.strip_prefix('+').unwrap_or(text).to_owned();
    }
    match before.split_once('-') {
        Some((year, rest)) => match year.parse::<i32>() {
            Ok(1) => format!("0000-{rest}"),
            Ok(year) => format!("{:05}-{rest}", 1 - year),
            Err(_) => before,
        },
        None => before,
    }
}

/// A time whose fraction has no zeros at its end, with a blank for `T`, and with a time of day.
pub(super) fn time(text: &str) -> String {
    let text = calendar(text);
    let text = match text.split_once('T') {
        Some((date, time)) => format!("{date} {time}"),
        None => text,
    };
    match text.split_once('.') {
        Some((whole, fraction)) if fraction.bytes().all(|byte| byte.is_ascii_digit()) => {
            let fraction = fraction.trim_end_matches('0');
            if fraction.is_empty() { whole.to_owned() } else { format!("{whole}.{fraction}") }
        }
        _ => text,
    }
}

/// A nested value without the differences between databases: quotes, blanks after commas, and braces of arrays.
pub(super) fn nested(text: &str) -> String {
    let is_array = text.starts_with('{') && !text.contains([':', '=']);
    let text = if is_array { text.replace('{', "[").replace('}', "]") } else { text.to_owned() };
    let text = text
        .replace(['\'', '"', '\\'], "")
        .replace("e+", "e")
        .replace("NaN", "nan")
        .replace("Infinity", "inf")
        .replace(", ", ",")
        .replace(": ", ":")
        .replace('=', ":");
    // A number that is whole is written with a point or without one.
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find(".0") {
        let (before, behind) = rest.split_at(at);
        plain += before;
        let is_end = behind[2..].chars().next().is_none_or(|next| !next.is_ascii_digit());
        if !(is_end && before.ends_with(|digit: char| digit.is_ascii_digit())) {
            plain += ".0";
        }
        rest = &behind[2..];
    }
    plain + rest
}

/// An interval from `1 year 2 mons 3 days 04:05:06.7`, or with hours, mins and secs by name.
pub(super) fn interval(text: &str) -> Option<Value> {
    let (mut months, mut days, mut micros) = (0, 0, 0);
    let mut words = text.split_whitespace();
    while let Some(word) = words.next() {
        if word.contains(':') {
            micros += clock(word)?;
            continue;
        }
        let unit = words.next()?;
        let whole = || word.parse::<i64>().ok();
        match unit.trim_end_matches('s') {
            "year" => months += 12 * whole()?,
            "mon" | "month" => months += whole()?,
            "day" => days += whole()?,
            "hour" => micros += 3_600_000_000 * whole()?,
            "min" | "minute" => micros += 60_000_000 * whole()?,
            "sec" | "second" => micros += seconds(word)?,
            _ => return None,
        }
    }
    Some(Value::Interval(months, days, micros))
}

fn clock(text: &str) -> Option<i64> {
    let (is_negative, text) = match text.strip_prefix('-') {
        Some(text) => (true, text),
        None => (false, text.trim_start_matches('+')),
    };
    let mut parts = text.split(':');
    let hours: i64 = parts.next()?.parse().ok()?;
    let minutes: i64 = parts.next()?.parse().ok()?;
    let micros =
        3_600_000_000 * hours + 60_000_000 * minutes + seconds(parts.next().unwrap_or("0"))?;
    Some(if is_negative { -micros } else { micros })
}

/// Microseconds of seconds with a fraction.
fn seconds(text: &str) -> Option<i64> {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let fraction: i64 = format!("{fraction:0<6}").get(..6)?.parse().ok()?;
    let micros = whole.parse::<i64>().ok()? * 1_000_000 + fraction;
    Some(if is_negative { -micros } else { micros })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_value_is_written_in_several_ways() {
        let same = |one: (&str, &str), two: (&str, &str)| {
            Value::read(one.0, one.1).is_same(&Value::read(two.0, two.1))
        };
        assert!(same(("DECIMAL(4,2)", "1.50"), ("numeric", "1.5")));
        assert!(same(("DOUBLE", "nan"), ("double precision", "NaN")));
        assert!(!same(("DOUBLE", "-0.0"), ("DOUBLE", "0.0")));
        assert!(same(("INTEGER[]", "[1, NULL]"), ("integer[]", "{1,NULL}")));
        assert!(same(("INTERVAL", "1 year 2 months 04:05:06"), ("interval", "14 mons 04:05:06")));
        assert!(!same(("INTERVAL", "1 day"), ("interval", "24:00:00")));
        assert!(same(
            ("TIMESTAMP", "2024-01-01 10:00:00"),
            ("timestamp", "2024-01-01 10:00:00.000")
        ));
        assert!(!same(("DATE", "2024-01-01"), ("TIMESTAMP", "2024-01-01 00:00:00")));
    }
}
