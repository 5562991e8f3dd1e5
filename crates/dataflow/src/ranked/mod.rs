//! The first rows of each group in some order: MIN, MAX, top-k.
//!
//! A row is kept as an *entry* under its group (`entry`): bytes that sort as the order asks, then the
//! columns to put out. The values under a key of an arrangement are sorted, so the first rows of a group
//! are its first entries, and no more of the group is read than comes out.
//!
//! [`top`] puts out the first rows of each group, a `selection`; of groups that are `growing` it keeps no
//! others, and where one row comes out, a `shortlist` lets go of most of them before they are entries.
//! [`extremes`] puts out one row: several orders can be asked for at once, each in a *lane* of its own, and the
//! answer of a group is then the first row of every lane, side by side, which is how several MIN and MAX make
//! one row.

pub(crate) mod entry;
mod extremes;
mod growing;
mod selection;
mod shortlist;
mod top;

pub use extremes::{Lane, extremes};
pub use top::{Numbering, Top, top};
