//! Rows at rest, and who reads them.

pub mod arrangement;
pub mod contents;
pub mod errors;
pub mod key_ranges;
pub(crate) mod overlay;
pub(crate) mod placement;
pub mod reader;
pub mod snapshot;
pub mod states;
pub mod table;
