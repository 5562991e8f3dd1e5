//! What can go wrong between rows and bytes.

use arrow::datatypes::DataType;
use arrow::error::ArrowError;

/// Why rows could not be encoded or decoded.
#[derive(Debug, thiserror::Error)]
pub enum CodecError {
    /// Rows with a column of this type cannot be kept as bytes.
    #[error("columns of type {0} cannot be kept in state yet")]
    Unsupported(DataType),
    /// There is no one way to compare values of this type.
    #[error("values of type {0} cannot be keys: they have no order")]
    Key(DataType),
    /// An aggregate over such an input cannot be kept as totals with such a result.
    #[error("{function} over {input} with a result of type {result} is not supported yet")]
    Aggregate {
        /// What is computed.
        function: String,
        /// The type it is computed over.
        input: DataType,
        /// The type of the result.
        result: DataType,
    },
    /// A function cannot be evaluated over what it is given.
    #[error("{0}")]
    Evaluation(String),
    /// The columns are not the ones the codec was made for.
    #[error("column {column} is {found} where {expected} was announced")]
    Type {
        /// The number of the column, from zero.
        column: usize,
        /// What the codec was made for.
        expected: DataType,
        /// What was given.
        found: DataType,
    },
    /// There are more or fewer columns than the codec was made for, or they differ in length.
    #[error("{found} where {expected} columns of {rows} rows were announced")]
    Shape {
        /// The number of columns the codec was made for.
        expected: usize,
        /// The number of rows each must have.
        rows: usize,
        /// What was given, in words.
        found: String,
    },
    /// A row, or a decoded column of a batch, is longer than its offsets can say.
    #[error("{0} is too long: the limit is {1} bytes")]
    TooLong(&'static str, u64),
    /// Bytes that no row encodes to.
    #[error("an encoded row is corrupt: {0}")]
    Corrupt(&'static str),
    /// Arrow refused.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
}
