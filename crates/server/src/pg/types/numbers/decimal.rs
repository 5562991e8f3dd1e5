//! Decimals: how they are read.

use super::super::rejected::{Rejected, Result, code, shown};
use super::number::trim;
use super::numeric::NEGATIVE;

/// The most digits of a decimal.
const MOST: u8 = 38;
/// The digits after the point that Postgres has at most.
const MOST_AFTER: i64 = 16_383;

/// A number: `unscaled` by ten to the power of `-scale`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Decimal {
    pub(in super::super) unscaled: i128,
    pub(in super::super) scale: u8,
}

/// The precision and the scale of a column, to which numbers are rounded half away from zero.
pub(in super::super) type Digits = (u8, i8);

impl Decimal {
    /// Reads a number from its text. Without a column it keeps the digits after the point that are written.
    pub(in super::super) fn of_text(text: &[u8], column: Option<Digits>) -> Result<Self> {
        let malformed = || Rejected::text("numeric", text);
        let trimmed = trim(text);
        let (is_negative, unsigned) = match trimmed {
            [b'-', unsigned @ ..] => (true, unsigned),
            [b'+', unsigned @ ..] => (false, unsigned),
            unsigned => (false, unsigned),
        };
        if ["nan", "inf", "infinity"]
            .iter()
            .any(|name| unsigned.eq_ignore_ascii_case(name.as_bytes()))
        {
            return Err(no_number(&shown(trimmed)));
        }
        let end =
            unsigned.iter().position(|byte| matches!(byte, b'e' | b'E')).unwrap_or(unsigned.len());
        let exponent = match &unsigned[end..] {
            [] => 0,
            [_, digits @ ..] => exponent(digits).ok_or_else(malformed)?,
        };
        let point = unsigned[..end].iter().position(|byte| *byte == b'.');
        let (whole, fraction) = match point {
            Some(point) => (&unsigned[..point], &unsigned[point + 1..end]),
            None => (&unsigned[..end], &[][..]),
        };
        let all = || whole.iter().chain(fraction).copied();
        if whole.len() + fraction.len() == 0 || !all().all(|digit| digit.is_ascii_digit()) {
            return Err(malformed());
        }
        let after = (fraction.len() as i64 - exponent).max(0);
        let groups = all().map(|digit| u16::from(digit - b'0'));
        let digits = Groups { width: 1, end: whole.len() as i64 + exponent, groups };
        digits.read(is_negative, after, column).ok_or_else(|| too_long(&shown(trimmed), column))
    }

    /// Reads a number from its bytes. Without a column it keeps the digits after the point that its head declares.
    pub(in super::super) fn of_binary(bytes: &[u8], column: Option<Digits>) -> Result<Self> {
        let malformed = || Rejected::binary("numeric");
        let (head, groups) = bytes.split_at_checked(8).ok_or_else(malformed)?;
        let word = |bytes: &[u8]| u16::from_be_bytes([bytes[0], bytes[1]]);
        let (count, weight) = (word(head), word(&head[2..]).cast_signed());
        let (sign, after) = (word(&head[4..]), i64::from(word(&head[6..])));
        match sign {
            0 | NEGATIVE => (),
            0xC000 => return Err(no_number("NaN")),
            0xD000 => return Err(no_number("Infinity")),
            0xF000 => return Err(no_number("-Infinity")),
            _ => {
                return Err(Rejected::new(
                    code::BINARY,
                    "invalid sign in external \"numeric\" value",
                ));
            }
        }
        if groups.len() != usize::from(count) * 2 || after > MOST_AFTER {
            return Err(malformed());
        }
        let groups = groups.chunks_exact(2).map(word);
        if groups.clone().any(|group| group >= 10_000) {
            return Err(Rejected::new(code::BINARY, "invalid digit in external \"numeric\" value"));
        }
        let groups = Groups { width: 4, end: (i64::from(weight) + 1) * 4, groups };
        groups.read(sign == NEGATIVE, after, column).ok_or_else(|| too_long("", column))
    }

