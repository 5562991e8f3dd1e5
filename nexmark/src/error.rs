//! The errors of the benchmark.

use std::path::PathBuf;

use arrow::error::ArrowError;
use parquet::errors::ParquetError;

/// A result of the harness.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a query was not measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no query of this name.
    #[error("unknown query \"{0}\": expected q0 to q22, or \"all\"")]
    UnknownQuery(String),
    /// There are no tables of this name.
    #[error(
        "unknown tables \"{0}\": expected append-only, unchecked, append-only-kept, kept, keyed or promised"
    )]
    UnknownTables(String),
    /// The engine refused a statement, or failed.
    #[error("{file}:{line}:{column}: {error}")]
    Statement {
        /// The SQL file.
        file: String,
        /// The line, counted from one.
        line: u64,
        /// The column, counted from one.
        column: u64,
        /// The engine's error.
        error: alluvium::Error,
    },
    /// The engine has failed.
    #[error(transparent)]
    Engine(#[from] alluvium::Error),
    /// Some rows of a view could not be computed.
    #[error("{query}: {count} rows could not be computed; the first error is: {message}")]
    Rows {
        /// The query.
        query: String,
        /// The number of rows.
        count: usize,
        /// One of the messages.
        message: String,
    },
    /// A column of a result is of a type that has no canonical form.
    #[error("column \"{column}\" is {data_type}, which has no canonical form")]
    Canonical {
        /// The column.
        column: String,
        /// Its type.
        data_type: arrow::datatypes::DataType,
    },
    /// A file of events cannot be written or read.
    #[error("{path}: {error}")]
    File {
        /// The file.
        path: PathBuf,
        /// The error.
        error: ParquetError,
    },
    /// A batch of events cannot be built.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
    /// The operating system does not report the resources of the process.
    #[error("cannot read the resources of the process: {0}")]
    Resources(#[from] procfs::ProcError),
}
