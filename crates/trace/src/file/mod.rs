//! A batch as a file: its pages one after the other, and behind them what it takes to find one.
//!
//! ```text
//! header │ page │ page │ … │ metadata │ trailer
//! ```
//!
//! A file is written once, from front to back, and ends in its trailer, so that one that was torn has none.
//! Pages are the same bytes as in memory and are read in place. `docs/reference/file-format.md` draws all of it.
//!
//! Nothing in a file is trusted: header, metadata and trailer are checked when it is opened, a page against its
//! checksum when it is touched for the first time, and again when it was given back since.

pub mod error;
pub mod format;
pub(crate) mod reader;
pub(crate) mod scan;
pub(crate) mod writer;

pub use error::FileError;
pub(crate) use reader::FilePages;
pub(crate) use scan::FileScan;
pub(crate) use writer::FileWriter;
