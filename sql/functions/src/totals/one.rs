//! The total of one group, or of a frame from which rows are taken back.

use arrow::array::ArrayRef;
use datafusion_common::{Result, ScalarValue, not_impl_err};
use datafusion_expr::Accumulator;

use super::{Exact, Finish, Total};

/// One total.
#[derive(Debug)]
pub(super) struct One<T: Total> {
    finish: Finish<T>,
    total: T,
    subtract: Option<fn(&mut T, T::Input)>,
}

impl<T: Total> One<T> {
    /// A total of rows that stay.
    pub(super) fn new(finish: Finish<T>) -> Self {
        Self { finish, total: T::default(), subtract: None }
    }

    /// A total of rows that come and go.
    pub(super) fn moving(finish: Finish<T>) -> Self
    where
        T: Exact,
    {
        Self { finish, total: T::default(), subtract: Some(T::subtract) }
    }
}

impl<T: Total> Accumulator for One<T> {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        T::each(columns, |_, input| self.total.add(input))
    }

    fn retract_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        let Some(subtract) = self.subtract else {
            return not_impl_err!("a total from which rows are taken back");
        };
        T::each(columns, |_, input| subtract(&mut self.total, input))
    }

    fn supports_retract_batch(&self) -> bool {
        self.subtract.is_some()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.finish.scalar(&self.total)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.total.owned()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let columns = T::state(std::slice::from_ref(&self.total));
        columns.iter().map(|column| ScalarValue::try_from_array(column, 0)).collect()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        T::each_state(states, |_, other| self.total.merge(&other))
    }
}
