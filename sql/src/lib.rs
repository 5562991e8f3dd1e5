//! Alluvium's SQL: from text to statements, to an incremental plan, to a dataflow.
//!
//! Read the chapters in this order:
//!
//! - [`statement`]: from text to statements;
//! - `syntax`: every part of them is used or refused;
//! - [`name`] and [`catalog`]: the relations that SQL can name;
//! - [`planner`]: names, types and rules, with DataFusion's planner and optimizer;
//! - [`plan`]: the incremental plan of a view, and the indexes it shares;
//! - [`physical`]: the operators that maintain it, and their dataflow;
//! - [`texts`]: texts as DECIMAL, by [`decimal`], and as dates and times, by `time_text`;
//! - [`functions`]: the functions that SQL can call;
//! - `leaves`: nested values, changed in what they hold;
//! - [`error`]: errors with positions;
//! - [`stack`]: the stack that deep trees need.

pub mod catalog;
pub mod decimal;
pub mod error;
pub mod fault;
pub mod functions;
mod leaves;
pub mod name;
mod options;
pub mod physical;
pub mod plan;
pub mod planner;
pub mod stack;
pub mod statement;
mod syntax;
pub mod texts;
mod time_text;
mod walk;

pub use error::{Error, Position};
