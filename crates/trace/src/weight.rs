//! Sums of weights.

use crate::failure::Failure;

/// The message for a sum that does not fit.
const OVERFLOW: &str = "the weight of a row left the range of a 64-bit integer";

/// The sum of two weights of one row.
///
/// # Panics
///
/// If the sum does not fit an `i64`: a wrapped weight would be a wrong answer.
#[inline]
pub(crate) fn add(a: i64, b: i64) -> i64 {
    a.checked_add(b).expect(OVERFLOW)
}

/// Adds up the weights of the updates of a row at each time; equal times are neighbours.
///
/// # Unwinds
///
/// With a [`Failure`] if a sum does not fit an `i64`: a merge may run on a thread whose panics should not be seen.
#[inline]
pub(crate) fn check<T: PartialEq>(updates: &[(T, i64)]) {
    if let [_] = updates {
        return;
    }
    for times in updates.chunk_by(|a, b| a.0 == b.0) {
        let sum = times.iter().try_fold(0_i64, |sum, update| sum.checked_add(update.1));
        if sum.is_none() {
            Failure::raise(OVERFLOW);
        }
    }
}
