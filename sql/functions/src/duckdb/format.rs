//! `format` and `printf`.
//!
//! `format` has the fields of Python and the C++ library {fmt}, `{}`, `{1}`, `{:>8.2f}`; `printf` those of C. Both are read
//! into the same pieces.

use std::fmt::Write as _;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringBuilder};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use datafusion_common::{Result, exec_err, plan_err};
use datafusion_expr::ScalarUDF;

use super::plain::Plain;

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    vec![
        Plain::function(&["format"], format_and_values, |_| DataType::Utf8, |of| all(of, braces)),
        Plain::function(&["printf"], format_and_values, |_| DataType::Utf8, |of| all(of, percents)),
    ]
}

/// The widest field.
const WIDEST: usize = 10_000;

/// Integers, DOUBLE, and text for all else.
fn format_and_values(arguments: &[DataType]) -> Result<Vec<DataType>> {
    let Some((_, values)) = arguments.split_first() else {
        return plan_err!("a format is missing");
    };
    let value = |kind: &DataType| match kind {
        integer if integer.is_integer() => DataType::Int64,
        number if number.is_numeric() => DataType::Float64,
        _ => DataType::Utf8,
    };
    Ok(std::iter::once(DataType::Utf8).chain(values.iter().map(value)).collect())
}

/// A part of a format.
enum Piece {
    Text(String),
    Field { argument: usize, field: Field },
}

/// How a value is written.
#[derive(Clone)]
struct Field {
    fill: char,
    /// `<`, `>` or `^`; by default numbers are right and texts left.
    align: Option<char>,
    /// `+` or a space in front of positive numbers.
    sign: Option<char>,
    /// `0x` and the like.
    prefix: bool,
    zeros: bool,
    width: usize,
    thousands: Option<char>,
    precision: Option<usize>,
    kind: Option<char>,
}

impl Default for Field {
    fn default() -> Self {
        Field {
            fill: ' ',
            align: None,
            sign: None,
            prefix: false,
            zeros: false,
            width: 0,
            thousands: None,
            precision: None,
            kind: None,
        }
    }
}

type Characters<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn number(characters: &mut Characters<'_>) -> Result<Option<usize>> {
    let mut number = None;
    while let Some(digit) = characters.peek().and_then(|character| character.to_digit(10)) {
        characters.next();
        let next = number.unwrap_or(0) * 10 + digit as usize;
        if next > WIDEST {
            return exec_err!("a field of a format has at most {WIDEST} characters");
        }
        number = Some(next);
    }
    Ok(number)
}

/// The pieces of a format with `{}`.
fn braces(format: &str) -> Result<Vec<Piece>> {
    let wrong = |what: &str| exec_err!("the format \"{format}\" {what}");
    let (mut pieces, mut text) = (Vec::new(), String::new());
    let (mut next, mut is_counted, mut is_numbered) = (0, false, false);
    let mut characters = format.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '{' | '}' if characters.next_if_eq(&character).is_some() => text.push(character),
            '}' => return wrong("has a } without a {; write }} for one"),
            '{' => {
                pieces.push(Piece::Text(std::mem::take(&mut text)));
                let argument = match number(&mut characters)? {
                    Some(number) => {
                        is_numbered = true;
                        number
                    }
                    None => {
                        is_counted = true;
                        next += 1;
                        next - 1
                    }
                };
                if is_counted && is_numbered {
                    return wrong("has fields with numbers and without");
                }
                let field = match characters.next_if_eq(&':') {
                    Some(_) => braced_field(&mut characters)?,
                    None => Field::default(),
                };
                if characters.next() != Some('}') {
                    return wrong("has a field that is not understood, or not closed");
                }
                pieces.push(Piece::Field { argument, field });
            }
            character => text.push(character),
        }
    }
    pieces.push(Piece::Text(text));
    Ok(pieces)
}

/// The field after the colon of `{:*>+#010,.3f}`.
fn braced_field(characters: &mut Characters<'_>) -> Result<Field> {
    let mut field = Field::default();
    let is_align = |character: char| "<>^".contains(character);
    let mut ahead = characters.clone();
    if let (Some(fill), Some(align)) = (ahead.next(), ahead.next())
        && is_align(align)
    {
        (field.fill, field.align) = (fill, Some(align));
        *characters = ahead;
    } else if let Some(align) = characters.next_if(|&character| is_align(character)) {
        field.align = Some(align);
    }
    field.sign = characters.next_if(|&character| "+- ".contains(character)).filter(|&c| c != '-');
    field.prefix = characters.next_if_eq(&'#').is_some();
    field.zeros = characters.next_if_eq(&'0').is_some();
    field.width = number(characters)?.unwrap_or(0);
    field.thousands = characters.next_if(|&character| ",_'".contains(character));
    if characters.next_if_eq(&'.').is_some() {
        field.precision = Some(number(characters)?.unwrap_or(0));
    }
    field.kind = characters.next_if(char::is_ascii_alphabetic);
    Ok(field)
}

