//! Sources: formats that rows are read from, and the [`Source`] trait.
//!
//! A source is a format that rows are read from. It is registered once, when an engine is built
//! ([`crate::Builder::source`]), and serves every statement that names a path it handles:
//!
//! - `COPY … FROM` and `CREATE TABLE … FROM` read on the thread of the client that asked for it, as one
//!   transaction;
//! - the *inputs* of a table, which its connectors define, from files or by a [`Transport`], are read by a thread of their own once
//!   they are started, as a transaction per portion. [`inputs`] knows them all and how far they have come;
//! - `SELECT … FROM 'path'` reads while the query runs.
//!
//! Rows that cannot be read are [`refusals`]: counted, and kept to be queried.

mod holders;
mod inputs;
mod live;
mod position;
mod progress;
mod refusals;
mod registry;
mod secret;
mod transport;
mod waiting;

use std::fmt;
use std::path::{Path, PathBuf};

use arrow::array::{BooleanArray, RecordBatch};
use arrow::datatypes::SchemaRef;
pub(crate) use holders::Holder;
pub(crate) use inputs::{FILE, Input, Inputs, Origin, named};
pub use live::Live;
pub(crate) use live::Liveness;
pub use position::{FilePosition, SourcePosition};
pub(crate) use progress::Unread;
pub use progress::{Progress, SourceProgress, SourceState};
pub(crate) use refusals::{KeptRefusals, LeftOut, Refusals, Refusing};
pub(crate) use registry::{DeliveryOutput, InputReader, OutputWriter, Registered, Registry};
pub use secret::Secret;
pub(crate) use secret::{Secrets, is_name, is_reference, reference};
pub(crate) use transport::OF_FORMAT;
pub use transport::{System, Transport, TransportConnector, TransportRequest};

use crate::error::{Error, Result};

/// A format of files, or of anything else a path can name, that rows can be read from.
pub trait Source: Send + Sync {
    /// The name of the format, such as `csv`; in lower case.
    fn name(&self) -> &str;

    /// Whether it reads files of this name; decides by the path alone. If several sources do, the engine takes the one
    /// registered first.
    fn handles(&self, path: &Path) -> bool;

    /// Fails if there is no such option, or it has no such value. Names are in upper case.
    ///
    /// A connector's options are checked when its table is created, long before it is opened.
    fn check(&self, option: &str, value: &str) -> Result<()> {
        let _ = value;
        Err(Error::source(format!("there is no option {option} of the format {}", self.name())))
    }

    /// The columns of `path`. May read some of it.
    fn infer(&self, path: &Path, options: &[(String, String)]) -> Result<Inferred> {
        let _ = options;
        let (path, name) = (path.display(), self.name());
        Err(Error::source(format!(
            "the format {name} does not say what columns \"{path}\" has; create a table with columns and COPY"
        )))
    }

    /// As [`Source::infer`], of several paths whose rows are read as those of one. What a path says of its rows is told from
    /// `base` on, the folder that relative paths count from.
    fn infer_all(
        &self,
        paths: &[PathBuf],
        base: &Path,
        options: &[(String, String)],
    ) -> Result<Inferred> {
        let _ = base;
        self.infer(paths.first().map_or(Path::new(""), PathBuf::as_path), options)
    }

    /// The files that paths name, in the order in which they are read, with the values of columns that all rows of a file
    /// share; `None` if it knows no such column. A query then opens only files whose rows may be wanted.
    fn files(&self, paths: &[PathBuf], request: &SourceRequest) -> Result<Option<SourceFiles>> {
        let _ = (paths, request);
        Ok(None)
    }

    /// Whether it can read on where a path grows ([`Live::follow`]).
    fn follows(&self) -> bool {
        false
    }

    /// Whether it finds columns by their names alone, so that a request may leave out some of those that were
    /// [inferred](Source::infer). A query then asks for those that it reads.
    fn finds_by_name(&self) -> bool {
        false
    }

    /// Begins to read. Fails, naming the path or the option, if the path cannot be opened or an option
    /// is not known; nothing has been read then.
    fn open(&self, request: &SourceRequest) -> Result<Box<dyn SourceReader>>;
}

