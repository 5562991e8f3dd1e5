//! Totals over frames that move, of which no row is taken back.
//!
//! A queue of two stacks: rows that enter the frame are kept and added to one total. When the rows before them have left,
//! the kept rows become totals of each row and all rows after it, from the last row to the first, and leave one by one. The
//! result merges the first of these with the total of what entered since. A row is merged at most three times.

use arrow::array::ArrayRef;
use datafusion_common::{Result, ScalarValue, not_impl_err};
use datafusion_expr::Accumulator;

use super::{Finish, Total};

/// The rows of a frame.
#[derive(Debug)]
pub(super) struct Kept<T: Total> {
    finish: Finish<T>,
    /// For each of the first rows, the last of them first: it and those between it and the entered ones.
    leaving: Vec<T>,
    entered: Vec<T::Input>,
    /// The total of the rows that have entered.
    total: T,
}

impl<T: Total> Kept<T> {
    pub(super) fn new(finish: Finish<T>) -> Self {
        Self { finish, leaving: Vec::new(), entered: Vec::new(), total: T::default() }
    }

    /// The first row leaves.
    fn leave(&mut self) {
        if self.leaving.is_empty() {
            let mut total = T::default();
            for input in self.entered.drain(..).rev() {
                total.add(input);
                self.leaving.push(total.clone());
            }
            self.total = T::default();
        }
        self.leaving.pop();
    }
}

impl<T: Total> Accumulator for Kept<T> {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        T::each(columns, |_, input| {
            self.entered.push(input);
            self.total.add(input);
        })
    }

    fn retract_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        T::each(columns, |_, _| self.leave())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let mut total = self.leaving.last().cloned().unwrap_or_default();
        total.merge(&self.total);
        self.finish.scalar(&total)
    }

    fn size(&self) -> usize {
        size_of_val(self)
            + self.leaving.capacity() * size_of::<T>()
            + self.entered.capacity() * size_of::<T::Input>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        not_impl_err!("a partial result over a frame")
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        not_impl_err!("a partial result over a frame")
    }
}
