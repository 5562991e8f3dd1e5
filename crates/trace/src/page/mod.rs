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
//! A column that would be constant is left out: if all keys have the same length, each key one value, each value one
//! update, all updates one time, or all weights +1. Numbers are little-endian and aligned, and columns are found by
//! offsets from the start of the page, so the bytes mean the same wherever they lie. `docs/reference/page-format.md`
//! draws them.
//!
//! A page says nothing about its neighbours. A key whose values do not fit on one page continues on the next, which
//! repeats the key, and so does a value whose updates do not fit. Readers of several pages join them again.
//!
//! Read [`layout`] first, then `check`, [`view`], `strings` and [`builder`].

pub mod builder;
mod check;
pub mod layout;
mod strings;
pub mod view;

pub use builder::PageBuilder;
pub use layout::{Layout, PageLimits};
pub use view::Page;
