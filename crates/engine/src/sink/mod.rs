//! Sinks: formats that rows are written in, and the [`Sink`] trait.
//!
//! A sink is a format that rows are written in. It is registered once, when an engine is built
//! ([`crate::Builder::sink`]), and serves every statement that names a path it handles: `COPY … TO` writes the result of a
//! query, and the [`outputs`] of a view, which its connectors define, write its final contents or each of its changes. Changes may go to
//! another system as well, by a [`Delivery`].

pub(crate) mod changes;
mod delivery;
mod outputs;
mod running;
mod writer;

use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
pub use delivery::{Delivery, DeliveryRequest, DeliveryWriter};
pub(crate) use delivery::{IsOver, Trouble};
pub use outputs::OutputMode;
pub(crate) use outputs::{
    Destination, FileOutput, OpenedChanges, OpenedOutput, OpenedWriter, Output, Outputs,
    ShownOutput,
};
pub(crate) use running::{Marks, OpenWriter, Running, Writing};
pub(crate) use writer::ChangesWriter;

use crate::error::{Error, Result};

/// A format of files, or of anything else a path can name, that rows can be written in.
pub trait Sink: Send + Sync {
    /// The name of the format, such as `csv`; in lower case.
    fn name(&self) -> &str;

    /// Whether it writes files of this name; decides by the path alone. If several sinks do, the engine takes the one
    /// registered first.
    fn handles(&self, path: &Path) -> bool;

    /// Fails if there is no such option, or it has no such value. Names are in upper case.
    fn check(&self, option: &str, value: &str) -> Result<()> {
        let _ = value;
        Err(Error::source(format!("there is no option {option} of the format {}", self.name())))
    }

    /// Whether a writer can resume after a restart ([`SinkRequest::start`]). If it cannot, an engine with a state directory
    /// refuses to write changes with it.
    fn resumes(&self, request: &SinkRequest) -> bool {
        let _ = request;
        false
    }

    /// Begins to write. Fails, naming the path, if it cannot be written to.
    fn create(&self, request: &SinkRequest) -> Result<Box<dyn SinkWriter>>;
}

/// A request to a sink to write a path.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SinkRequest {
    /// The path, counted from the session's base directory if it was relative.
    pub path: PathBuf,
    /// The options in the order they were written: names in upper case, values as written, without quotes.
    pub options: Vec<(String, String)>,
    /// The columns of the rows.
    pub schema: SchemaRef,
    /// When the rows become visible to others.
    pub visibility: Visibility,
    /// How much of the path stays: a length that [`SinkWriter::sync`] returned. Everything after it is removed, and writing
    /// resumes there. `None` starts from scratch.
    pub start: Option<u64>,
}

impl SinkRequest {
    /// A new file with rows of these columns.
    pub fn new(path: impl Into<PathBuf>, schema: SchemaRef, visibility: Visibility) -> Self {
        Self { path: path.into(), options: Vec::new(), schema, visibility, start: None }
    }
}

/// When the rows that a sink writes become visible to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Visibility {
    /// At the end: the path keeps its former content until the writer finishes, also if it never does.
    WhenFinished,
    /// At each flush if the format allows it, or else at the end. The former content of the path is removed at once.
    WhenFlushed,
}

/// Writes rows, once, from the beginning to the end. Errors name the path.
///
/// A writer that panics poisons the engine. One that is dropped has not finished.
pub trait SinkWriter: Send {
    /// Writes rows; they may be buffered.
    fn write(&mut self, rows: &RecordBatch) -> Result<()>;

    /// Passes buffered rows on, as far as the format allows.
    fn flush(&mut self) -> Result<()>;

    /// Makes written rows durable, and returns its length. Called only for writers that can resume after a restart.
    fn sync(&mut self) -> Result<u64> {
        Err(Error::source("the format cannot go on after a restart"))
    }

    /// Completes the output.
    fn finish(self: Box<Self>) -> Result<()>;
}
