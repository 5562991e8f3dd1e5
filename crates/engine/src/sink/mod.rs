//! Where rows go when they do not go to a subscriber: the [`Sink`] trait.
//!
//! A sink is a format that rows are written in. It is registered once, when an engine is built
//! ([`crate::Builder::sink`]), and serves every statement that names a path it handles: `COPY … TO` writes an
//! answer, and the [`outputs`] of a view, which its connectors define, write what it holds in the end, or
//! each of its changes.

mod changes;
mod outputs;

use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

pub use outputs::OutputMode;
pub(crate) use outputs::{Output, Outputs};

use crate::error::{Error, Result};

/// A format of files, or of anything else a path can name, that rows can be written in.
pub trait Sink: Send + Sync {
    /// What it is called where a format is named, such as `csv`; in lower case.
    fn name(&self) -> &str;

    /// Whether it writes what `path` names; judges by the path alone. Of several sinks that say yes, the
    /// one registered first is taken.
    fn handles(&self, path: &Path) -> bool;

    /// Fails if there is no such option, or it has no such value. Names are in upper case.
    fn check(&self, option: &str, value: &str) -> Result<()> {
        let _ = value;
        Err(Error::source(format!("there is no option {option} of the format {}", self.name())))
    }

    /// Begins to write. Fails, naming the path, if it cannot be written to.
    fn create(&self, request: &SinkRequest) -> Result<Box<dyn SinkWriter>>;
}

/// What is asked of a sink.
#[derive(Clone, Debug)]
pub struct SinkRequest {
    /// The path, counted from the session's base directory if it was relative.
    pub path: PathBuf,
    /// The options in the order they were written: names in upper case, values as written, without quotes.
    pub options: Vec<(String, String)>,
    /// The columns of the rows.
    pub schema: SchemaRef,
    /// When others may see what was written.
    pub visibility: Visibility,
}

/// When others may see what a sink wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    /// At the end: the path keeps what it holds until the writer finishes, and if it never does.
    WhenFinished,
    /// At each flush, if the format allows it, or else at the end. What the path holds goes at once.
    WhenFlushed,
}

/// Writes rows, once, from the beginning to the end. Errors name the path.
///
/// A writer that panics poisons the engine. One that is dropped has not finished.
pub trait SinkWriter: Send {
    /// Takes rows, which need not be anywhere yet.
    fn write(&mut self, rows: &RecordBatch) -> Result<()>;

    /// Sends what was written on to where it goes, as far as the format allows.
    fn flush(&mut self) -> Result<()>;

    /// Completes what was written.
    fn finish(self: Box<Self>) -> Result<()>;
}
