//! Alluvium's SQL: text to statements, to an incremental plan, to a dataflow.
pub mod catalog;
pub mod error;
pub mod lower;
pub mod plan;
pub mod planner;
pub mod statement;
mod walk;

pub use error::{Error, Position};