/// The pieces of a format with `%d`.
fn percents(format: &str) -> Result<Vec<Piece>> {
    let (mut pieces, mut text, mut next) = (Vec::new(), String::new(), 0);
    let mut characters = format.chars().peekable();
    while let Some(character) = characters.next() {
        if character != '%' || characters.next_if_eq(&'%').is_some() {
            text.push(character);
            continue;
        }
        pieces.push(Piece::Text(std::mem::take(&mut text)));
        let mut field = Field { align: Some('>'), ..Field::default() };
        while let Some(flag) = characters.next_if(|&character| "-+ #0,'".contains(character)) {
            match flag {
                '-' => field.align = Some('<'),
                '#' => field.prefix = true,
                '0' => field.zeros = true,
                ',' | '\'' => field.thousands = Some(','),
                sign => field.sign = Some(sign),
            }
        }
        field.width = number(&mut characters)?.unwrap_or(0);
        if characters.next_if_eq(&'.').is_some() {
            field.precision = Some(number(&mut characters)?.unwrap_or(0));
        }
        // Lengths of integers, which have one here.
        while characters.next_if(|&character| "hlLqjzt".contains(character)).is_some() {}
        field.kind = match characters.next() {
            Some('i' | 'u') => Some('d'),
            Some(kind) if kind.is_ascii_alphabetic() => Some(kind),
            _ => return exec_err!("the format \"{format}\" has a % without a kind of value"),
        };
        field.zeros &= field.align == Some('>');
        pieces.push(Piece::Field { argument: next, field });
        next += 1;
    }
    pieces.push(Piece::Text(text));
    Ok(pieces)
}

fn all(arguments: &[ArrayRef], read: fn(&str) -> Result<Vec<Piece>>) -> Result<ArrayRef> {
    let formats = arguments[0].as_string::<i32>();
    let values = &arguments[1..];
    let mut written = StringBuilder::new();
    let mut last: Option<(&str, Vec<Piece>)> = None;
    let mut text = String::new();
    for (row, format) in formats.iter().enumerate() {
        let (Some(format), true) = (format, values.iter().all(|value| value.is_valid(row))) else {
            written.append_null();
            continue;
        };
        let pieces = match last.take() {
            Some((known, pieces)) if known == format => pieces,
            _ => read(format)?,
        };
        text.clear();
        for piece in &pieces {
            match piece {
                Piece::Text(piece) => text.push_str(piece),
                Piece::Field { argument, field } => {
                    let Some(value) = values.get(*argument) else {
                        return exec_err!(
                            "the format \"{format}\" has a field for argument {}, of {}",
                            argument + 1,
                            values.len()
                        );
                    };
                    field.write(value, row, &mut text)?;
                }
            }
        }
        written.append_value(&text);
        last = Some((format, pieces));
    }
    Ok(Arc::new(written.finish()))
}

impl Field {
    fn write(&self, values: &ArrayRef, row: usize, to: &mut String) -> Result<()> {
        let (digits, is_number) = match values.data_type() {
            DataType::Int64 => {
                let value = values.as_primitive::<Int64Type>().value(row);
                match self.kind {
                    Some('c') => {
                        let character = u32::try_from(value).ok().and_then(char::from_u32);
                        (character.map(String::from).unwrap_or_default(), false)
                    }
                    None | Some('d' | 'n' | 'x' | 'X' | 'o' | 'b' | 'B') => {
                        (self.integer(value), true)
                    }
                    Some('e' | 'E' | 'f' | 'F' | 'g' | 'G') => (self.double(value as f64)?, true),
                    Some(kind) => return exec_err!("'{kind}' does not write an integer"),
                }
            }
            DataType::Float64 => {
                (self.double(values.as_primitive::<Float64Type>().value(row))?, true)
            }
            _ => {
                let texts = cast(values, &DataType::Utf8)?;
                let text = texts.as_string::<i32>().value(row);
                match (self.kind, self.precision) {
                    (None | Some('s'), Some(most)) => (text.chars().take(most).collect(), false),
                    (None | Some('s'), None) => (text.to_owned(), false),
                    (Some(kind), _) => {
                        return exec_err!("'{kind}' does not write the text \"{text}\"");
                    }
                }
            }
        };
        self.pad(&digits, is_number, to);
        Ok(())
    }

