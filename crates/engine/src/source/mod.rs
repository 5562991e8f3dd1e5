//! Where rows come from when they do not come as SQL or as batches: the [`Source`] trait.
//!
//! A source is registered once, when an engine is built ([`crate::Builder::source`]), and serves every
//! `COPY … FROM` whose path it handles. `COPY` runs on the thread of the client that asked for it and is
//! one transaction: rows are read portion by portion, staged, and become visible together.

mod registry;

use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use crate::error::Result;

pub(crate) use registry::Registry;

/// A kind of file, or of anything else a path can name, that rows can be read from.
pub trait Source: Send + Sync {
    /// What it is called in messages, such as `csv`.
    fn name(&self) -> &str;

    /// Whether it can read what `path` names; judges by the path alone. Of several sources that say
    /// yes, the one registered first is taken.
    fn handles(&self, path: &Path) -> bool;

    /// Begins to read. Fails, naming the path or the option, if the path cannot be opened or an option
    /// is not known; nothing has been read then.
    fn open(&self, request: &SourceRequest) -> Result<Box<dyn SourceReader>>;
}

/// What a `COPY` asks of a source.
#[derive(Clone, Debug)]
pub struct SourceRequest {
    /// The path, counted from the session's base directory if it was relative.
    pub path: PathBuf,
    /// The options in the order they were written: names in upper case, values as written, without quotes.
    pub options: Vec<(String, String)>,
    /// The columns of the rows wanted, in order. A field that is not nullable belongs to a NOT NULL
    /// column: a row without a value there is malformed.
    pub schema: SchemaRef,
    /// One row: what each of these columns gets where the source does not have it, NULL unless the table
    /// says otherwise.
    pub defaults: RecordBatch,
}

/// Reads rows, once, from the beginning to the end.
///
/// A reader that panics poisons the engine.
pub trait SourceReader: Send {
    /// The next rows; `None` after the last ones.
    ///
    /// A row that cannot be read is refused, counted in the portion, and does not stop the reader. An
    /// error ends the `COPY` and leaves nothing of it.
    fn next(&mut self) -> Result<Option<Portion>>;
}

/// Some of a source's rows.
#[derive(Clone, Debug)]
pub struct Portion {
    /// The rows, with the columns of [`SourceRequest::schema`].
    pub rows: RecordBatch,
    /// Rows that were refused, and why; may stop after the first few.
    pub refused: Vec<Refusal>,
    /// How many rows were refused in this portion, listed or not.
    pub refused_count: u64,
}

/// A row that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The file it is in.
    pub file: PathBuf,
    /// The line it begins on; the first is 1.
    pub line: u64,
    /// What is wrong with it.
    pub message: String,
}
