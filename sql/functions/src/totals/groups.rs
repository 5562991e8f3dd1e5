//! The totals of many groups.

use arrow::array::{Array, ArrayRef, BooleanArray, Float64Array};
use arrow::compute::cast;
use datafusion_common::Result;
use datafusion_expr::{EmitTo, GroupsAccumulator};

use super::{Finish, Total};

/// A total for each group.
#[derive(Debug)]
pub struct Groups<T: Total> {
    finish: Finish<T>,
    totals: Vec<T>,
}

impl<T: Total> Groups<T> {
    pub fn new(finish: Finish<T>) -> Self {
        Self { finish, totals: Vec::new() }
    }
}

/// Whether a row counts.
fn holds(filter: Option<&BooleanArray>, row: usize) -> bool {
    filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row))
}

impl<T: Total> GroupsAccumulator for Groups<T> {
    fn update_batch(
        &mut self,
        columns: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        count: usize,
    ) -> Result<()> {
        self.totals.resize_with(count, T::default);
        T::each(columns, |row, input| {
            if holds(filter, row) {
                self.totals[groups[row]].add(input);
            }
        })
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let totals = emit_to.take_needed(&mut self.totals);
        let results: Float64Array = totals.iter().map(self.finish.number).collect();
        Ok(cast(&results, &self.finish.result)?)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(T::state(&emit_to.take_needed(&mut self.totals)))
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], count: usize) -> Result<()> {
        self.totals.resize_with(count, T::default);
        T::each_state(states, |row, other| self.totals[groups[row]].merge(&other))
    }

    fn convert_to_state(
        &self,
        columns: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let rows = columns.first().map_or(0, |column| column.len());
        let mut totals = vec![T::default(); rows];
        T::each(columns, |row, input| {
            if holds(filter, row) {
                totals[row].add(input);
            }
        })?;
        Ok(T::state(&totals))
    }

    fn size(&self) -> usize {
        let owned: usize = self.totals.iter().map(Total::owned).sum();
        size_of_val(self) + self.totals.capacity() * size_of::<T>() + owned
    }
}