    fn integer(&self, value: i64) -> String {
        let size = value.unsigned_abs();
        let digits = match self.kind {
            Some('x') => format!("{size:x}"),
            Some('X') => format!("{size:X}"),
            Some('o') => format!("{size:o}"),
            Some('b' | 'B') => format!("{size:b}"),
            _ => size.to_string(),
        };
        let prefix = match (self.prefix, self.kind) {
            (true, Some('x')) => "0x",
            (true, Some('X')) => "0X",
            (true, Some('o')) => "0",
            (true, Some('b' | 'B')) => "0b",
            _ => "",
        };
        format!("{}{prefix}{}", self.sign_of(value < 0), self.grouped(&digits))
    }

    fn sign_of(&self, is_negative: bool) -> String {
        match (is_negative, self.sign) {
            (true, _) => "-".to_owned(),
            (false, sign) => sign.map(String::from).unwrap_or_default(),
        }
    }

    /// Digits in groups of three.
    fn grouped(&self, digits: &str) -> String {
        let Some(separator) = self.thousands else { return digits.to_owned() };
        let whole = digits.find(|character: char| !character.is_ascii_digit());
        let (whole, rest) = digits.split_at(whole.unwrap_or(digits.len()));
        let mut grouped = String::with_capacity(digits.len() * 4 / 3 + 1);
        for (place, digit) in whole.chars().enumerate() {
            if place > 0 && (whole.len() - place) % 3 == 0 {
                grouped.push(separator);
            }
            grouped.push(digit);
        }
        grouped + rest
    }

    fn double(&self, value: f64) -> Result<String> {
        let size = value.abs();
        let digits = match (self.kind, self.precision) {
            _ if !value.is_finite() => if value.is_nan() { "nan" } else { "inf" }.to_owned(),
            (Some('f' | 'F'), precision) => format!("{size:.*}", precision.unwrap_or(6)),
            (Some('e'), precision) => scientific(size, precision.unwrap_or(6), 'e'),
            (Some('E'), precision) => scientific(size, precision.unwrap_or(6), 'E'),
            (Some('g'), precision) => general(size, precision.unwrap_or(6), 'e'),
            (Some('G'), precision) => general(size, precision.unwrap_or(6), 'E'),
            (None, Some(precision)) => general(size, precision, 'e'),
            (None, None) => shortest(size),
            (Some(kind), _) => return exec_err!("'{kind}' does not write a DOUBLE"),
        };
        Ok(self.sign_of(value.is_sign_negative() && !value.is_nan()) + &self.grouped(&digits))
    }

    fn pad(&self, digits: &str, is_number: bool, to: &mut String) {
        let missing = self.width.saturating_sub(digits.chars().count());
        if self.zeros && is_number && self.align != Some('<') && self.align != Some('^') {
            let sign = digits.find(|character: char| character.is_ascii_alphanumeric());
            let (sign, digits) = digits.split_at(sign.unwrap_or(0));
            to.push_str(sign);
            to.extend(std::iter::repeat_n('0', missing));
            to.push_str(digits);
            return;
        }
        let before = match self.align {
            Some('>') => missing,
            Some('^') => missing / 2,
            None if is_number => missing,
            _ => 0,
        };
        to.extend(std::iter::repeat_n(self.fill, before));
        to.push_str(digits);
        to.extend(std::iter::repeat_n(self.fill, missing - before));
    }
}

/// `1.5e+00`: an exponent has at least two digits.
fn scientific(value: f64, precision: usize, e: char) -> String {
    let written = format!("{value:.precision$e}");
    let (digits, exponent) = written.split_once('e').unwrap_or((&written, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}{e}{sign}{:02}", exponent.abs())
}

/// So many digits, without zeros at the end; with an exponent if the number is large or small.
fn general(value: f64, precision: usize, e: char) -> String {
    let precision = precision.max(1);
    let written = scientific(value, precision - 1, e);
    let (digits, exponent) = written.split_once(e).unwrap_or((&written, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let without_zeros = |digits: &str| match digits.contains('.') {
        true => digits.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => digits.to_owned(),
    };
    if exponent < -4 || exponent >= precision as i32 {
        let mut short = without_zeros(digits);
        let sign = if exponent < 0 { '-' } else { '+' };
        // Writing to a text does not fail.
        let _ = write!(short, "{e}{sign}{:02}", exponent.abs());
        return short;
    }
    let behind = (precision as i32 - 1 - exponent).max(0) as usize;
    without_zeros(&format!("{value:.behind$}"))
}

/// The fewest digits that are read as this number.
fn shortest(value: f64) -> String {
    if value != 0.0 && !(1e-4..1e16).contains(&value) {
        let written = format!("{value:e}");
        let (digits, exponent) = written.split_once('e').unwrap_or((&written, "0"));
        let exponent: i32 = exponent.parse().unwrap_or(0);
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.abs());
    }
    format!("{value:?}")
}
