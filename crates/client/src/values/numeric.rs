//! Numbers: groups of four decimal digits, of which the first has the weight 10000 to the power of `weight`.
//!
//! ```text
//! i16 groups   i16 weight   i16 sign   i16 digits after the point   i16 each group
//! ```

use arrow::datatypes::i256;
use bytes::{BufMut, BytesMut};

use super::malformed::malformed;
use crate::error::{Error, Result};

/// The sign of a negative number.
const NEGATIVE: u16 = 0x4000;
/// The digits of a group.
const WIDTH: i32 = 4;
/// One more than the most that a group has.
const GROUP: u32 = 10_000;
/// The most groups of 256 bits, with those that the point splits.
const MOST_GROUPS: usize = 24;

/// An integer that holds the units of a number.
pub(super) trait Units: Copy {
    /// Zero.
    const ZERO: Self;
    /// `self * factor + more`; `None` if it is too large.
    fn step(self, factor: u32, more: u32) -> Option<Self>;
    /// The opposite number.
    fn negated(self) -> Self;
    /// The absolute value divided by so much, and the rest.
    fn divided(self, by: u32) -> (Self, u32);
    /// Whether it is below zero.
    fn is_negative(self) -> bool;
    /// Whether it is zero.
    fn is_zero(self) -> bool;
}

impl Units for i128 {
    const ZERO: Self = 0;

    fn step(self, factor: u32, more: u32) -> Option<Self> {
        self.checked_mul(Self::from(factor))?.checked_add(Self::from(more))
    }

    fn negated(self) -> Self {
        self.wrapping_neg()
    }

    fn divided(self, by: u32) -> (Self, u32) {
        let absolute = self.unsigned_abs();
        let by = u128::from(by);
        // A quotient of two or more has one bit less.
        ((absolute / by) as Self, (absolute % by) as u32)
    }

    fn is_negative(self) -> bool {
        self < 0
    }

    fn is_zero(self) -> bool {
        self == 0
    }
}

impl Units for i256 {
    const ZERO: Self = Self::ZERO;

    fn step(self, factor: u32, more: u32) -> Option<Self> {
        self.checked_mul(Self::from_i128(factor.into()))?.checked_add(Self::from_i128(more.into()))
    }

    fn negated(self) -> Self {
        self.wrapping_neg()
    }

    fn divided(self, by: u32) -> (Self, u32) {
        let by = Self::from_i128(by.into());
        let (quotient, rest) = (self.wrapping_div(by), self.wrapping_rem(by));
        let rest = rest.as_i128().unsigned_abs() as u32;
        (if quotient < Self::ZERO { quotient.wrapping_neg() } else { quotient }, rest)
    }

    fn is_negative(self) -> bool {
        self < Self::ZERO
    }

    fn is_zero(self) -> bool {
        self == Self::ZERO
    }
}

/// Reads a number in units of the last of `scale` digits after the point. None of its digits is dropped.
pub(super) fn read<U: Units>(bytes: &[u8], scale: i8) -> Result<U> {
    let (head, groups) = bytes.split_at_checked(8).ok_or_else(malformed)?;
    let word = |bytes: &[u8]| u16::from_be_bytes([bytes[0], bytes[1]]);
    let (count, weight) = (usize::from(word(head)), i32::from(word(&head[2..]).cast_signed()));
    let sign = word(&head[4..]);
    if !matches!(sign, 0 | NEGATIVE) {
        return Err(Error::value("a DECIMAL that is NaN or infinite cannot be read"));
    }
    if groups.len() != count * 2 {
        return Err(malformed());
    }
    let mut value = U::ZERO;
    // The power of ten of the group's last digit, in units.
    let mut power = WIDTH * (weight + 1) + i32::from(scale);
    for group in groups.chunks_exact(2).map(word).map(u32::from) {
        power -= WIDTH;
        if group >= GROUP {
            return Err(malformed());
        }
        let step = match power {
            0.. => value.step(GROUP, group),
            -3..0 => {
                let dropped = 10_u32.pow(power.unsigned_abs());
                if !group.is_multiple_of(dropped) {
                    return Err(malformed());
                }
                value.step(GROUP / dropped, group / dropped)
            }
            _ if group == 0 => Some(value),
            _ => return Err(malformed()),
        };
        value = step.ok_or_else(malformed)?;
    }
    if !value.is_zero() {
        for _ in 0..power {
            value = value.step(10, 0).ok_or_else(malformed)?;
        }
    }
    Ok(if sign == NEGATIVE { value.negated() } else { value })
}

