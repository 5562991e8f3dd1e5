//! Dates and timestamps: Arrow counts from 1970, Postgres from 2000. The last number of each is infinity.

use super::malformed::malformed;
use crate::error::Result;

/// The days from 1970-01-01 to 2000-01-01.
const DAYS: i32 = 10_957;
/// The microseconds from 1970-01-01 to 2000-01-01.
const MICROSECONDS: i64 = DAYS as i64 * 86_400_000_000;

/// A date as Arrow counts it.
pub(super) fn date_from_2000(days: i32) -> Result<i32> {
    match days {
        i32::MAX | i32::MIN => Ok(days),
        days => days.checked_add(DAYS).ok_or_else(malformed),
    }
}

/// A date as Postgres counts it; `None` if it has none such.
pub(super) fn date_from_1970(days: i32) -> Option<i32> {
    match days {
        i32::MAX | i32::MIN => Some(days),
        days => days.checked_sub(DAYS),
    }
}

/// A timestamp as Arrow counts it.
pub(super) fn timestamp_from_2000(time: i64) -> Result<i64> {
    match time {
        i64::MAX | i64::MIN => Ok(time),
        time => time.checked_add(MICROSECONDS).ok_or_else(malformed),
    }
}

/// A timestamp as Postgres counts it; `None` if it has none such.
pub(super) fn timestamp_from_1970(time: i64) -> Option<i64> {
    match time {
        i64::MAX | i64::MIN => Some(time),
        time => time.checked_sub(MICROSECONDS),
    }
}
