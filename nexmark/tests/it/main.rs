//! Tests of the events and of all queries.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod arrivals;
mod batch;
mod events;
mod queries;
mod resumed;
mod tables;
