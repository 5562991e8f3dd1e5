//! A batch as a file: its pages one after the other, followed by an index.
//!
//! ```text
//! header │ page │ page │ … │ metadata │ trailer
//! ```
//!
//! A file is written once, from front to back, and ends in its trailer: a torn file has none. Pages have the same bytes
//! as in memory and are read in place. `docs/reference/file-format.md` draws all of it.
//!
//! Nothing in a file is trusted. Header, metadata and trailer are checked when it is opened, and a page against its
//! checksum when it is accessed for the first time, or again after an eviction.
//!
//! [`format`](mod@format) has the parts around the pages, `writer` writes them, and `open` reads and checks them. There
//! are two ways to the pages: `pages` looks them up through a mapping, and `scan` reads them once, past it.

pub mod error;
pub mod format;
mod open;
pub(crate) mod pages;
pub(crate) mod scan;
pub(crate) mod writer;

pub use error::FileError;
pub(crate) use pages::FilePages;
pub(crate) use scan::FileScan;
pub(crate) use writer::{FileWriter, Image, create};
