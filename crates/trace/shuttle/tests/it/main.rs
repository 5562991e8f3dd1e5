//! Spines whose jobs are done by a pool, in many orders.
//!
//! The spine, the pool and the jobs are those of production, with shuttle's locks, atomics and threads between them. See
//! `crates/storage/shuttle` for what shuttle can see.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod failures;
mod model;
mod spines;
mod wakes;