/// Writes a number in units of the last of `scale` digits after the point.
pub(super) fn write<U: Units>(value: U, scale: i8, out: &mut BytesMut) {
    let is_negative = value.is_negative();
    let after = i32::from(scale.max(0));
    // The lowest group first.
    let mut groups = [0_u16; MOST_GROUPS];
    let mut count = 0;
    let mut rest = value;
    let mut put = |group: u32| {
        groups[count] = group as u16;
        count += 1;
    };
    // The point is between two groups, so the lowest may have less than four digits of the number.
    let split = i32::from(scale).rem_euclid(WIDTH);
    if split != 0 {
        let (next, group) = rest.divided(10_u32.pow(split.unsigned_abs()));
        put(group * 10_u32.pow((WIDTH - split).unsigned_abs()));
        rest = next;
    }
    while !rest.is_zero() {
        let (next, group) = rest.divided(GROUP);
        put(group);
        rest = next;
    }
    // How many groups are after the point, below zero for zeros before it.
    let below = (i32::from(scale) - split).div_euclid(WIDTH) + i32::from(split != 0);
    let weight = count as i32 - below - 1;
    let used = &groups[..count];
    let zeros = used.iter().take_while(|group| **group == 0).count();
    let used = &used[zeros..];
    out.put_u16(used.len() as u16);
    out.put_i16(if used.is_empty() { 0 } else { weight as i16 });
    out.put_u16(if is_negative && !used.is_empty() { NEGATIVE } else { 0 });
    out.put_u16(after as u16);
    for group in used.iter().rev() {
        out.put_u16(*group);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(words: &[i16]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_be_bytes()).collect()
    }

    #[test]
    fn groups_are_read_as_digits() {
        let number = |words: &[i16], scale| read::<i128>(&bytes(words), scale).ok();
        assert_eq!(number(&[0, 0, 0, 2], 2), Some(0));
        assert_eq!(number(&[2, 0, 0x4000, 2, 123, 4500], 2), Some(-12_345));
        assert_eq!(number(&[1, -2, 0, 5, 1000], 5), Some(1));
        assert_eq!(number(&[1, 9, 0, 0, 1], 0), Some(10_i128.pow(36)));
        assert_eq!(number(&[1, 1, 0, 0, 12], -2), Some(1_200));
        for wrong in [
            &[2, 0, 0, 0, 1][..],
            &[1, 0, 0, 0, 10_000],
            &[0, 0, -16_384, 0],
            &[1, 0, 1, 0, 1],
            &[1, 20, 0, 0, 1],
            &[1, i16::MAX, 0, 0, 1],
            &[1, i16::MIN, 0, 0, 1],
            &[2, 0, 0, 4, 1, 1],
            &[],
        ] {
            assert_eq!(number(wrong, 2), None, "{wrong:?}");
        }
    }

    #[test]
    fn numbers_come_back_as_they_went() {
        let mut random = 0x2545_F491_4F6C_DD1D_u64;
        for round in 0..20_000_u32 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let shift = round % 120;
            let unscaled = (i128::from(random) << 64 | i128::from(random.rotate_left(31))) >> shift;
            let scale = (round % 39) as i8 - (round % 5) as i8;
            let mut out = BytesMut::new();
            write(unscaled, scale, &mut out);
            assert_eq!(read::<i128>(&out, scale).ok(), Some(unscaled), "{unscaled} {scale}");
            let long = i256::from_i128(unscaled).wrapping_mul(i256::from_i128(i128::MAX >> shift));
            let mut out = BytesMut::new();
            write(long, scale, &mut out);
            assert_eq!(read::<i256>(&out, scale).ok(), Some(long), "{long} {scale}");
        }
        for (value, scale) in [(i128::MIN + 1, 0), (i128::MAX, 38), (0, 5), (-1, 38), (1, -3)] {
            let mut out = BytesMut::new();
            write(value, scale, &mut out);
            assert_eq!(read::<i128>(&out, scale).ok(), Some(value), "{value} {scale}");
        }
    }
}
