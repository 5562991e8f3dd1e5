//! The condition of a filter.

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, UInt32Array};
use arrow::compute::filter;
use datafusion_physical_expr::utils::split_conjunction;

use super::bounded::{in_pieces, is_too_much_together};
use super::expression::{Expression, Failure, evaluate};
use crate::movement::delta::Delta;

/// A condition: some conditions in a row, connected by AND.
///
/// A row for which one of them is false or NULL is out, and those after it are not evaluated for it, as in PostgreSQL. The
/// operator AND evaluates what follows a NULL; that matters only where it fails.
pub(super) struct Filter {
    whole: Expression,
    conditions: Vec<Expression>,
}

impl Filter {
    pub(super) fn new(condition: Expression) -> Self {
        let parts = split_conjunction(&condition).into_iter().cloned();
        Filter { conditions: parts.map(in_pieces).collect(), whole: in_pieces(condition) }
    }

    /// Which rows pass: those with a value that is true.
    pub(super) fn keep<T: Clone>(&self, delta: &Delta<T>) -> Result<BooleanArray, Failure<'_>> {
        // All at once is faster, and right unless it fails.
        match evaluate(&self.whole, delta) {
            Ok(values) => Ok(booleans(&values)),
            Err(failure) if self.conditions.len() == 1 => Err(failure),
            Err(failure) if is_too_much_together(&failure.error) && delta.len() > 1 => Err(failure),
            Err(_) => self.keep_in_turn(delta),
        }
    }

    /// Evaluates each condition for the rows that pass those before it.
    fn keep_in_turn<T: Clone>(&self, delta: &Delta<T>) -> Result<BooleanArray, Failure<'_>> {
        let mut numbers = UInt32Array::from_iter_values(0..delta.len() as u32);
        for condition in &self.conditions {
            // A constant fails without rows, too.
            if numbers.is_empty() {
                break;
            }
            let values = evaluate(condition, &delta.take(&numbers))
                .map_err(|Failure { error, .. }| Failure { expression: &self.whole, error })?;
            let passed = filter(&numbers, &booleans(&values)).expect("a value for each row");
            numbers = passed.as_primitive().clone();
        }
        let mut passes = vec![false; delta.len()];
        for number in numbers.values() {
            passes[*number as usize] = true;
        }
        Ok(BooleanArray::from(passes))
    }
}

/// The values of a condition. Its only other type is that of NULL, which keeps no rows.
fn booleans(values: &ArrayRef) -> BooleanArray {
    values.as_boolean_opt().cloned().unwrap_or_else(|| BooleanArray::new_null(values.len()))
}
