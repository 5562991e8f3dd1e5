//! The rows that a range join reads.

use std::collections::BTreeSet;
use std::sync::Arc;

use alluvium_dataflow::joins::range_join::{End, Ends};
use datafusion_common::Result;
use datafusion_expr::Operator;
use datafusion_physical_expr::expressions::{BinaryExpr, IsNotNullExpr, NotExpr};

use super::sides::Sides;
use super::{FoundEnd, RangeFilter};
use crate::IncrementalPlan;
use crate::expression::{self, Expression};
use crate::failure::FailsExpr;
use crate::node::Side;

/// The left rows, of which some columns are needed.
pub(super) struct LeftRows {
    pub(super) plan: IncrementalPlan,
    /// The column that is compared.
    pub(super) value: usize,
}

/// The right rows.
pub(super) struct RightRows {
    pub(super) plan: IncrementalPlan,
    pub(super) ends: Ends,
    pub(super) keys: Vec<usize>,
    /// The columns that pairs have: those that are needed, and then whether an end fails and, if so, the columns that it uses.
    pub(super) payload: Vec<usize>,
    /// These last ones, as columns of the right side.
    pub(super) inputs: Vec<usize>,
}

impl RangeFilter {
    /// Whether an end fails for some rows.
    pub(super) fn can_fail(&self) -> bool {
        self.ends().any(|end| end.can_fail)
    }

    /// The left rows that can be in a range, with the columns `needed` first. Those with NULL are in none, but an end may fail for
    /// them.
    pub(super) fn left_rows(&self, sides: &Sides<'_>, needed: &[usize]) -> Result<LeftRows> {
        let left = sides.left;
        let mut filter = all(&self.of_left, sides, left)?;
        let identity = left.identity();
        let mut project: Vec<_> = needed.iter().map(|&column| identity[column].clone()).collect();
        let value = sides.on_side(Arc::clone(&self.value), left)?;
        let known = expression::as_column(&value);
        let value = match known.and_then(|column| needed.iter().position(|&one| one == column)) {
            Some(place) => place,
            None => {
                let name = known.map_or("compared", |column| left.schema.field(column).name());
                project.push((value, name.to_string()));
                project.len() - 1
            }
        };
        let compared = &project[value].0;
        // A cast is NULL where its operand is, and need not be evaluated to know that.
        let is_there = expression::is_not_null(compared);
        let is_needed = !self.can_fail() && expression::is_nullable(compared, &left.schema)?;
        let is_first = is_needed && is_of_column(&is_there);
        if is_first {
            filter = expression::and(filter, Some(is_there));
        }
        let plan = IncrementalPlan::map(left.clone(), filter, project)?;
        let plan = match is_needed && !is_first {
            true => without_nulls(plan, value)?,
            false => plan,
        };
        Ok(LeftRows { plan, value })
    }

    /// The right rows that have a range, with the columns `needed` first.
    pub(super) fn right_rows(&self, sides: &Sides<'_>, needed: &[usize]) -> Result<RightRows> {
        let mut rows = sides.right.clone();
        let mut filter = all(&self.of_right, sides, &rows)?;
        let (identity, mut inputs, mut failed) = (rows.identity(), Vec::new(), None);
        if self.can_fail() {
            let mut project = identity.clone();
            let is_failed = self.failure(sides)?;
            project.push((is_failed, "failed".to_string()));
            rows = IncrementalPlan::map(rows, filter.take(), project)?;
            failed = Some(expression::column(&rows.schema, identity.len()));
            inputs = self.inputs(sides);
        }
        let keys = sides.on.iter().map(|pair| pair.1);
        let columns = needed.iter().copied().chain(keys);
        let mut project: Vec<_> = columns.map(|column| identity[column].clone()).collect();
        let keys = (needed.len()..project.len()).collect();
        let mut payload: Vec<usize> = (0..needed.len()).collect();
        if let Some(failed) = &failed {
            payload.extend(project.len()..project.len() + 1 + inputs.len());
            project.push((Arc::clone(failed), "failed".to_string()));
            for &input in &inputs {
                let (column, name) = identity[input].clone();
                project.push((expression::when(Arc::clone(failed), column)?, name));
            }
        }
        let mut end = |end: &Option<FoundEnd>, name: &str| -> Result<Option<End>> {
            let Some(end) = end else { return Ok(None) };
            let mut value = sides.on_side(Arc::clone(&end.value), sides.right)?;
            let name = expression::as_column(&value)
                .map_or(name, |column| sides.right.schema.field(column).name())
                .to_string();
            if let Some(failed) = &failed {
                value = expression::when(Arc::new(NotExpr::new(Arc::clone(failed))), value)?;
            }
            project.push((value, name));
            Ok(Some(End { column: project.len() - 1, is_included: end.is_included }))
        };
        let ends = Ends { low: end(&self.low, "low")?, high: end(&self.high, "high")? };
        let rows = IncrementalPlan::map(rows, filter, project)?;
        let failed = failed.map(|_| expression::column(&rows.schema, payload[needed.len()]));
        let plan = with_range(rows, ends, failed)?;
        Ok(RightRows { plan, ends, keys, payload, inputs })
    }

