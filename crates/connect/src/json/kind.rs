//! Kinds of JSON values: the types of columns that hold all that were seen.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field};

use super::records::name;

/// What some values are.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Kind {
    /// Nothing but null.
    #[default]
    Null,
    Boolean,
    Number(Number),
    /// Texts, or scalars of several kinds.
    Text,
    List(Box<Kind>),
    Struct(Members),
    /// Values that only their text has in common.
    Json,
}

/// What some numbers are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Number {
    /// Whether all of them are of 64 bits, and whether a DOUBLE has all digits of each.
    is_bigint: bool,
    is_double: bool,
    /// The most digits before and after the point; none if one has an exponent.
    digits: Option<(usize, usize)>,
}

/// The members of some objects, in the order in which they first occur.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Members {
    fields: Vec<(String, Kind)>,
    places: HashMap<String, usize>,
}

impl Kind {
    /// The kind of a value, which has to be JSON.
    pub fn of(value: &[u8]) -> Self {
        Scanner { text: value, at: 0 }.value()
    }

    /// What these values and others are.
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Null, kind) | (kind, Self::Null) => kind,
            (Self::Number(one), Self::Number(other)) => Self::Number(one.and(other)),
            (Self::List(one), Self::List(other)) => Self::list(one.and(*other)),
            (Self::Struct(mut one), Self::Struct(other)) => {
                for (name, kind) in other.fields {
                    if !one.see(name, kind) {
                        return Self::Json;
                    }
                }
                Self::Struct(one)
            }
            (one, other) if one == other => one,
            (one, other) if one.is_scalar() && other.is_scalar() => Self::Text,
            _ => Self::Json,
        }
    }

    fn list(element: Self) -> Self {
        match element {
            Self::Json => Self::Json,
            element => Self::List(Box::new(element)),
        }
    }

    fn is_scalar(&self) -> bool {
        matches!(self, Self::Boolean | Self::Number(_) | Self::Text)
    }

    /// The type of a column that holds the values.
    pub fn data_type(&self) -> DataType {
        match self {
            Self::Boolean => DataType::Boolean,
            Self::Number(number) => number.data_type(),
            Self::List(element) => DataType::new_list(element.data_type(), true),
            Self::Struct(members) if !members.fields.is_empty() => {
                let field =
                    |(name, kind): &(String, Self)| Field::new(name, kind.data_type(), true);
                DataType::Struct(members.fields.iter().map(field).map(Arc::new).collect())
            }
            Self::Null | Self::Text | Self::Struct(_) | Self::Json => DataType::Utf8,
        }
    }
}

impl Members {
    /// A member has a value of this kind; false if it has nothing in common with those before.
    fn see(&mut self, name: String, kind: Kind) -> bool {
        let place = match self.places.get(&name) {
            Some(place) => *place,
            None => {
                self.places.insert(name.clone(), self.fields.len());
                self.fields.push((name, Kind::Null));
                self.fields.len() - 1
            }
        };
        let known = &mut self.fields[place].1;
        *known = std::mem::take(known).and(kind);
        *known != Kind::Json
    }
}

impl Number {
    fn of(text: &str) -> Self {
        let unsigned = text.strip_prefix('-').unwrap_or(text);
        let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, ""));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let is_double = text.parse::<f64>().is_ok_and(|double| {
            double.is_finite() && significant(&format!("{double:e}")) == significant(text)
        });
        let digits = exponent.is_empty().then_some((whole.len(), fraction.len()));
        Self { is_bigint: text.parse::<i64>().is_ok(), is_double, digits }
    }

    fn and(self, other: Self) -> Self {
        let digits = self.digits.zip(other.digits);
        Self {
            is_bigint: self.is_bigint && other.is_bigint,
            is_double: self.is_double && other.is_double,
            digits: digits.map(|(one, other)| (one.0.max(other.0), one.1.max(other.1))),
        }
    }

    /// A type that has all digits of the numbers.
    fn data_type(self) -> DataType {
        const MOST: usize = 38;
        match self.digits {
            _ if self.is_bigint => DataType::Int64,
            _ if self.is_double => DataType::Float64,
            Some((whole, fraction)) if whole + fraction <= MOST => {
                DataType::Decimal128(MOST as u8, fraction as i8)
            }
            _ => DataType::Utf8,
        }
    }
}

