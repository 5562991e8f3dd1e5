//! An exact sum of floats.
//!
//! # Design
//!
//! Every finite `f64` is a whole number of 2^-1074, below 2^2098 of them. The sum is kept as one
//! integer in that unit, in two's complement, wide enough that no number of additions overflows it:
//! adding and subtracting are exact and commute, and rounding happens once, when the value is read.
//! This is the long accumulator of Kulisch ("Computer Arithmetic and Validity", 2008), also known as
//! the small superaccumulator of Neal ("Fast Exact Summation Using Small and Large
//! Superaccumulators", arXiv:1505.05571, 2015), with carries propagated at once, so that equal sums
//! are equal bits.
//!
//! NaN and the infinities are counted, so that they can be subtracted again.

use std::cmp::Ordering;

/// 35 · 64 = 2240 bits: 2098 for any finite float, 126 for 2^63 additions of weight 2^63, a sign.
const LIMBS: usize = 35;

type Limbs = [u64; LIMBS];

/// The explicit bits of a float's significand.
const FRACTION_BITS: u32 = f64::MANTISSA_DIGITS - 1;
const EXPONENT_SPECIAL: u64 = 0x7ff;

/// The sum is below zero.
const NEGATIVE: u8 = 1;
/// There are counts of NaN and infinities.
const SPECIAL: u8 = 2;

/// The exact, weighted sum of any number of floats, in any order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FloatSum {
    /// The finite part in units of 2^-1074, least limb first, in two's complement.
    limbs: Limbs,
    nans: i64,
    positive_infinities: i64,
    negative_infinities: i64,
}

impl Default for FloatSum {
    fn default() -> Self {
        Self { limbs: [0; LIMBS], nans: 0, positive_infinities: 0, negative_infinities: 0 }
    }
}

impl FloatSum {
    /// The empty sum.
    pub fn new() -> Self {
        Self::default()
    }

    /// Resets it to the empty sum.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Adds `x` times `weight`; a negative weight subtracts it.
    ///
    /// Panics if NaN or one infinity is added more than 2^63 times.
    pub fn add(&mut self, x: f64, weight: i64) {
        let bits = x.to_bits();
        let exponent = bits >> FRACTION_BITS & EXPONENT_SPECIAL;
        let fraction = bits & ((1 << FRACTION_BITS) - 1);
        if exponent == EXPONENT_SPECIAL {
            let count = if x.is_nan() {
                &mut self.nans
            } else if x > 0.0 {
                &mut self.positive_infinities
            } else {
                &mut self.negative_infinities
            };
            *count = count.checked_add(weight).expect("fewer than 2^63 rows");
            return;
        }
        // Subnormals have the exponent of the smallest normal number and no hidden bit.
        let (significand, shift) = match exponent {
            0 => (fraction, 0),
            _ => (fraction | 1 << FRACTION_BITS, exponent as usize - 1),
        };
        let product = u128::from(significand) * u128::from(weight.unsigned_abs());
        let (first, bit) = (shift / 64, shift % 64);
        // 53 + 64 bits, moved by less than 64, in three limbs.
        let low = product << bit;
        let high = if bit == 0 { 0 } else { (product >> (128 - bit)) as u64 };
        let addend = [low as u64, (low >> 64) as u64, high];
        if x.is_sign_negative() == (weight < 0) {
            add_at(&mut self.limbs, first, addend);
        } else {
            subtract_at(&mut self.limbs, first, addend);
        }
    }

    /// Adds another sum.
    ///
    /// Panics as [`FloatSum::add`].
    pub fn merge(&mut self, other: &Self) {
        let mut carry = false;
        for (limb, addend) in self.limbs.iter_mut().zip(other.limbs) {
            (*limb, carry) = limb.carrying_add(addend, carry);
        }
        for (count, more) in [
            (&mut self.nans, other.nans),
            (&mut self.positive_infinities, other.positive_infinities),
            (&mut self.negative_infinities, other.negative_infinities),
        ] {
            *count = count.checked_add(more).expect("fewer than 2^63 rows");
        }
    }