/// The columns that a source finds in a path.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Inferred {
    /// The columns, of any types; a table casts them to types it can store.
    pub schema: SchemaRef,
    /// The options with which rows of these columns are read: those that were given, and more.
    pub options: Vec<(String, String)>,
    /// For each column why it is of its type, if there is something to tell; may be empty.
    pub remarks: Vec<Option<String>>,
    /// The columns that have one value in all rows of a file, which [`Source::files`] tells.
    pub shared: Vec<usize>,
}

/// Files, and what is known of their rows before they are opened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SourceFiles {
    /// The files.
    pub paths: Vec<PathBuf>,
    /// For each of them a row: the values that all of its rows share, in columns of [`SourceRequest::schema`].
    pub shared: RecordBatch,
}

impl SourceFiles {
    /// These files, whose rows share these values.
    pub fn new(paths: Vec<PathBuf>, shared: RecordBatch) -> Self {
        Self { paths, shared }
    }
}

impl Inferred {
    /// These columns, read with these options.
    pub fn new(schema: SchemaRef, options: Vec<(String, String)>) -> Self {
        Self { schema, options, remarks: Vec::new(), shared: Vec::new() }
    }
}

/// A request to a source to read a path.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SourceRequest {
    /// The path, counted from the session's base directory if it was relative.
    pub path: PathBuf,
    /// The directory after which a path is told to those who read; empty if all of it is.
    pub base: PathBuf,
    /// The options in the order they were written: names in upper case, values as written, without quotes.
    pub options: Vec<(String, String)>,
    /// The columns wanted. A field that is not nullable belongs to a NOT NULL column: a row without a value there is
    /// malformed, unless the column has a default.
    pub schema: SchemaRef,
    /// For each of these columns whether it has a DEFAULT other than NULL.
    pub has_default: Vec<bool>,
    /// How many rows a portion should have at most.
    pub batch_rows: usize,
    /// How many bytes the rows of a portion should have at most, give or take one row.
    pub batch_bytes: usize,
    /// How many threads may decode at once. Rows have the same order with any number; how many are in a portion may differ,
    /// so there is one where positions are recorded.
    pub threads: usize,
    /// How rows are read that have not been written yet; `None` if those that are there are asked for.
    pub live: Option<Live>,
    /// Where reading begins, if not at the start: a position that a reader of the same path had with the same options.
    pub start: Option<SourcePosition>,
}

impl SourceRequest {
    /// All rows of a path that are there, with these columns: no column has a default, and a portion has some 40,000 rows or
    /// a mebibyte, and one thread reads.
    pub fn new(path: impl Into<PathBuf>, schema: SchemaRef) -> Self {
        Self {
            path: path.into(),
            base: PathBuf::new(),
            options: Vec::new(),
            has_default: vec![false; schema.fields().len()],
            schema,
            batch_rows: 40_000,
            batch_bytes: 1 << 20,
            threads: 1,
            live: None,
            start: None,
        }
    }

    /// Where reading begins, if not at the start.
    ///
    /// # Errors
    /// If that is not a place in a file.
    pub fn file_start(&self) -> Result<Option<FilePosition>> {
        self.start.as_ref().map(FilePosition::of).transpose()
    }

    /// Whether a source may leave out this column of the schema: then rows take its DEFAULT, or NULL.
    pub fn may_leave_out(&self, column: usize) -> bool {
        self.schema.field(column).is_nullable() || self.has_default[column]
    }
}

/// Reads rows, once, from the beginning to the end.
///
/// A reader that panics poisons the engine.
pub trait SourceReader: Send {
    /// The next rows; `None` after the last ones.
    ///
    /// A row that cannot be read is refused, and does not stop the reader. An error ends the statement or the input: a
    /// `COPY` then has no effect, while an input keeps the rows it has read before.
    fn next(&mut self) -> Result<Option<Portion>>;

    /// Where the next portion begins; `None` if it cannot be read again, such as of a pipe.
    ///
    /// An engine with a state directory records positions instead of rows, and opens the path again with a position
    /// ([`SourceRequest::start`]). Without one it records the rows, and opens the path as before.
    ///
    /// Reading from a position gives the same rows each time, in as many portions as the request asks for: one with as many
    /// rows, read and refused, as [`SourceRequest::batch_rows`], as long as there are so many and `batch_bytes` allows it.
    fn position(&self) -> Option<SourcePosition> {
        None
    }