    /// Its digits, at least as many as are after the point.
    pub(in super::super) fn precision(self) -> u8 {
        let digits = self.unscaled.unsigned_abs().checked_ilog10().map_or(1, |last| last as u8 + 1);
        digits.max(self.scale)
    }

    /// The same number with more digits after the point; `None` if there would be too many in all.
    pub(in super::super) fn with_scale(self, scale: u8) -> Option<Self> {
        let factor = 10_i128.checked_pow(u32::from(scale.checked_sub(self.scale)?))?;
        let unscaled = self.unscaled.checked_mul(factor)?;
        let number = Self { unscaled, scale };
        (number.precision() <= MOST).then_some(number)
    }
}

/// Groups of decimal digits, the highest first.
struct Groups<I> {
    /// The digits of a group: one in text, four in binary.
    width: u32,
    /// The digits from the begin of the first group to the point.
    end: i64,
    groups: I,
}

impl<I: Iterator<Item = u16> + Clone> Groups<I> {
    /// The number, rounded to a column, or else with so many digits after the point. Zeros at its end are left out if they have no room.
    /// `None` if it is too long.
    fn read(self, is_negative: bool, after: i64, column: Option<Digits>) -> Option<Decimal> {
        let most = i64::from(MOST);
        let (unscaled, scale) = match column {
            Some((precision, scale)) => {
                (self.units(i64::from(scale), precision)?, scale.max(0).unsigned_abs())
            }
            None => {
                let whole = Some(after).filter(|after| *after <= most);
                let found = whole.and_then(|scale| Some((self.units(scale, MOST)?, scale)));
                let (unscaled, scale) = match found {
                    Some(found) => found,
                    None => {
                        let scale = Some(self.needed()).filter(|needed| *needed <= most)?;
                        (self.units(scale, MOST)?, scale)
                    }
                };
                (unscaled, u8::try_from(scale).ok()?)
            }
        };
        Some(Decimal { unscaled: if is_negative { -unscaled } else { unscaled }, scale })
    }

    /// The number in units of the last of `scale` digits after the point, rounded half up. `None` if it has more than `precision` digits.
    fn units(&self, scale: i64, precision: u8) -> Option<i128> {
        let limit = 10_i128.pow(u32::from(precision.min(MOST)));
        let width = i64::from(self.width);
        let mut left = self.end + scale;
        let mut value = 0_i128;
        for group in self.groups.clone() {
            let group = i128::from(group);
            if left >= width {
                value = value.checked_mul(10_i128.pow(self.width))?.checked_add(group)?;
                left -= width;
            } else if left < 0 {
                left = 0;
                break;
            } else {
                let (kept, dropped) = (left as u32, (width - left) as u32);
                let next = group / 10_i128.pow(dropped - 1) % 10;
                let group = group / 10_i128.pow(dropped) + i128::from(next >= 5);
                value = value.checked_mul(10_i128.pow(kept))?.checked_add(group)?;
                left = 0;
                break;
            }
            if value >= limit {
                return None;
            }
        }
        if value > 0 && left > 0 {
            let zeros = u32::try_from(left).ok().and_then(|zeros| 10_i128.checked_pow(zeros))?;
            value = value.checked_mul(zeros)?;
        }
        (value < limit).then_some(value)
    }

