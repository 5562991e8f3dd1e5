//! The hand-over of jobs, in many orders: owners, the threads of a pool, and whoever cancels.
//!
//! Shuttle runs each test in orders that a seed decides, one thread at a time, and says how to repeat one that fails. It
//! also notices when all threads wait. It does not reorder memory accesses.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod model;
mod owners;
mod pool;