    /// Whether an end fails, over the columns of the right side.
    fn failure(&self, sides: &Sides<'_>) -> Result<Expression> {
        let mut failure: Option<Expression> = None;
        for end in self.ends().filter(|end| end.can_fail) {
            let value = sides.on_side(Arc::clone(&end.value), sides.right)?;
            let fails: Expression = Arc::new(FailsExpr::new(value));
            failure = Some(match failure {
                Some(other) => Arc::new(BinaryExpr::new(other, Operator::Or, fails)),
                None => fails,
            });
        }
        Ok(failure.expect("an end can fail"))
    }

    /// The columns of the right side that the ends use.
    fn inputs(&self, sides: &Sides<'_>) -> Vec<usize> {
        let mut inputs = BTreeSet::new();
        self.ends().for_each(|end| sides.used(&end.value, Side::Right, &mut inputs));
        inputs.into_iter().collect()
    }
}

/// All conditions, which use columns of one side only.
fn all(
    conditions: &[Expression],
    sides: &Sides<'_>,
    side: &IncrementalPlan,
) -> Result<Option<Expression>> {
    let mut filter = None;
    for condition in conditions {
        filter = expression::and(filter, Some(sides.on_side(Arc::clone(condition), side)?));
    }
    Ok(filter)
}

/// The rows that some value is within the ends of, and those whose ends have `failed`.
fn with_range(
    rows: IncrementalPlan,
    ends: Ends,
    failed: Option<Expression>,
) -> Result<IncrementalPlan> {
    let columns: Vec<usize> = ends.low.iter().chain(&ends.high).map(|end| end.column).collect();
    let mut condition = are_there(&rows, &columns);
    if let (Some(low), Some(high)) = (ends.low, ends.high) {
        let operator = match low.is_included && high.is_included {
            true => Operator::LtEq,
            false => Operator::Lt,
        };
        let column = |end: End| expression::column(&rows.schema, end.column);
        let holds = BinaryExpr::new(column(low), operator, column(high));
        condition = expression::and(condition, Some(Arc::new(holds)));
    }
    let Some(mut condition) = condition else { return Ok(rows) };
    if let Some(failed) = failed {
        condition = Arc::new(BinaryExpr::new(failed, Operator::Or, condition));
    }
    IncrementalPlan::filter(rows, condition)
}

/// Whether an expression has a column as its only operand.
fn is_of_column(expression: &Expression) -> bool {
    matches!(expression.children()[..], [operand] if expression::as_column(operand).is_some())
}

/// The rows that have no NULL in a column.
fn without_nulls(rows: IncrementalPlan, column: usize) -> Result<IncrementalPlan> {
    match are_there(&rows, &[column]) {
        Some(condition) => IncrementalPlan::filter(rows, condition),
        None => Ok(rows),
    }
}

/// The condition that these columns are not NULL, as far as they can be.
fn are_there(rows: &IncrementalPlan, columns: &[usize]) -> Option<Expression> {
    let nullable = columns.iter().filter(|&&column| rows.schema.field(column).is_nullable());
    let conditions = nullable.map(|&column| {
        Arc::new(IsNotNullExpr::new(expression::column(&rows.schema, column))) as Expression
    });
    conditions.fold(None, |all, one| expression::and(all, Some(one)))
}
