//! Decimals: how they are written.
//!
//! In binary a number is groups of four digits, of which the first has the weight 10000 to the power of `weight`:
//!
//! ```text
//! i16 groups   i16 weight   i16 sign   i16 digits after the point   i16 each group
//! ```

use arrow::datatypes::i256;
use bytes::{BufMut, BytesMut};

/// The sign of a negative number.
pub(in super::super) const NEGATIVE: u16 = 0x4000;

/// A number of up to 320 bits, the lowest 64 first.
pub(in super::super) struct Magnitude([u64; 5]);

impl Magnitude {
    /// The sign and the absolute value of a number of 128 bits.
    pub(in super::super) fn of(value: i128) -> (bool, Self) {
        let absolute = value.unsigned_abs();
        (value < 0, Self([absolute as u64, (absolute >> 64) as u64, 0, 0, 0]))
    }

    /// The sign and the absolute value of a number of 256 bits.
    pub(in super::super) fn of_long(value: i256) -> (bool, Self) {
        let is_negative = value < i256::ZERO;
        // The least number has no opposite, and is its own absolute value once it is taken as unsigned.
        let absolute = if is_negative { value.wrapping_neg() } else { value };
        let bytes = absolute.to_le_bytes();
        let mut limbs = [0; 5];
        for (limb, bytes) in limbs.iter_mut().zip(bytes.chunks_exact(8)) {
            *limb = bytes.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte));
        }
        (is_negative, Self(limbs))
    }

    fn is_zero(&self) -> bool {
        self.0 == [0; 5]
    }

    /// Divides it and returns the rest.
    fn divide(&mut self, by: u64) -> u64 {
        let mut rest = 0_u64;
        let used = self.0.iter().rposition(|limb| *limb != 0).map_or(0, |last| last + 1);
        for limb in self.0[..used].iter_mut().rev() {
            if rest == 0 && *limb < by {
                (rest, *limb) = (*limb, 0);
                continue;
            }
            let value = u128::from(rest) << 64 | u128::from(*limb);
            *limb = (value / u128::from(by)) as u64;
            rest = (value % u128::from(by)) as u64;
        }
        rest
    }

    /// Multiplies it; 320 bits hold the product of 256 bits and a number of four digits.
    fn multiply(&mut self, by: u64) {
        let mut carry = 0_u128;
        for limb in &mut self.0 {
            let value = u128::from(*limb) * u128::from(by) + carry;
            *limb = value as u64;
            carry = value >> 64;
        }
    }
}

/// Writes a number of so many units of the last of `scale` digits after the point.
pub(in super::super) fn put_text(
    (is_negative, mut number): (bool, Magnitude),
    scale: i8,
    out: &mut BytesMut,
) {
    let mut digits = [b'0'; 100];
    let mut first = digits.len();
    let mut put = |mut value: u64, least: usize| {
        let end = first - least;
        while value > 0 || first > end {
            first -= 1;
            digits[first] = b'0' + (value % 10) as u8;
            value /= 10;
        }
    };
    while number.0[1..] != [0; 4] {
        put(number.divide(10_u64.pow(18)), 18);
    }
    put(number.0[0], 0);
    let digits = &digits[first..];
    let after = usize::from(scale.max(0).unsigned_abs());
    if is_negative {
        out.put_u8(b'-');
    }
    if digits.len() <= after {
        out.put_slice(b"0.");
        out.put_bytes(b'0', after - digits.len());
        out.put_slice(digits);
        if after == 0 {
            out.truncate(out.len() - 1);
        }
        return;
    }
    let (whole, fraction) = digits.split_at(digits.len() - after);
    out.put_slice(whole);
    out.put_bytes(b'0', usize::from(scale.min(0).unsigned_abs()));
    if !fraction.is_empty() {
        out.put_u8(b'.');
        out.put_slice(fraction);
    }
}

/// Writes it in binary.
pub(in super::super) fn put_binary(
    (is_negative, mut number): (bool, Magnitude),
    scale: i8,
    out: &mut BytesMut,
) {
    let after = i32::from(scale.max(0));
    // The lowest group first.
    let mut groups = [0_i16; 24];
    let mut count = 0;
    let mut push = |group: u64| {
        groups[count] = group as i16;
        count += 1;
    };
    let before = i32::from(scale.min(0).unsigned_abs());
    number.multiply(10_u64.pow((before % 4).unsigned_abs()));
    let cut = (after % 4).unsigned_abs();
    if cut > 0 && !number.is_zero() {
        push(number.divide(10_u64.pow(cut)) * 10_u64.pow(4 - cut));
    }
    while number.0[1..] != [0; 4] {
        let mut rest = number.divide(10_u64.pow(16));
        for _ in 0..4 {
            push(rest % 10_000);
            rest /= 10_000;
        }
    }
    while number.0[0] > 0 {
        push(number.0[0] % 10_000);
        number.0[0] /= 10_000;
    }
    let weight = count as i32 - (after + 3) / 4 - 1 + before / 4;
    let zeros = groups[..count].iter().take_while(|group| **group == 0).count();
    let groups = &groups[zeros..count];
    out.put_i16(groups.len() as i16);
    out.put_i16(if groups.is_empty() { 0 } else { weight as i16 });
    out.put_u16(if is_negative { NEGATIVE } else { 0 });
    out.put_i16(after as i16);
    for group in groups.iter().rev() {
        out.put_i16(*group);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(number: (bool, Magnitude), scale: i8) -> String {
        let mut out = BytesMut::new();
        put_text(number, scale, &mut out);
        String::from_utf8(out.to_vec()).unwrap()
    }

    #[test]
    fn points_stand_before_as_many_digits_as_the_scale() {
        let short = |value, scale| text(Magnitude::of(value), scale);
        assert_eq!(short(0, 0), "0");
        assert_eq!(short(0, 2), "0.00");
        assert_eq!(short(-5, 2), "-0.05");
        assert_eq!(short(-12_345, 2), "-123.45");
        assert_eq!(short(12, -3), "12000");
        assert_eq!(short(10_i128.pow(18), 18), "1.000000000000000000");
        assert_eq!(short(i128::MIN, 0), i128::MIN.to_string());
        assert_eq!(short(i128::MAX, 38), "1.70141183460469231731687303715884105727");
        for value in [i256::MIN, i256::MAX, i256::ZERO, i256::ONE, i256::from_i128(i128::MIN)] {
            assert_eq!(text(Magnitude::of_long(value), 0), value.to_string());
        }
    }

    #[test]
    fn groups_are_aligned_to_the_point() {
        let binary = |value, scale| {
            let mut out = BytesMut::new();
            put_binary(Magnitude::of(value), scale, &mut out);
            let words: Vec<i16> =
                out.chunks_exact(2).map(|word| i16::from_be_bytes([word[0], word[1]])).collect();
            words
        };
        assert_eq!(binary(0, 2), [0, 0, 0, 2]);
        assert_eq!(binary(1, 5), [1, -2, 0, 5, 1000]);
        assert_eq!(binary(-12_345, 2), [2, 0, 0x4000, 2, 123, 4500]);
        assert_eq!(binary(12, -5), [1, 1, 0, 0, 120]);
        assert_eq!(binary(10_i128.pow(36), 0), [1, 9, 0, 0, 1]);
        let mut out = BytesMut::new();
        put_binary(Magnitude::of_long(i256::MAX), 1, &mut out);
        put_binary(Magnitude::of_long(i256::MIN), -3, &mut out);
        assert!(!out.is_empty());
    }
}
