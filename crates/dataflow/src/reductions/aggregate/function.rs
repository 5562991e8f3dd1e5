//! The aggregates that have operators of their own.

use arrow::datatypes::DataType;

/// The function of an aggregate over the rows of its group.
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
    /// The input of the row with the smallest rank; NULL when the input and the rank of every row are NULL.
    ArgMin,
    /// The input of the row with the largest rank; NULL when the input and the rank of every row are NULL.
    ArgMax,
}

impl Function {
    /// Whether it returns the input of the last row in order rather than that of the first one.
    pub(super) fn is_descending(self) -> bool {
        matches!(self, Function::Max | Function::ArgMax)
    }
}

/// One aggregate of a GROUP BY.
#[derive(Clone, Debug, PartialEq)]
pub struct Aggregate {
    /// The function.
    pub function: Function,
    /// The column of the input it is computed over; `None` only for `COUNT(*)`.
    pub input: Option<usize>,
    /// The column that ranks rows, for `ArgMin` and `ArgMax`. It is NULL exactly where the input is. Rows of equal rank are
    /// ranked by the input.
    pub rank: Option<usize>,
    /// Whether each value of the input counts once.
    pub distinct: bool,
    /// The column that is true in the rows whose input counts, and never NULL. Only aggregates of distinct values have one: others
    /// have NULL as their input where it does not count.
    pub filter: Option<usize>,
    /// The type of the result.
    pub result: DataType,
}

impl Aggregate {
    /// The columns of the input that it reads.
    pub fn columns(&self) -> impl Iterator<Item = usize> {
        [self.input, self.rank, self.filter].into_iter().flatten()
    }

    /// The same over an input whose columns have other numbers.
    #[must_use]
    pub fn renumbered(&self, renumber: impl Fn(usize) -> usize) -> Self {
        Self {
            input: self.input.map(&renumber),
            rank: self.rank.map(&renumber),
            filter: self.filter.map(&renumber),
            ..self.clone()
        }
    }

    /// Whether a group's accumulators suffice to update the result. `append_only`: rows are never deleted.
    pub fn is_accumulated(&self, append_only: bool) -> bool {
        match self.function {
            Function::Count | Function::Sum | Function::Avg => true,
            // Sorting bytes do not keep the bits of floats.
            Function::Min | Function::Max => append_only && !self.result.is_floating(),
            Function::ArgMin | Function::ArgMax => false,
        }
    }
}
