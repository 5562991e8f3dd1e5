//! Texts and bytes: `hex`, `unhex`, and the patterns of LIKE with another escape character.

use std::fmt::Write as _;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryBuilder, StringArray, StringBuilder};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type, UInt64Type};
use datafusion_common::{Result, exec_datafusion_err, exec_err, plan_err};
use datafusion_expr::ScalarUDF;

use super::plain::{Plain, texts, wrong_number};

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    vec![
        Plain::function(&["hex", "to_hex"], bytes_or_integer, |_| DataType::Utf8, hex),
        Plain::function(&["unhex", "from_hex"], texts::<1, 1>, |_| DataType::Binary, unhex),
        Plain::function(&["bin", "to_binary"], bytes_or_integer, |_| DataType::Utf8, bin),
        Plain::function(&["to_base"], number_and_base, |_| DataType::Utf8, to_base),
        Plain::function(&["url_encode"], texts::<1, 1>, |_| DataType::Utf8, url_encode),
        Plain::function(&["url_decode"], texts::<1, 1>, |_| DataType::Utf8, url_decode),
        Plain::function(
            &["from_binary", "unbin"],
            texts::<1, 1>,
            |_| DataType::Binary,
            from_binary,
        ),
        Plain::function(&["like_pattern"], texts::<2, 2>, |_| DataType::Utf8, like_pattern),
    ]
}

/// Bytes for texts and bytes, and 64 bits for integers.
fn bytes_or_integer(arguments: &[DataType]) -> Result<Vec<DataType>> {
    let [argument] = arguments else { return wrong_number(1, 1, arguments.len()) };
    Ok(vec![match argument {
        DataType::UInt64 => DataType::UInt64,
        integer if integer.is_integer() => DataType::Int64,
        DataType::Null => DataType::Utf8,
        text if text.is_string() || text.is_binary() => DataType::Binary,
        other => return plan_err!("a text, bytes or an integer is expected, not {other}"),
    }])
}

fn hex(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    in_digits(&arguments[0], |number| format!("{number:X}"), |byte, to| write!(to, "{byte:02X}"))
}

fn bin(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    in_digits(&arguments[0], |number| format!("{number:b}"), |byte, to| write!(to, "{byte:08b}"))
}

/// The digits of integers, the negative ones as 64 bits, or of bytes.
fn in_digits(
    values: &ArrayRef,
    number: fn(u64) -> String,
    byte: fn(u8, &mut StringBuilder) -> std::fmt::Result,
) -> Result<ArrayRef> {
    Ok(match values.data_type() {
        DataType::Int64 => {
            let numbers = values.as_primitive::<Int64Type>().iter();
            Arc::new(numbers.map(|value| Some(number(value? as u64))).collect::<StringArray>())
        }
        DataType::UInt64 => {
            let numbers = values.as_primitive::<UInt64Type>().iter();
            Arc::new(numbers.map(|value| Some(number(value?))).collect::<StringArray>())
        }
        _ => {
            let values = cast(values, &DataType::Binary)?;
            let mut digits = StringBuilder::new();
            for bytes in values.as_binary::<i32>() {
                match bytes {
                    Some(bytes) => {
                        for &value in bytes {
                            byte(value, &mut digits)
                                .map_err(|_| exec_datafusion_err!("out of memory"))?;
                        }
                        digits.append_value("");
                    }
                    None => digits.append_null(),
                }
            }
            Arc::new(digits.finish())
        }
    })
}

fn unhex(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let mut bytes = BinaryBuilder::new();
    let mut value = Vec::new();
    for text in arguments[0].as_string::<i32>() {
        let Some(text) = text else {
            bytes.append_null();
            continue;
        };
        value.clear();
        let digit = |character: u8| match (character as char).to_digit(16) {
            Some(digit) => Ok(digit as u8),
            None => exec_err!("\"{text}\" is not made of hexadecimal digits"),
        };
        let mut digits = text.as_bytes();
        // Of an odd number of digits the first one stands for itself.
        if digits.len() % 2 == 1 {
            value.push(digit(digits[0])?);
            digits = &digits[1..];
        }
        for pair in digits.chunks_exact(2) {
            value.push(digit(pair[0])? << 4 | digit(pair[1])?);
        }
        bytes.append_value(&value);
    }
    Ok(Arc::new(bytes.finish()))
}

/// A number, its base, and perhaps how many digits there are at least.
fn number_and_base(arguments: &[DataType]) -> Result<Vec<DataType>> {
    match arguments {
        [_, _] | [_, _, _] => Ok(vec![DataType::Int64; arguments.len()]),
        _ => wrong_number(2, 3, arguments.len()),
    }
}

