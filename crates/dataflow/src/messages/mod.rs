//! Messages about failures, in the terms of SQL.

pub(crate) mod notice;
pub(crate) mod panic_text;
pub mod shorten;
pub mod wording;
