//! What can go wrong.

use std::path::PathBuf;

use arrow::error::ArrowError;
use parquet::errors::ParquetError;

/// The result of asking the harness for something.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a query was not measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no query of this name.
    #[error("there is no query \"{0}\": there are q0 to q22, and \"all\"")]
    UnknownQuery(String),
    /// The engine refuses a statement, or has failed.
    #[error("{file}:{line}:{column}: {error}")]
    Statement {
        /// The SQL file.
        file: String,
        /// Where in it, from one.
        line: u64,
        /// Where in the line, from one.
        column: u64,
        /// What the engine says.
        error: alluvium::Error,
    },
    /// The engine has failed.
    #[error(transparent)]
    Engine(#[from] alluvium::Error),
    /// Some rows of a view could not be computed.
    #[error("{query}: {count} rows could not be computed, one of them because: {message}")]
    Rows {
        /// The query.
        query: String,
        /// How many there are.
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
        /// What happened.
        error: ParquetError,
    },
    /// Events cannot be put together.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
    /// The operating system does not say what the process uses.
    #[error("the resources that the process uses are unknown: {0}")]
    Resources(#[from] procfs::ProcError),
}
