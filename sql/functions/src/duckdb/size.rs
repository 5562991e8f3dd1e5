//! Sizes of data as people read them, and bars.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, StringArray, StringBuilder};
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use datafusion_common::{Result, exec_datafusion_err, exec_err, plan_err};
use datafusion_expr::ScalarUDF;

use super::plain::{Plain, texts, wrong_number};

const BINARY: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
const DECIMAL: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];

/// The longest bar.
const WIDEST: f64 = 1_000.0;

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    let text = |_: &[DataType]| DataType::Utf8;
    vec![
        Plain::function(&["format_bytes", "formatreadablesize"], integer, text, |of| {
            sizes(of, 1_024, BINARY)
        }),
        Plain::function(&["formatreadabledecimalsize"], integer, text, |of| {
            sizes(of, 1_000, DECIMAL)
        }),
        Plain::function(&["parse_formatted_bytes"], texts::<1, 1>, |_| DataType::Int64, parsed),
        Plain::function(&["bar"], doubles, text, bars),
    ]
}

fn integer(arguments: &[DataType]) -> Result<Vec<DataType>> {
    match arguments {
        [number] if number.is_integer() || number.is_null() => Ok(vec![DataType::Int64]),
        [other] => plan_err!("an integer is expected, not {other}"),
        _ => wrong_number(1, 1, arguments.len()),
    }
}

fn doubles(arguments: &[DataType]) -> Result<Vec<DataType>> {
    match arguments.len() {
        3 | 4 => Ok(vec![DataType::Float64; arguments.len()]),
        count => wrong_number(3, 4, count),
    }
}

fn sizes(arguments: &[ArrayRef], step: u64, units: [&str; 5]) -> Result<ArrayRef> {
    let numbers = arguments[0].as_primitive::<Int64Type>().iter();
    let texts = numbers.map(|bytes| bytes.map(|bytes| size(bytes, step, units)));
    Ok(Arc::new(texts.collect::<StringArray>()))
}

/// `15.6 KiB`: with one digit after the point, without rounding.
fn size(bytes: i64, step: u64, units: [&str; 5]) -> String {
    let sign = if bytes < 0 { "-" } else { "" };
    let bytes = bytes.unsigned_abs();
    let (mut unit, mut of_unit) = (None, 1_u64);
    for name in units {
        let Some(next) = of_unit.checked_mul(step).filter(|next| *next <= bytes) else { break };
        (unit, of_unit) = (Some(name), next);
    }
    match unit {
        None => format!("{sign}{bytes} byte{}", if bytes == 1 { "" } else { "s" }),
        Some(unit) => {
            let tenths = u128::from(bytes) * 10 / u128::from(of_unit);
            format!("{sign}{}.{} {unit}", tenths / 10, tenths % 10)
        }
    }
}

fn parsed(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let texts = arguments[0].as_string::<i32>().iter();
    let sizes = texts.map(|text| match text {
        Some(text) => bytes(text).map(Some).ok_or_else(|| {
            exec_datafusion_err!("\"{text}\" is no size of data, such as 16 KiB or 1.5 MB")
        }),
        None => Ok(None),
    });
    Ok(Arc::new(sizes.collect::<Result<Int64Array>>()?))
}

/// The bytes that a text says.
fn bytes(text: &str) -> Option<i64> {
    let text = text.trim();
    let end = text.find(|character: char| !character.is_ascii_digit() && character != '.');
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    let unit = unit.trim();
    let is = |name: &&str| name.eq_ignore_ascii_case(unit);
    let of_unit = match unit.to_ascii_lowercase().as_str() {
        "b" | "byte" | "bytes" => 1.0,
        _ => {
            let place = |units: [&str; 5]| units.iter().position(is);
            let power = |place: usize| i32::try_from(place + 1).unwrap_or(0);
            match (place(BINARY), place(DECIMAL)) {
                (Some(place), _) => 1_024_f64.powi(power(place)),
                (None, place) => 1_000_f64.powi(power(place?)),
            }
        }
    };
    let bytes = number.parse::<f64>().ok()? * of_unit;
    (bytes < i64::MAX as f64).then_some(bytes as i64)
}

/// `bar(x, min, max [, width])`: blocks as long as x is between the bounds, and blanks.
fn bars(arguments: &[ArrayRef]) -> Result<ArrayRef> {
    let numbers = [0, 1, 2].map(|place| arguments[place].as_primitive::<Float64Type>());
    let widths = arguments.get(3).map(|widths| widths.as_primitive::<Float64Type>());
    let mut bars = StringBuilder::new();
    let mut text = String::new();
    for row in 0..numbers[0].len() {
        let all = numbers.iter().copied().chain(widths);
        if all.into_iter().any(|column| column.is_null(row)) {
            bars.append_null();
            continue;
        }
        let [number, least, most] = numbers.map(|column| column.value(row));
        let width = widths.map_or(80.0, |widths| widths.value(row));
        let is_bar = least < most && (1.0..=WIDEST).contains(&width);
        if !is_bar || !least.is_finite() || !most.is_finite() {
            return exec_err!(
                "a bar has a number, bounds that grow, and a width from 1 to {WIDEST}"
            );
        }
        bar((number - least) / (most - least), width, &mut text);
        bars.append_value(&text);
    }
    Ok(Arc::new(bars.finish()))
}

/// A share of a width in eighths of blocks.
fn bar(share: f64, width: f64, to: &mut String) {
    const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    to.clear();
    // NaN is no block.
    let eighths = (share.clamp(0.0, 1.0) * width * 8.0) as usize;
    to.extend(std::iter::repeat_n('█', eighths / 8));
    if let Some(last) = EIGHTHS.get(eighths % 8).filter(|last| **last != ' ') {
        to.push(*last);
    }
    let written = to.chars().count();
    to.extend(std::iter::repeat_n(' ', (width as usize).saturating_sub(written)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_written_and_read() {
        assert_eq!(size(16_000, 1_024, BINARY), "15.6 KiB");
        assert_eq!(size(i64::MIN, 1_024, BINARY), "-8192.0 PiB");
        assert_eq!(size(999, 1_000, DECIMAL), "999 bytes");
        assert_eq!(size(-1, 1_000, DECIMAL), "-1 byte");
        assert_eq!(bytes(" 1.5 MB "), Some(1_500_000));
        assert_eq!(bytes("16KiB"), Some(16_384));
        assert_eq!((bytes("x"), bytes("9000 PiB"), bytes("1")), (None, None, None));
    }
}
