//! The events, and all queries over them.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod batch;
mod events;
mod queries;
