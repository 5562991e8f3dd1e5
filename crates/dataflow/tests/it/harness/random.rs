//! A random number generator.

/// A small generator (xorshift) that yields the same numbers for the same seed on every machine.
pub struct Random(u64);

impl Random {
    /// Starts from `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }

    /// True once in `times`.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// A number below `bound`, counted from -1; NULL once in eight times.
    pub fn value(&mut self, bound: u64) -> Option<i64> {
        (!self.once_in(8)).then(|| self.below(bound) as i64 - 1)
    }
}
