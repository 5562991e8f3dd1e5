//! Sums of weights.

use alluvium_trace::{Cursors, Failure, PageTime};

/// The sum of two weights.
///
/// Unwinds with a [`Failure`] if it exceeds 64 bits: weights never wrap.
#[inline]
pub(crate) fn add(one: i64, other: i64) -> i64 {
    one.checked_add(other).unwrap_or_else(|| exceeded("a row"))
}

/// The product of two weights: that of a pair of rows.
///
/// Unwinds as [`add`] does.
#[inline]
pub(crate) fn multiply(one: i64, other: i64) -> i64 {
    one.checked_mul(other).unwrap_or_else(|| exceeded("a pair of rows"))
}

#[cold]
fn exceeded(what: &str) -> i64 {
    Failure::raise(format_args!("there are more than 2^63 copies of {what}"))
}

/// The sum of the weights of the current value of `cursors`, over all times.
pub(crate) fn weight_of<T: PageTime>(cursors: &Cursors<T>) -> i64 {
    let mut total = 0i64;
    cursors.updates(|_, weight| total = add(total, weight));
    total
}

/// Sorts updates by time, adds up those of equal times, and drops sums of zero.
pub(crate) fn consolidate<T: Ord>(updates: &mut Vec<(T, i64)>) {
    if updates.len() > 1 {
        updates.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        updates.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 = add(kept.1, next.1);
            }
            same
        });
    }
    updates.retain(|update| update.1 != 0);
}
