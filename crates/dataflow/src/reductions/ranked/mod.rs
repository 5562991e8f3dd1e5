//! The first rows of each group in some order: top-k, MIN and MAX.
//!
//! A row is kept as an *entry* under its group (`entry`): bytes that sort in the order, then the output columns. The values
//! under a key of an arrangement are sorted, so the first rows of a group are its first entries, and only these are read.
//!
//! [`top()`] returns the first rows of each group, a `selection`. Of append-only rows it keeps the selection alone
//! (`append_only`), and if that is one row per group, `pre_aggregation` drops most rows before they are encoded.
//!
//! [`extremes()`] returns one row per group: the first or last rows of several orders, each a *lane*, side by side. This makes
//! one row of several MIN and MAX.

mod append_only;
pub(crate) mod entry;
pub mod extremes;
mod pre_aggregation;
mod selection;
pub mod top;

pub use extremes::{End, Lane, extremes};
pub use top::{Numbering, Top, top};
