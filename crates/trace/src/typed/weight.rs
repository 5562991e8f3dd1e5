//! Differences that a batch can hold.

use differential_dataflow::difference::Abelian;

/// A difference that is stored as an `i64`: `isize`, which most programs of differential-dataflow use, or `i64`.
///
/// Stored weights are added up as `i64`; a sum outside of its range never wraps, it [fails](crate::Failure) or panics.
pub trait Weight: Abelian + Copy + Ord + 'static {
    /// The weight as it is stored.
    fn store(self) -> i64;

    /// The weight that was stored.
    fn load(stored: i64) -> Self;
}

impl Weight for i64 {
    #[inline]
    fn store(self) -> i64 {
        self
    }

    #[inline]
    fn load(stored: i64) -> Self {
        stored
    }
}

impl Weight for isize {
    #[inline]
    fn store(self) -> i64 {
        self as i64
    }

    /// # Panics
    ///
    /// If the weights of a row have added up to more than an `isize` holds, on a machine where that has 32 bits.
    #[inline]
    fn load(stored: i64) -> Self {
        stored.try_into().expect("the weight of a row left the range of an isize")
    }
}
