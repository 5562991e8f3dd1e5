//! Integers, floating point and booleans.

use std::fmt::{self, Arguments, LowerExp, Write};

use bytes::BytesMut;

use super::super::line::Line;
use super::super::rejected::{Rejected, Result};

/// The bits of a mantissa of 4 and of 8 bytes.
const BITS: (u32, u32) = (24, 53);
/// The digits before the point from which on Postgres writes an exponent, for 4 and for 8 bytes.
const WHOLE: (i32, i32) = (6, 15);

/// Writes an integer.
pub(in super::super) fn put_integer(value: i64, out: &mut BytesMut) {
    let mut line = Line::new();
    line.signed(value);
    line.put(out);
}

/// Writes an integer without a sign.
pub(in super::super) fn put_unsigned(value: u64, out: &mut BytesMut) {
    let mut line = Line::new();
    line.number(value, 1);
    line.put(out);
}

/// Writes a number of 4 bytes with the fewest digits that tell it apart.
pub(in super::super) fn put_float4(value: f32, out: &mut BytesMut) {
    match special(f64::from(value)) {
        Some(text) => out.extend_from_slice(text),
        None => Shortest::of(value, BITS.0).put(value.is_sign_negative(), WHOLE.0, out),
    }
}

/// Writes a number of 8 bytes with the fewest digits that tell it apart.
pub(in super::super) fn put_float8(value: f64, out: &mut BytesMut) {
    match special(value) {
        Some(text) => out.extend_from_slice(text),
        None => Shortest::of(value, BITS.1).put(value.is_sign_negative(), WHOLE.1, out),
    }
}

/// The text of a value without digits, and of the zeros.
fn special(value: f64) -> Option<&'static [u8]> {
    let text: &[u8] = match value {
        value if value.is_nan() => b"NaN",
        f64::INFINITY => b"Infinity",
        f64::NEG_INFINITY => b"-Infinity",
        0.0 => {
            if value.is_sign_negative() {
                b"-0"
            } else {
                b"0"
            }
        }
        _ => return None,
    };
    Some(text)
}

/// The absolute value of a number: `d.ddd` by ten to the power of `exponent`.
struct Shortest {
    digits: [u8; 17],
    count: usize,
    exponent: i32,
}

impl Shortest {
    /// The fewest digits that are nearer to this number than to any other, and of these the nearest. Rust differs in two cases. It also
    /// takes digits in the middle of two numbers that are read as the even one; Postgres does not count on readers to do so, and prints
    /// another digit. If two are as near Postgres takes the even one.
    fn of(value: impl LowerExp + Into<f64> + Copy, bits: u32) -> Self {
        let mut found = Self::read(format_args!("{value:e}"));
        for more in found.count..found.digits.len() {
            if !found.is_in_the_middle(bits) {
                break;
            }
            found = Self::read(format_args!("{value:.more$e}"));
        }
        // As near are two only if half of the last digit is left: that is as many bits after the point as digits, and one.
        let after = found.count as i32 - 1 - found.exponent;
        if bits_after_point(value.into()) == after + 1 {
            found = Self::read(format_args!("{value:.digits$e}", digits = found.count - 1));
        }
        found
    }

    /// The digits of a text that Rust wrote.
    fn read(text: Arguments<'_>) -> Self {
        let mut found = Self { digits: [b'0'; 17], count: 0, exponent: 0 };
        // Writing never fails: digits without room are left out.
        let _ = Scan { found: &mut found, in_exponent: false, is_negative: false }.write_fmt(text);
        while found.count > 1 && found.digits[found.count - 1] == b'0' {
            found.count -= 1;
        }
        found
    }

    /// Whether it is exactly in the middle of two numbers with mantissas of so many bits: then one bit more holds it.
    fn is_in_the_middle(&self, bits: u32) -> bool {
        let digits = &self.digits[..self.count];
        let number = digits.iter().fold(0_u128, |all, digit| all * 10 + u128::from(digit - b'0'));
        let exponent = self.exponent - (self.count as i32 - 1);
        let Some(five) =
            5_u128.checked_pow(exponent.unsigned_abs()).filter(|five| *five < 1 << (bits + 1))
        else {
            return false;
        };
        let odd = match exponent >= 0 {
            true => number * five,
            false if number.is_multiple_of(five) => number / five,
            false => return false,
        };
        let odd = odd >> odd.trailing_zeros();
        (1 << bits..1 << (bits + 1)).contains(&odd)
    }

