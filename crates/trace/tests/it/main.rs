//! Tests of state against one reference: a sorted map from key, value and time to weight.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod batch;
mod buffer;
mod codec;
mod cursor;
mod cursors;
mod debt;
mod erratic;
mod failures;
mod file;
mod fuzz;
mod golden;
mod jobs;
mod mapped;
mod merge;
mod metrics;
mod null_trace;
mod outcome;
mod page;
mod pins;
mod pruning;
mod reference;
mod spine;
mod typed_cursor;
