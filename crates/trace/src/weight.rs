//! Sums of weights.

/// The sum of two weights of one row.
///
/// # Panics
///
/// If the sum does not fit an `i64`: a wrapped weight would be a wrong answer.
#[inline]
pub(crate) fn add(a: i64, b: i64) -> i64 {
    a.checked_add(b)
        .expect("the weight of a row left the range of a 64-bit integer")
}

/// Sorts updates of one row by time, adds up the weights of equal times and drops those that come to zero.
#[inline]
pub(crate) fn consolidate<T: Ord + Copy>(updates: &mut Vec<(T, i64)>) {
    if updates.len() > 1 {
        updates.sort_unstable_by_key(|update| update.0);
        updates.dedup_by(|later, earlier| {
            let same = later.0 == earlier.0;
            if same {
                earlier.1 = add(earlier.1, later.1);
            }
            same
        });
    }
    updates.retain(|update| update.1 != 0);
}
