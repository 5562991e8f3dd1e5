//! Errors of encoding and decoding.

use arrow::datatypes::DataType;
use arrow::error::ArrowError;

/// Why rows could not be encoded or decoded.
#[derive(Debug, thiserror::Error)]
pub enum CodecError {
    /// Rows with a column of this type cannot be encoded.
    #[error("columns of type {0} cannot be kept in state yet")]
    Unsupported(DataType),
    /// Values of this type have no order, so they cannot be keys.
    #[error("values of type {0} cannot be keys: they have no order")]
    Key(DataType),
    /// An aggregate does not support an input type with a result type.
    #[error("{function} over {input} with a result of type {result} is not supported yet")]
    Aggregate {
        /// The aggregate function.
        function: String,
        /// The type of the input.
        input: DataType,
        /// The type of the result.
        result: DataType,
    },
    /// DataFusion cannot evaluate a function over its arguments.
    #[error("{0}")]
    Evaluation(String),
    /// The columns are not the ones the codec was made for.
    #[error("column {column} is {found} where {expected} was announced")]
    Type {
        /// The number of the column, from zero.
        column: usize,
        /// The type that the codec was made for.
        expected: DataType,
        /// The type of the column.
        found: DataType,
    },
    /// There are more or fewer columns than the codec was made for, or they differ in length.
    #[error("{found} where {expected} columns of {rows} rows were announced")]
    Shape {
        /// The number of columns the codec was made for.
        expected: usize,
        /// The number of rows each must have.
        rows: usize,
        /// The given value, in words.
        found: String,
    },
    /// A row, or a decoded column of a batch, is longer than its offsets can say.
    #[error("{0} is too long: the limit is {1} bytes")]
    TooLong(&'static str, u64),
    /// Bytes that no row encodes to.
    #[error("an encoded row is corrupt: {0}")]
    Corrupt(&'static str),
    /// An error of arrow.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
}
