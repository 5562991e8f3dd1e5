//! From text to statements.
//!
//! - [`statement`]: from text to statements;
//! - [`syntax`]: every part of them is used or refused;
//! - [`name`]: names of relations, with their schemas;
//! - [`error`]: errors with positions;
//! - [`mod@stack`]: the stack that deep trees need, [`mod@walk`] goes through them;
//! - [`options`]: how DataFusion plans.

pub mod error;
pub mod fault;
mod keyword;
pub mod name;
pub mod options;
pub mod stack;
pub mod statement;
pub mod syntax;
pub mod walk;
