//! Rows as bytes, and properties of their columns.

pub mod codec;
pub(crate) mod columns;
pub(crate) mod key_columns;
pub mod layout;
pub(crate) mod weight;
pub(crate) mod widths;
