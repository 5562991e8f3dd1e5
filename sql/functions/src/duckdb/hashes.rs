//! `md5`, `sha1` and `sha256`, as hexadecimal digits.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, StringBuilder, UInt64Array};
use arrow::datatypes::DataType;
use datafusion_common::{Result, plan_err};
use datafusion_expr::ScalarUDF;
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha256};

use super::plain::{Plain, wrong_number};

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    vec![
        Plain::function(&["md5"], bytes, |_| DataType::Utf8, hashed::<Md5>),
        Plain::function(&["md5_number_lower"], bytes, |_| DataType::UInt64, |of| half(of, 8)),
        Plain::function(&["md5_number_upper"], bytes, |_| DataType::UInt64, |of| half(of, 0)),
        Plain::function(&["sha1"], bytes, |_| DataType::Utf8, hashed::<Sha1>),
        Plain::function(&["sha256"], bytes, |_| DataType::Utf8, hashed::<Sha256>),
    ]
}

fn bytes(arguments: &[DataType]) -> Result<Vec<DataType>> {
    match arguments {
        [argument] if argument.is_string() || argument.is_binary() || argument.is_null() => {
            Ok(vec![DataType::Binary])
        }
        [other] => plan_err!("a text or bytes are expected, not {other}: cast it"),
        _ => wrong_number(1, 1, arguments.len()),
    }
}

fn hashed<D: Digest>(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut hashes = StringBuilder::new();
    let mut text = String::new();
    for bytes in arguments[0].as_binary::<i32>() {
        let Some(bytes) = bytes else {
            hashes.append_null();
            continue;
        };
        text.clear();
        for byte in D::digest(bytes) {
            let digits = [byte >> 4, byte & 15];
            text.extend(digits.map(|digit| char::from(DIGITS[usize::from(digit)])));
        }
        hashes.append_value(&text);
    }
    Ok(Arc::new(hashes.finish()))
}

/// Eight bytes of `md5` as a number, the first of which is the last digit.
fn half(arguments: &[ArrayRef], from: usize) -> Result<ArrayRef> {
    let number = |bytes: &[u8]| {
        let hash = Md5::digest(bytes);
        let half = hash.iter().skip(from).take(8).rev();
        half.fold(0, |number, byte| number << 8 | u64::from(*byte))
    };
    let numbers = arguments[0].as_binary::<i32>().iter().map(|bytes| bytes.map(number));
    Ok(Arc::new(numbers.collect::<UInt64Array>()))
}
