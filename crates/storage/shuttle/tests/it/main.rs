//! Threads in many orders: the hand-over of jobs between owners, the threads of a pool, and those that cancel; the
//! committers of a journal; and blobs that are claimed, released and deleted.
//!
//! Shuttle runs each test in orders that a seed decides, one thread at a time, and says how to repeat one that fails. It
//! also notices when all threads wait. It does not reorder memory accesses.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod claims;
mod committer;
mod model;
mod owners;
mod pool;
