//! Texts as DECIMAL.
//!
//! Casts and readers of files share this, so that a number means the same wherever it stands. Arrow has two parsers:
//! that of its casts recurses once for every 38 digits and knows no exponents, and that of its readers cuts digits off and
//! counts them in a byte.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Decimal128Array, StringArray};
use arrow::datatypes::DECIMAL128_MAX_PRECISION;
use arrow::error::ArrowError;

/// How much of a text a message shows.
const SHOWN: usize = 40;

/// The value of a number with an optional sign, point and exponent, in units of the last of `scale` digits after the
/// point. It is rounded half away from zero. `None` for another text, and for a number of more than `precision` digits.
pub fn parse(text: &str, precision: u8, scale: i8) -> Option<i128> {
    let text = text.trim_ascii().as_bytes();
    let (is_negative, unsigned) = match text {
        [b'-', unsigned @ ..] => (true, unsigned),
        [b'+', unsigned @ ..] => (false, unsigned),
        unsigned => (false, unsigned),
    };
    let end = unsigned.iter().position(|byte| matches!(byte, b'e' | b'E'));
    let (digits, exponent) = match end {
        Some(end) => (&unsigned[..end], exponent(&unsigned[end + 1..])?),
        None => (unsigned, 0),
    };
    let point = digits.iter().position(|byte| *byte == b'.');
    let (whole, fraction) = match point {
        Some(point) => (&digits[..point], &digits[point + 1..]),
        None => (digits, &[][..]),
    };
    let all = || whole.iter().chain(fraction);
    if whole.len() + fraction.len() == 0 || !all().all(u8::is_ascii_digit) {
        return None;
    }
    // How many digits are not rounded away. Beyond the last one there are zeros.
    let kept = whole.len() as i64 + exponent + i64::from(scale);
    let limit = 10_i128.pow(u32::from(precision.min(DECIMAL128_MAX_PRECISION)));
    let mut value = 0_i128;
    let mut given = all().map(|digit| i128::from(digit - b'0'));
    for digit in given.by_ref().take(usize::try_from(kept).unwrap_or(0)) {
        value = value.checked_mul(10)?.checked_add(digit)?;
        if value >= limit {
            return None;
        }
    }
    let missing = kept - (whole.len() + fraction.len()) as i64;
    if value > 0 && missing > 0 {
        let zeros = u32::try_from(missing).ok().and_then(|zeros| 10_i128.checked_pow(zeros));
        value = value.checked_mul(zeros?)?;
    } else if kept >= 0 && given.next().is_some_and(|digit| digit >= 5) {
        value += 1;
    }
    (value < limit).then_some(if is_negative { -value } else { value })
}

/// The exponent of a number, within bounds beyond which the number is zero or too large.
fn exponent(text: &[u8]) -> Option<i64> {
    const FAR: i64 = 1 << 40;
    let (sign, digits) = match text {
        [b'-', digits @ ..] => (-1, digits),
        [b'+', digits @ ..] => (1, digits),
        digits => (1, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let larger = |value: i64, digit: &u8| (value * 10 + i64::from(digit - b'0')).min(FAR);
    Some(sign * digits.iter().fold(0, larger))
}

/// The texts as DECIMAL of this precision and scale.
///
/// # Errors
///
/// If one of the texts is not such a DECIMAL; with `or_null` it becomes NULL.
pub fn all(
    texts: &StringArray,
    precision: u8,
    scale: i8,
    or_null: bool,
) -> Result<ArrayRef, ArrowError> {
    let decimals = parse_all(texts, precision, scale);
    if !or_null && decimals.null_count() > texts.null_count() {
        return Err(first_error(texts, &decimals, precision, scale));
    }
    Ok(Arc::new(decimals.with_precision_and_scale(precision, scale)?))
}

fn parse_all(texts: &StringArray, precision: u8, scale: i8) -> Decimal128Array {
    texts.iter().map(|text| parse(text?, precision, scale)).collect()
}

fn first_error(
    texts: &StringArray,
    decimals: &Decimal128Array,
    precision: u8,
    scale: i8,
) -> ArrowError {
    let wrong = (0..texts.len()).find(|&row| texts.is_valid(row) && decimals.is_null(row));
    let text = wrong.map_or("", |row| texts.value(row));
    let (shown, rest) = match text.char_indices().nth(SHOWN) {
        Some((end, _)) => (&text[..end], "…"),
        None => (text, ""),
    };
    ArrowError::CastError(format!("{shown:?}{rest} is not a DECIMAL({precision}, {scale})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_half_away_from_zero() {
        let cases = [
            ("1.239", Some(124)),
            ("-1.235", Some(-124)),
            ("1.2349999999999999999999999999999999999999999999", Some(123)),
            (" +12 ", Some(1200)),
            (".5", Some(50)),
            ("5.", Some(500)),
            ("-0.004", Some(0)),
            ("0.005", Some(1)),
            ("99999999.99", Some(9_999_999_999)),
            ("99999999.995", None),
            ("100000000", None),
        ];
        for (text, value) in cases {
            assert_eq!(parse(text, 10, 2), value, "{text}");
        }
    }

    #[test]
    fn exponents_move_the_point_however_far() {
        let cases = [
            ("1e3", Some(100_000)),
            ("1.5E-1", Some(15)),
            ("123e-4", Some(1)),
            ("5e-3", Some(1)),
            ("5e-4", Some(0)),
            ("0e99999999999999999999", Some(0)),
            ("1e65539", None),
            ("1e-99999999999999999999", Some(0)),
            ("1e", None),
            ("1e+", None),
            ("1e1.5", None),
        ];
        for (text, value) in cases {
            assert_eq!(parse(text, 10, 2), value, "{text}");
        }
        assert_eq!(parse("12345", 3, -3), Some(12));
        assert_eq!(parse("12500", 3, -3), Some(13));
        assert_eq!(parse("400", 3, -3), Some(0));
    }

    #[test]
    fn other_texts_are_no_numbers() {
        for text in ["", " ", "-", ".", "e1", "1 2", "1_000", "0x10", "--1", "1.2.3", "NaN", "١"] {
            assert_eq!(parse(text, 10, 2), None, "{text}");
        }
    }

    #[test]
    fn texts_have_any_length() {
        let nines = "9".repeat(4 << 20);
        assert_eq!(parse(&nines, 38, 10), None);
        assert_eq!(parse(&format!("0.{nines}"), 38, 10), Some(10_i128.pow(10)));
        assert_eq!(parse(&format!("{}1", "0".repeat(4 << 20)), 38, 0), Some(1));
        assert_eq!(parse(&format!("1{}", "0".repeat(255)), 10, 2), None);
        let most = 10_i128.pow(38) - 1;
        assert_eq!(parse(&"9".repeat(38), 38, 0), Some(most));
        assert_eq!(parse(&format!("-{}", "9".repeat(38)), 38, 0), Some(-most));
        assert_eq!(parse(&format!("{}.5", "9".repeat(38)), 38, 0), None);
    }
}
