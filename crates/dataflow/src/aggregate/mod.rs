//! Aggregates: one row per group, from what its rows add up to.

pub mod accumulator;
mod decimal_sum;
pub mod float_sum;

use arrow::datatypes::DataType;

/// What an aggregate computes over the rows of its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Function {
    /// The number of rows, or of rows whose input is not NULL.
    Count,
    /// The sum of the inputs that are not NULL; NULL when there is none.
    Sum,
    /// The mean of the inputs that are not NULL; NULL when there is none.
    Avg,
    /// The smallest input that is not NULL; NULL when there is none.
    Min,
    /// The largest input that is not NULL; NULL when there is none.
    Max,
}

/// One aggregate of a GROUP BY.
#[derive(Clone, Debug, PartialEq)]
pub struct Aggregate {
    /// What is computed.
    pub function: Function,
    /// The column of the input it is computed over; `None` only for `COUNT(*)`.
    pub input: Option<usize>,
    /// The type of the result.
    pub result: DataType,
}
