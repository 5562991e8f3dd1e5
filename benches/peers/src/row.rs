//! The rows of all stores: keys of eight bytes in no order, and values of random bytes.

/// The bytes of a value. With its key a row has a kilobyte.
pub const VALUE: usize = 1016;

/// How many rows are loaded with one transaction.
pub const LOADED: usize = 10_000;

/// The key of the row with this number. Rows that are made one after the other are far apart.
pub fn key(number: u64) -> u64 {
    // An odd factor modulo a power of two: no two numbers have the same key, and none is negative in SQL.
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15) & (u64::MAX >> 1)
}

/// Values that no store can compress.
pub struct Values {
    bytes: Vec<u8>,
}

impl Values {
    const BYTES: usize = 1 << 20;

    /// A megabyte of them.
    pub fn new() -> Self {
        let mut bytes = vec![0; Self::BYTES + VALUE];
        fastrand::Rng::with_seed(1).fill(&mut bytes);
        Self { bytes }
    }

    /// The value with this number; numbers far apart share some.
    pub fn get(&self, number: u64) -> &[u8] {
        let start = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44) as usize;
        &self.bytes[start..start + VALUE]
    }
}

impl Default for Values {
    fn default() -> Self {
        Self::new()
    }
}
