//! An exact sum of decimals.

use arrow::datatypes::i256;

/// The bits of a normalized `low`.
const LOW_BITS: u8 = 128;

/// The exact sum of up to 2^63 decimals of at most 256 bits, in units of their scale.
///
/// It is `high` · 2^128 + `low`; equal sums are equal once encoded.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DecimalSum {
    high: i256,
    low: i256,
}

impl DecimalSum {
    /// Adds `value` times `weight`.
    #[inline]
    pub(super) fn add_128(&mut self, value: i128, weight: i64) {
        // 127 bits and 63 bits, 2^63 times: within 255 bits.
        let product = i256::from_i128(value).wrapping_mul(i256::from_i128(weight.into()));
        self.low = self.low.wrapping_add(product);
    }

    /// Adds `value` times `weight`.
    pub(super) fn add_256(&mut self, value: i256, weight: i64) {
        let weight = i256::from_i128(weight.into());
        let (low, high) = value.to_parts();
        self.low = self.low.wrapping_add(i256::from_parts(low, 0).wrapping_mul(weight));
        self.high = self.high.wrapping_add(i256::from_i128(high).wrapping_mul(weight));
    }

    /// The sum, unless it exceeds 256 bits.
    pub(super) fn total(&self) -> Option<i256> {
        let (high, low) = self.normal();
        Some(i256::from_parts(low, high.to_i128()?))
    }

    /// The sum in two's complement, least byte first.
    pub(super) fn to_le_bytes(self) -> [u8; 48] {
        let (high, low) = self.normal();
        let mut bytes = [0; 48];
        bytes[..16].copy_from_slice(&low.to_le_bytes());
        bytes[16..].copy_from_slice(&high.to_le_bytes());
        bytes
    }

    /// The sum that is these bytes in two's complement.
    pub(super) fn from_le_bytes(bytes: [u8; 48]) -> Self {
        let (mut low, mut high) = ([0; 16], [0; 32]);
        low.copy_from_slice(&bytes[..16]);
        high.copy_from_slice(&bytes[16..]);
        Self { high: i256::from_le_bytes(high), low: i256::from_parts(u128::from_le_bytes(low), 0) }
    }

    /// The same sum with a `low` of 128 bits.
    fn normal(&self) -> (i256, u128) {
        let (low, _) = self.low.to_parts();
        (self.high.wrapping_add(self.low >> LOW_BITS), low)
    }
}

impl PartialEq for DecimalSum {
    fn eq(&self, other: &Self) -> bool {
        self.normal() == other.normal()
    }
}