    fn put(&self, is_negative: bool, whole: i32, out: &mut BytesMut) {
        let digits = &self.digits[..self.count];
        let mut line = Line::new();
        if is_negative {
            line.byte(b'-');
        }
        if !(-4..whole).contains(&self.exponent) {
            line.text(&digits[..1]);
            if digits.len() > 1 {
                line.byte(b'.');
                line.text(&digits[1..]);
            }
            line.text(if self.exponent < 0 { b"e-" } else { b"e+" });
            line.number(u64::from(self.exponent.unsigned_abs()), 2);
        } else if self.exponent < 0 {
            line.text(&b"0.0000"[..1 + self.exponent.unsigned_abs() as usize]);
            line.text(digits);
        } else {
            let before = self.exponent as usize + 1;
            for place in 0..before.max(digits.len()) {
                if place == before {
                    line.byte(b'.');
                }
                line.byte(digits.get(place).copied().unwrap_or(b'0'));
            }
        }
        line.put(out);
    }
}

/// How many bits a number has after the point; negative if it is a multiple of a power of two.
fn bits_after_point(value: f64) -> i32 {
    let bits = value.to_bits();
    let exponent = (bits >> 52 & 0x7ff) as i32;
    let mantissa = bits & ((1 << 52) - 1);
    match exponent {
        0 => 1_074 - mantissa.trailing_zeros() as i32,
        _ => 1_075 - exponent - (mantissa | 1 << 52).trailing_zeros() as i32,
    }
}

/// Reads a number in the form of Rust, piece by piece as it is written.
struct Scan<'a> {
    found: &'a mut Shortest,
    in_exponent: bool,
    /// Whether the last sign was a minus: of the number, and then of the exponent.
    is_negative: bool,
}

impl Write for Scan<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            match byte {
                b'e' => (self.in_exponent, self.is_negative) = (true, false),
                b'-' => self.is_negative = true,
                b'0'..=b'9' if self.in_exponent => {
                    let digit = i32::from(byte - b'0');
                    let digit = if self.is_negative { -digit } else { digit };
                    self.found.exponent = self.found.exponent * 10 + digit;
                }
                b'0'..=b'9' if self.found.count < self.found.digits.len() => {
                    self.found.digits[self.found.count] = byte;
                    self.found.count += 1;
                }
                _ => (),
            }
        }
        Ok(())
    }
}

/// A number beyond the ends of all types.
const FAR: i128 = 1 << 100;