    /// The fewest digits after the point that leave nothing out.
    fn needed(&self) -> i64 {
        let width = i64::from(self.width);
        let places = self.groups.clone().zip(1_i64..).filter(|(group, _)| *group > 0);
        let ends = places.map(|(group, place)| {
            let zeros = (1..self.width).take_while(|zeros| group % 10_u16.pow(*zeros) == 0).count();
            place * width - zeros as i64 - self.end
        });
        ends.max().unwrap_or(0).max(0)
    }
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

fn no_number(name: &str) -> Rejected {
    Rejected::new(code::NUMBER_RANGE, format!("a DECIMAL cannot be {name}: use DOUBLE"))
}

fn too_long(number: &str, column: Option<Digits>) -> Rejected {
    let number = if number.is_empty() { String::new() } else { format!(" {number}") };
    let message = match column {
        Some((precision, scale)) => {
            format!(
                "numeric field overflow: the number{number} does not fit in DECIMAL({precision},{scale})"
            )
        }
        None => format!("the number{number} has more than the {MOST} digits that a DECIMAL has"),
    };
    Rejected::new(code::NUMBER_RANGE, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Option<(i128, u8)> {
        Decimal::of_text(text.as_bytes(), None).ok().map(|number| (number.unscaled, number.scale))
    }

    #[test]
    fn numbers_have_the_digits_that_are_written() {
        assert_eq!(text(" 1.50 "), Some((150, 2)));
        assert_eq!(text("-.5"), Some((-5, 1)));
        assert_eq!(text("5."), Some((5, 0)));
        assert_eq!(text("1.5e3"), Some((1500, 0)));
        assert_eq!(text("1.5e-3"), Some((15, 4)));
        assert_eq!(text("0e-1000000"), Some((0, 0)));
        assert_eq!(text(&format!("1.{}", "0".repeat(50))), Some((1, 0)));
        assert_eq!(text(&"9".repeat(38)), Some((10_i128.pow(38) - 1, 0)));
        for wrong in
            ["", ".", "1e", "1 2", "--1", "0x10", "1_0", &"9".repeat(39), "1e38", "1e-39", "NaN"]
        {
            assert_eq!(text(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn numbers_are_rounded_half_away_from_zero() {
        let column = |text: &str, precision, scale| {
            Decimal::of_text(text.as_bytes(), Some((precision, scale)))
                .map(|number| number.unscaled)
        };
        assert_eq!(column("1.005", 5, 2), Ok(101));
        assert_eq!(column("-1.005", 5, 2), Ok(-101));
        assert_eq!(column("0.0049999", 5, 2), Ok(0));
        assert_eq!(column("5e-3", 5, 2), Ok(1));
        assert_eq!(column("5e-4", 5, 2), Ok(0));
        assert_eq!(column("1249", 5, -2), Ok(12));
        assert_eq!(column("999.995", 5, 2).unwrap_err().code(), "22003");
        assert_eq!(column(&format!("{}.4", "9".repeat(38)), 38, 0), Ok(10_i128.pow(38) - 1));
    }

    #[test]
    fn groups_are_read_as_digits() {
        let read = |words: &[i16], column| {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
            Decimal::of_binary(&bytes, column).map(|number| (number.unscaled, number.scale))
        };
        assert_eq!(read(&[0, 0, 0, 2], None), Ok((0, 2)));
        assert_eq!(read(&[1, -2, 0, 5, 1000], None), Ok((1, 5)));
        assert_eq!(read(&[2, 0, 0x4000, 2, 123, 4500], None), Ok((-12_345, 2)));
        assert_eq!(read(&[2, 0, 0, 4, 1, 2350], Some((5, 1))), Ok((12, 1)));
        assert_eq!(read(&[2, 0, 0, 4, 1, 2500], Some((5, 0))), Ok((1, 0)));
        assert_eq!(read(&[1, 9, 0, 0, 1], None), Ok((10_i128.pow(36), 0)));
        assert_eq!(read(&[1, 0, 0, 60, 1], None), Ok((1, 0)));
        assert_eq!(read(&[1, 10, 0, 0, 1], None).unwrap_err().code(), "22003");
        assert_eq!(read(&[2, 0, 0, 0, 1], None).unwrap_err().code(), "22P03");
        assert_eq!(read(&[1, 0, 0, 0, 10_000], None).unwrap_err().code(), "22P03");
        assert_eq!(read(&[0, 0, 1, 0], None).unwrap_err().code(), "22P03");
    }
}