    /// The sum, rounded to the nearest float, ties to even; infinite beyond the largest.
    ///
    /// NaN if there is a NaN or there are infinities of both signs; values that were subtracted again
    /// have no effect. An empty sum is 0.0, as is a sum of -0.0.
    pub fn value(&self) -> f64 {
        self.special().unwrap_or_else(|| {
            let (negative, magnitude) = self.sign_and_magnitude();
            signed(negative, round(&magnitude, Ordering::Less, false))
        })
    }

    /// The sum divided by `count`, rounded once, as [`FloatSum::value`] rounds.
    ///
    /// NaN if `count` is zero.
    pub fn mean(&self, count: i64) -> f64 {
        if count == 0 {
            return f64::NAN;
        }
        if let Some(special) = self.special() {
            return if count < 0 { -special } else { special };
        }
        let (negative, mut magnitude) = self.sign_and_magnitude();
        let divisor = u128::from(count.unsigned_abs());
        let mut remainder = 0_u128;
        for limb in magnitude.iter_mut().rev() {
            let dividend = remainder << 64 | u128::from(*limb);
            *limb = (dividend / divisor) as u64;
            remainder = dividend % divisor;
        }
        // The quotient counts units of the smallest float: no bit below it survives rounding, so
        // what the remainder is against half a unit decides all ties.
        let rest = (2 * remainder).cmp(&divisor);
        signed(negative != (count < 0), round(&magnitude, rest, remainder != 0))
    }

    /// Appends the sum to `out`; equal sums have equal bytes, whatever their history.
    ///
    /// A byte of flags; if the sum has NaN or infinities, their counts, three `i64`; then the
    /// magnitude as an integer in units of 2^-1074, without zero bytes at its ends: `u16` the number
    /// of the lowest byte, `u16` how many bytes, the bytes. All little-endian.
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        let counts = [self.nans, self.positive_infinities, self.negative_infinities];
        let special = counts != [0; 3];
        let (negative, magnitude) = self.sign_and_magnitude();
        out.push(if negative { NEGATIVE } else { 0 } | if special { SPECIAL } else { 0 });
        if special {
            counts.iter().for_each(|count| out.extend_from_slice(&count.to_le_bytes()));
        }
        let Some(lowest) = magnitude.iter().position(|&limb| limb != 0) else {
            out.extend_from_slice(&[0; 4]);
            return;
        };
        let highest = highest_limb(&magnitude);
        let start = lowest * 8 + magnitude[lowest].trailing_zeros() as usize / 8;
        let end = (highest + 1) * 8 - magnitude[highest].leading_zeros() as usize / 8;
        out.extend_from_slice(&(start as u16).to_le_bytes());
        out.extend_from_slice(&((end - start) as u16).to_le_bytes());
        for byte in start..end {
            out.push((magnitude[byte / 8] >> (byte % 8 * 8)) as u8);
        }
    }

    /// Becomes the sum at the front of `bytes` and moves `bytes` past it.
    ///
    /// `None` if the bytes are not a sum; `self` and `bytes` are then unspecified.
    pub fn decode_from(&mut self, bytes: &mut &[u8]) -> Option<()> {
        self.clear();
        let flags = bytes.split_off_first()?;
        if flags & SPECIAL != 0 {
            for count in
                [&mut self.nans, &mut self.positive_infinities, &mut self.negative_infinities]
            {
                *count = i64::from_le_bytes(*take(bytes)?);
            }
        }
        let start = usize::from(u16::from_le_bytes(*take(bytes)?));
        let length = usize::from(u16::from_le_bytes(*take(bytes)?));
        for (at, byte) in (start..).zip(bytes.split_off(..length)?) {
            *self.limbs.get_mut(at / 8)? |= u64::from(*byte) << (at % 8 * 8);
        }
        if flags & NEGATIVE != 0 {
            negate(&mut self.limbs);
        }
        Some(())
    }

    /// The sum, if NaN or infinities determine it.
    fn special(&self) -> Option<f64> {
        match (self.nans != 0, self.positive_infinities != 0, self.negative_infinities != 0) {
            (false, false, false) => None,
            (false, true, false) => Some(f64::INFINITY),
            (false, false, true) => Some(f64::NEG_INFINITY),
            _ => Some(f64::NAN),
        }
    }

    fn sign_and_magnitude(&self) -> (bool, Limbs) {
        let mut magnitude = self.limbs;
        let negative = magnitude[LIMBS - 1] >> 63 == 1;
        if negative {
            negate(&mut magnitude);
        }
        (negative, magnitude)
    }
}

