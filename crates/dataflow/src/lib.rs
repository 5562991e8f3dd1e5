//! Alluvium's change: deltas, exchange, arrangements and the operators over them.
pub mod aggregate;
pub mod codec;
pub mod consolidate;
pub mod contents;
pub mod delta;
pub mod exchange;
pub mod input;
pub mod map;
