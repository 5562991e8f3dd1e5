//! Alluvium's SQL: text to statements, to an incremental plan, to a dataflow.
//!
//! Read the chapters in this order:
//!
//! - [`statement`]: what a text says, statement by statement;
//! - [`catalog`]: the relations that names stand for;
//! - [`planner`]: names, types and rules, with DataFusion's planner and optimizer;
//! - [`plan`]: the incremental plan of a view, and what of it can be shared;
//! - [`physical`]: the operators that maintain it, and their dataflow;
//! - [`error`]: what is wrong, and where.

pub mod catalog;
pub mod error;
pub mod physical;
pub mod plan;
pub mod planner;
pub mod statement;
mod walk;

pub use error::{Error, Position};
