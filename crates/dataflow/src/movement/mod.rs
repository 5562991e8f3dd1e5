//! Changes on their way: into a dataflow, between workers, and out of it.

pub(crate) mod batcher;
pub mod changes;
pub mod combine;
pub mod consolidate;
pub mod constant;
pub mod delta;
pub mod exchange;
pub(crate) mod fuel;
pub mod import;
pub mod input;
pub(crate) mod operator;
pub mod publication;
pub mod sink;
