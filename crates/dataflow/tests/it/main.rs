//! Tests of the dataflow crate.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod asof;
mod chains;
mod digest;
mod ends;
mod enter;
mod fallback;
mod filters;
mod harness;
mod import;
mod joins;
mod range_join;
mod ranges;
mod sliding;
mod top;
mod window;
