//! Sums of weights.

/// The sum of two weights of one row.
///
/// # Panics
///
/// If the sum does not fit an `i64`: a wrapped weight would be a wrong answer.
#[inline]
pub(crate) fn add(a: i64, b: i64) -> i64 {
    a.checked_add(b).expect("the weight of a row left the range of a 64-bit integer")
}
