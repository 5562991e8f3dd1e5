//! Tests of the dataflow crate.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod digest;
mod enter;
mod fallback;
mod import;
mod matches;
mod model;
mod random;
mod schedule;
mod single;
mod top;
mod window;
