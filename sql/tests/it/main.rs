//! Tests of Alluvium's SQL, against a catalog of definitions without rows.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod bounds;
mod deep;
mod fingerprints;
mod fixture;
mod lateness;
mod plans;
mod refusals;
mod statements;
mod syntax;
mod types;
mod writes;
