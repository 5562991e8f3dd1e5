//! Dates, times of day, timestamps and intervals.
//!
//! [`moment`] writes dates and times, and counts them as Postgres does, [`moment_text`] reads their texts, both by the [`calendar`] and the
//! [`zone`] of a session. [`interval`] writes intervals, and [`interval_text`] reads theirs.

mod calendar;
pub(super) mod interval;
pub(super) mod interval_text;
pub(super) mod moment;
pub(super) mod moment_text;
pub(super) mod zone;
