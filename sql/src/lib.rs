//! Alluvium's SQL: text to statements, to an incremental plan, to a dataflow.
pub mod lower;
pub mod plan;