/// The first `N` bytes of `bytes`, which moves past them.
fn take<'a, const N: usize>(bytes: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(first)
}

fn signed(negative: bool, magnitude: f64) -> f64 {
    // A sum of zero is 0.0, never -0.0.
    if negative && magnitude != 0.0 { -magnitude } else { magnitude }
}

fn add_at(limbs: &mut Limbs, first: usize, addend: [u64; 3]) {
    let mut carry = false;
    for (limb, addend) in limbs[first..].iter_mut().zip(addend) {
        (*limb, carry) = limb.carrying_add(addend, carry);
    }
    for limb in limbs.iter_mut().skip(first + addend.len()) {
        if !carry {
            break;
        }
        (*limb, carry) = limb.overflowing_add(1);
    }
}

fn subtract_at(limbs: &mut Limbs, first: usize, subtrahend: [u64; 3]) {
    let mut borrow = false;
    for (limb, subtrahend) in limbs[first..].iter_mut().zip(subtrahend) {
        (*limb, borrow) = limb.borrowing_sub(subtrahend, borrow);
    }
    for limb in limbs.iter_mut().skip(first + subtrahend.len()) {
        if !borrow {
            break;
        }
        (*limb, borrow) = limb.overflowing_sub(1);
    }
}

fn negate(limbs: &mut Limbs) {
    let mut carry = true;
    for limb in limbs {
        (*limb, carry) = (!*limb).overflowing_add(carry.into());
    }
}

fn highest_limb(magnitude: &Limbs) -> usize {
    magnitude.iter().rposition(|&limb| limb != 0).unwrap_or(0)
}

/// The float nearest to `magnitude` units of 2^-1074 and a rest below one unit, ties to even.
///
/// `rest` compares the rest with half a unit; `inexact` says whether there is one at all.
fn round(magnitude: &Limbs, rest: Ordering, inexact: bool) -> f64 {
    let highest = highest_limb(magnitude);
    let length = highest as u32 * 64 + (64 - magnitude[highest].leading_zeros());
    // The significand takes the top 53 bits. Below that many, the unit itself is its last bit, and
    // the bits of the float are the number: subnormals and the first normal numbers are laid out so.
    let shift = length.saturating_sub(f64::MANTISSA_DIGITS);
    let significand = bits_at(magnitude, shift) & ((1 << f64::MANTISSA_DIGITS) - 1);
    let above_half = if shift == 0 {
        rest
    } else {
        let half = shift - 1;
        let is_set = bits_at(magnitude, half) & 1 == 1;
        match (is_set, inexact || any_below(magnitude, half)) {
            (false, _) => Ordering::Less,
            (true, false) => Ordering::Equal,
            (true, true) => Ordering::Greater,
        }
    };
    let up = match above_half {
        Ordering::Less => 0,
        Ordering::Equal => significand & 1,
        Ordering::Greater => 1,
    };
    if shift > EXPONENT_SPECIAL as u32 {
        return f64::INFINITY;
    }
    // The hidden bit of the significand adds one to the exponent, and so does a carry out of it.
    let bits = (u64::from(shift) << FRACTION_BITS) + significand + up;
    f64::from_bits(bits.min(f64::INFINITY.to_bits()))
}

/// The 64 bits from bit `at` on.
fn bits_at(magnitude: &Limbs, at: u32) -> u64 {
    let (limb, bit) = (at as usize / 64, at % 64);
    let low = magnitude[limb] >> bit;
    match (bit, magnitude.get(limb + 1)) {
        (0, _) | (_, None) => low,
        (_, Some(high)) => low | high << (64 - bit),
    }
}

/// Whether any bit below bit `at` is set.
fn any_below(magnitude: &Limbs, at: u32) -> bool {
    let (limb, bit) = (at as usize / 64, at % 64);
    magnitude[..limb].iter().any(|&limb| limb != 0) || magnitude[limb] & ((1 << bit) - 1) != 0
}

#[cfg(test)]
mod tests;
