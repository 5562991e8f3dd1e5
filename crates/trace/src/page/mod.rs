//! A page: a sorted run of updates as one self-contained block of bytes.
//!
//! A page is a trie of three levels in small columns. Keys are sorted and distinct; each has a run of
//! sorted, distinct values; each value has a run of updates with sorted, distinct times and weights that are
//! not zero.
//!
//! ```text
//! header │ value bytes │ times │ weights │ starts and offsets │ time indexes │ key bytes
//!
//!   keys      k0            k1
//!   values    v0   v1       v2
//!   updates   u0   u1 u2    u3
//! ```
//!
//! What can be said once is said once: one length of all keys, one value per key, one update per value, one
//! time of all updates, a weight of +1 everywhere. All numbers are little-endian and aligned, and columns are
//! found by offsets from the start of the page, so that the bytes mean the same wherever they lie.
//! `docs/reference/page-format.md` draws them.
//!
//! A page says nothing about its neighbours. A key whose values do not fit one page goes on in the next,
//! which repeats the key, and a value whose updates do not fit goes on likewise; it is for the reader of
//! several pages to see them as one.
//!
//! Read [`layout`] first, then `check`, [`view`] and [`builder`].

pub mod builder;
mod check;
pub mod layout;
pub mod view;

pub use builder::PageBuilder;
pub use layout::{Layout, PageLimits};
pub use view::Page;
