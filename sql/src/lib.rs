//! Alluvium's SQL: from text to statements, to an incremental plan, to a dataflow.
//!
//! Read the chapters in this order:
//!
//! - [`statement`]: parsing text into statements;
//! - [`catalog`]: looking up relations;
//! - [`planner`]: resolving names and types and optimizing, with DataFusion's planner and optimizer;
//! - [`plan`]: the incremental plan of a view, and what of it can be shared;
//! - [`lower`]: the dataflow that keeps it;
//! - [`error`]: errors with positions.

pub mod catalog;
pub mod error;
pub mod fault;
pub mod lower;
pub mod plan;
pub mod planner;
pub mod statement;
mod walk;

pub use error::{Error, Position};