/// Reads an integer, with blanks around it or not.
pub(in super::super) fn integer<T: TryFrom<i128>>(text: &[u8], kind: &str) -> Result<T> {
    let trimmed = trim(text);
    let (sign, digits) = match trimmed {
        [b'-', digits @ ..] => (-1, digits),
        [b'+', digits @ ..] => (1, digits),
        digits => (1, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(Rejected::text(kind, text));
    }
    let value = match digits.len() {
        0..=18 => {
            i128::from(digits.iter().fold(0_i64, |all, digit| all * 10 + i64::from(digit - b'0')))
        }
        _ => digits.iter().fold(0, |all, digit| (all * 10 + i128::from(digit - b'0')).min(FAR)),
    };
    let shown = || String::from_utf8_lossy(&trimmed[..trimmed.len().min(40)]).into_owned();
    T::try_from(sign * value).map_err(|_| Rejected::number_range(kind, shown()))
}

/// Reads a number of 4 bytes.
pub(in super::super) fn float4(text: &[u8]) -> Result<f32> {
    let value: f32 = float(text, "real")?;
    if is_beyond(text, value.is_infinite(), value == 0.0) {
        return Err(Rejected::number_range("real", super::super::rejected::shown(text)));
    }
    Ok(value)
}

/// Reads a number of 8 bytes.
pub(in super::super) fn float8(text: &[u8]) -> Result<f64> {
    let value: f64 = float(text, "double precision")?;
    if is_beyond(text, value.is_infinite(), value == 0.0) {
        return Err(Rejected::number_range(
            "double precision",
            super::super::rejected::shown(text),
        ));
    }
    Ok(value)
}

fn float<T: std::str::FromStr>(text: &[u8], kind: &str) -> Result<T> {
    let read = std::str::from_utf8(trim(text)).ok().and_then(|text| text.parse().ok());
    read.ok_or_else(|| Rejected::text(kind, text))
}

/// Whether digits were read as infinity, or as zero though one is none.
fn is_beyond(text: &[u8], is_infinite: bool, is_zero: bool) -> bool {
    let mut mantissa = text.iter().take_while(|byte| !matches!(byte, b'e' | b'E'));
    is_infinite && text.iter().any(u8::is_ascii_digit)
        || is_zero && mantissa.any(|byte| matches!(byte, b'1'..=b'9'))
}

/// Reads a boolean: a word, or the beginning of one that is not ambiguous.
pub(in super::super) fn boolean(text: &[u8]) -> Result<bool> {
    let word = trim(text).to_ascii_lowercase();
    let begins =
        |whole: &str, least: usize| word.len() >= least && whole.as_bytes().starts_with(&word);
    if begins("true", 1) || begins("yes", 1) || word == b"on" || word == b"1" {
        Ok(true)
    } else if begins("false", 1) || begins("no", 1) || begins("off", 2) || word == b"0" {
        Ok(false)
    } else {
        Err(Rejected::text("boolean", text))
    }
}

/// A text without the blanks around it, which are those of C.
pub(in super::super) fn trim(text: &[u8]) -> &[u8] {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t'..=b'\r');
    let Some(first) = text.iter().position(|byte| !is_blank(byte)) else { return &[] };
    let last = text.iter().rposition(|byte| !is_blank(byte)).unwrap_or(first);
    &text[first..=last]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_have_as_few_digits_as_tell_them_apart() {
        let text = |value: f64| {
            let mut out = BytesMut::new();
            put_float8(value, &mut out);
            String::from_utf8(out.to_vec()).unwrap()
        };
        for (value, expected) in [
            (1e20, "1e+20"),
            (1e-5, "1e-05"),
            (1e23, "9.999999999999999e+22"),
            (906_367_843_221_977.0 / 8.0, "113295980402747.12"),
            (-0.0001, "-0.0001"),
            (1.5e15, "1.5e+15"),
            (123_456_789_012_345.0, "123456789012345"),
            (12.5, "12.5"),
            (-5e-324, "-5e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
            (-0.0, "-0"),
        ] {
            assert_eq!(text(value), expected);
        }
    }

    #[test]
    fn numbers_beyond_the_ends_are_refused() {
        assert_eq!(integer::<i16>(b" -32768 ", "smallint"), Ok(i16::MIN));
        assert_eq!(integer::<i16>(b"32768", "smallint").unwrap_err().code(), "22003");
        assert_eq!(integer::<i64>(&[b'9'; 1000], "bigint").unwrap_err().code(), "22003");
        assert_eq!(integer::<i64>(b"1 2", "bigint").unwrap_err().code(), "22P02");
        assert_eq!(float8(b"1e400").unwrap_err().code(), "22003");
        assert_eq!(float8(b"1e-400").unwrap_err().code(), "22003");
        assert_eq!(float8(b" 0e-400"), Ok(0.0));
        assert_eq!(float8(b"-Infinity"), Ok(f64::NEG_INFINITY));
        assert_eq!(float4(b"").unwrap_err().code(), "22P02");
    }

    #[test]
    fn booleans_may_be_cut_short() {
        for (text, value) in
            [("t", true), (" TRUE ", true), ("of", false), ("n", false), ("1", true)]
        {
            assert_eq!(boolean(text.as_bytes()), Ok(value));
        }
        for text in ["", "o", "truest", "2", "onn"] {
            assert!(boolean(text.as_bytes()).is_err(), "{text}");
        }
    }
}