/// The digits of a number from the first to the last that is not zero, and the power of ten of the last one.
fn significant(text: &str) -> (String, i64) {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{fraction}");
    let digits = all.trim_end_matches('0');
    let zeros = (all.len() - digits.len()) as i64;
    let exponent = exponent.parse::<i64>().unwrap_or(i64::MAX);
    let digits = digits.trim_start_matches('0');
    match digits {
        "" => (String::new(), 0),
        digits => (digits.to_owned(), exponent.saturating_sub(fraction.len() as i64) + zeros),
    }
}

/// Passes over JSON that was found to be such.
struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    fn value(&mut self) -> Kind {
        match self.peek() {
            Some(b'{') => self.object(),
            Some(b'[') => self.array(),
            Some(b'"') => {
                self.string();
                Kind::Text
            }
            _ => self.scalar(),
        }
    }

    fn array(&mut self) -> Kind {
        self.at += 1;
        let mut element = Kind::Null;
        loop {
            match self.peek() {
                Some(b',') => self.at += 1,
                None | Some(b']') => break,
                Some(_) => element = element.and(self.value()),
            }
        }
        self.at += 1;
        Kind::list(element)
    }

    fn object(&mut self) -> Kind {
        self.at += 1;
        let (mut members, mut is_json) = (Members::default(), false);
        loop {
            match self.peek() {
                Some(b'"') => {
                    let name = name(self.string()).unwrap_or_default().into_owned();
                    // The colon.
                    self.peek();
                    self.at += 1;
                    is_json |= !members.see(name, self.value());
                }
                None | Some(b'}') => break,
                Some(_) => self.at += 1,
            }
        }
        self.at += 1;
        if is_json { Kind::Json } else { Kind::Struct(members) }
    }

    fn scalar(&mut self) -> Kind {
        let rest = &self.text[self.at..];
        let ends = |byte: &u8| matches!(byte, b',' | b']' | b'}') || byte.is_ascii_whitespace();
        let length = rest.iter().position(ends).unwrap_or(rest.len());
        self.at += length.max(1).min(rest.len());
        match str::from_utf8(&rest[..length]) {
            Ok("null") | Err(_) => Kind::Null,
            Ok("true" | "false") => Kind::Boolean,
            Ok(number) => Kind::Number(Number::of(number)),
        }
    }

    /// The string that begins here, with its quotes.
    fn string(&mut self) -> &'a [u8] {
        let start = self.at;
        self.at += 1;
        let mut escaped = false;
        while let Some(byte) = self.text.get(self.at) {
            self.at += 1;
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => break,
                _ => {}
            }
        }
        &self.text[start..self.at]
    }

    /// The next byte that is not blank.
    fn peek(&mut self) -> Option<u8> {
        let rest = self.text.get(self.at..)?;
        self.at += rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        self.text.get(self.at).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_all(values: &[&str]) -> String {
        let kinds = values.iter().map(|value| Kind::of(value.as_bytes()));
        kinds.fold(Kind::Null, Kind::and).data_type().to_string()
    }

    #[test]
    fn a_column_holds_every_value_that_was_seen() {
        for (values, expected) in [
            (&["1", "null", "-7"][..], "Int64"),
            (&["1", "2.5"], "Float64"),
            (&["true", "false"], "Boolean"),
            (&["true", "1"], "Utf8"),
            (&["1", "\"x\""], "Utf8"),
            (&["{\"a\": 1}", "[1]"], "Utf8"),
            (&["null"], "Utf8"),
            (&["{}"], "Utf8"),
            (&["[1, 2.5]", "[]"], "List(Float64)"),
            (&["[1, [2]]"], "Utf8"),
            (&["[{\"a\": 1}, {\"a\": {}}]"], "Utf8"),
            (
                &["{\"a\": [true, \"}\"]}", "{\"b\": {\"c\": 1e2}, \"a\": null}"],
                "Struct(\"a\": List(Utf8), \"b\": Struct(\"c\": Float64))",
            ),
        ] {
            assert_eq!(of_all(values), expected, "{values:?}");
        }
    }

    #[test]
    fn no_number_loses_digits() {
        for (values, expected) in [
            (&["9223372036854775807"][..], "Int64"),
            (&["18446744073709551615"], "Decimal128(38, 0)"),
            (&["12345678901234567890123", "0.5"], "Decimal128(38, 1)"),
            (&["9007199254740993", "0.5"], "Decimal128(38, 1)"),
            (&["0.1", "1e300", "100", "-2.50"], "Float64"),
            (&["0.12345678901234567890"], "Decimal128(38, 20)"),
            (&["0.12345678901234567890", "1e300"], "Utf8"),
            (&["123456789012345678901234567890123456789"], "Utf8"),
        ] {
            assert_eq!(of_all(values), expected, "{values:?}");
        }
    }
}
