//! What views do and keep, for people.
//!
//! - [`state`]: EXPLAIN STATE, and the reasons for state in `alluvium.arrangements`.
//! - [`analyze`]: EXPLAIN ANALYZE.

mod analyze;
pub(super) mod state;
