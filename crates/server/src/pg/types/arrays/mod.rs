//! Arrays, which are lists here.
//!
//! [`list`] writes them. [`list_builder`] reads them, with [`array_text`] for those that are text.

pub(super) mod array_text;
pub(super) mod list;
pub(super) mod list_builder;