fn to_base(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let numbers = arguments[0].as_primitive::<Int64Type>();
    let bases = arguments[1].as_primitive::<Int64Type>();
    let least = arguments.get(2).map(|least| least.as_primitive::<Int64Type>());
    let mut written = StringBuilder::new();
    for (row, (number, base)) in numbers.iter().zip(bases).enumerate() {
        let least = least.map_or(Some(1), |least| least.is_valid(row).then(|| least.value(row)));
        let (Some(mut number), Some(base), Some(least)) = (number, base, least) else {
            written.append_null();
            continue;
        };
        if number < 0 || !(2..=36).contains(&base) || !(0..=64).contains(&least) {
            return exec_err!(
                "to_base takes a number that is not negative, a base from 2 to 36 and at most 64 digits"
            );
        }
        let mut digits = Vec::new();
        while number > 0 || (digits.len() as i64) < least.max(1) {
            let digit = char::from_digit((number % base) as u32, base as u32).unwrap_or('0');
            digits.push(digit.to_ascii_uppercase());
            number /= base;
        }
        written.append_value(digits.iter().rev().collect::<String>());
    }
    Ok(Arc::new(written.finish()))
}

fn mapped(texts: &ArrayRef, map: impl Fn(&str) -> Result<String>) -> Result<ArrayRef> {
    let texts = texts.as_string::<i32>().iter();
    let mapped = texts.map(|text| text.map(&map).transpose());
    Ok(Arc::new(mapped.collect::<Result<StringArray>>()?))
}

fn url_encode(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    mapped(&arguments[0], |text| {
        let mut encoded = String::with_capacity(text.len() + text.len() / 4);
        for byte in text.bytes() {
            match byte {
                b'~' | b'-' | b'_' | b'.' => encoded.push(byte.into()),
                _ if byte.is_ascii_alphanumeric() => encoded.push(byte.into()),
                _ => write!(encoded, "%{byte:02X}")
                    .map_err(|_| exec_datafusion_err!("out of memory"))?,
            }
        }
        Ok(encoded)
    })
}

fn url_decode(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    mapped(&arguments[0], |text| {
        let mut decoded = Vec::with_capacity(text.len());
        let mut rest = text.as_bytes();
        while let Some((&first, behind)) = rest.split_first() {
            let digits = behind.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
            let byte = digits.filter(|_| first == b'%');
            match byte.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
                Some(byte) => {
                    decoded.push(byte);
                    rest = &behind[2..];
                }
                None => {
                    decoded.push(if first == b'+' { b' ' } else { first });
                    rest = behind;
                }
            }
        }
        String::from_utf8(decoded)
            .map_err(|_| exec_datafusion_err!("\"{text}\" decodes to bytes that are no text"))
    })
}

/// The bytes of binary digits, filled up with zeros in front.
fn from_binary(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let mut bytes = BinaryBuilder::new();
    let mut value = Vec::new();
    for text in arguments[0].as_string::<i32>() {
        let Some(text) = text else {
            bytes.append_null();
            continue;
        };
        value.clear();
        for digits in text.as_bytes().rchunks(8).rev() {
            let mut byte = 0;
            for digit in digits {
                byte = byte << 1
                    | match digit {
                        b'0' => 0,
                        b'1' => 1,
                        _ => return exec_err!("\"{text}\" is not made of binary digits"),
                    };
            }
            value.push(byte);
        }
        bytes.append_value(&value);
    }
    Ok(Arc::new(bytes.finish()))
}

/// `like_pattern(pattern, escape)`: the pattern with a backslash in place of its escape character.
fn like_pattern(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let patterns = arguments[0].as_string::<i32>().iter().zip(arguments[1].as_string::<i32>());
    let patterns = patterns.map(|(pattern, escape)| {
        let (Some(pattern), Some(escape)) = (pattern, escape) else { return Ok(None) };
        let mut characters = escape.chars();
        let escape = characters.next();
        if characters.next().is_some() {
            return exec_err!("the escape character of LIKE is one character or none");
        }
        let mut escaped = String::with_capacity(pattern.len() + 8);
        let mut characters = pattern.chars();
        while let Some(character) = characters.next() {
            if Some(character) == escape {
                let Some(next) = characters.next() else {
                    return exec_err!("the pattern \"{pattern}\" ends with its escape character");
                };
                escaped.extend(['\\', next]);
            } else if character == '\\' {
                escaped.push_str("\\\\");
            } else {
                escaped.push(character);
            }
        }
        Ok(Some(escaped))
    });
    Ok(Arc::new(patterns.collect::<Result<StringArray>>()?))
}