    /// Whether the same rows can be read again from a position, until the engine has a checkpoint behind them. If not, an engine with a
    /// state directory records rows as well as positions.
    fn replays(&self) -> bool {
        true
    }

    /// The rows from where it is to `end`, a position that a reader had after a portion which began there. The engine asks for
    /// them when it opens a state directory, and they have to be the same as then, in any order that has the same effect.
    ///
    /// A reader whose portions depend on nothing but its position and their size need not care about `end`.
    fn next_to(&mut self, end: &SourcePosition) -> Result<Option<Portion>> {
        let _ = end;
        self.next()
    }

    /// How many rows there are that it has not read yet, as far as it knows.
    fn unread(&self) -> Option<u64> {
        None
    }

    /// How many bytes there are that it has not read yet, as far as it knows, of a source that does not know how many rows that is.
    fn unread_bytes(&self) -> Option<u64> {
        None
    }
}

/// Some of a source's rows.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Portion {
    /// The rows, with the columns of [`SourceRequest::schema`] that the source has: of the same names and types, in any
    /// order. The engine fills in the others.
    pub rows: RecordBatch,
    /// The rows that were refused, and why.
    pub refused: Vec<Refusal>,
    /// How many bytes were read for this portion, as they are stored.
    pub bytes: u64,
    /// Values that the source does not have in some of the rows only. The engine fills them in as well.
    pub absent: Vec<Absent>,
    /// For each row whether it is deleted, instead of inserted; `None` if all are inserted. Rows take effect in their order.
    ///
    /// A row that is inserted takes the place of the one with its primary key. A row that is deleted from a table with a primary key is the
    /// one with its key, whatever its other columns are.
    pub deleted: Option<BooleanArray>,
    /// Values that the source does not have because they did not change: the row keeps those of the one with its primary key, which
    /// comes from portions before. It is refused if that is not there.
    pub kept: Vec<Absent>,
    /// Whether all rows of the table are deleted before these are inserted.
    pub truncates: bool,
    /// Whether the transaction that the portions before it [belong to](Self::continues) begins anew with this one: what they have is forgotten.
    pub restarts: bool,
    /// Whether the next portion belongs to the same transaction. The rows of all of them become visible together, with the position
    /// after the last one; until then none of them counts, and an engine that ends in between forgets them.
    pub continues: bool,
}

impl Portion {
    /// These rows: none was refused, no bytes are counted, no value is absent or kept, all are inserted, and they are a transaction.
    pub fn new(rows: RecordBatch) -> Self {
        Self {
            rows,
            refused: Vec::new(),
            bytes: 0,
            absent: Vec::new(),
            deleted: None,
            kept: Vec::new(),
            truncates: false,
            restarts: false,
            continues: false,
        }
    }
}

/// The rows in which a source has no value of a column. NULL is a value.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Absent {
    /// The column, of those of [`Portion::rows`].
    pub column: usize,
    /// For each row of the portion whether the value is absent; whatever stands there then is ignored.
    pub rows: BooleanArray,
}

impl Absent {
    /// These rows have no value of this column.
    pub fn new(column: usize, rows: BooleanArray) -> Self {
        Self { column, rows }
    }
}

/// A row that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// The file it is in, or its whole place if it is in none.
    pub file: PathBuf,
    /// The line it begins on, or its number where there are no lines; the first is 1. 0 if it is in no file.
    pub line: u64,
    /// The problem.
    pub message: String,
}

impl Refusal {
    /// The row that begins on this line of a file has this problem.
    pub fn new(file: impl Into<PathBuf>, line: u64, message: impl Into<String>) -> Self {
        Self { file: file.into(), line, message: message.into() }
    }
}

impl Refusal {
    /// Where it is, for people.
    pub(crate) fn place(&self) -> String {
        match self.line {
            0 => self.file.display().to_string(),
            line => format!("{}:{line}", self.file.display()),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}: {}", self.place(), self.message)
    }
}
