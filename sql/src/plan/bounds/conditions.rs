//! Lower bounds that follow from conditions.

use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion_expr::Operator;
use datafusion_physical_expr::expressions::BinaryExpr;
use datafusion_physical_expr::utils::split_conjunction;

use super::monotone::is_constant;
use super::{LowerBounds, lower_bound, other_side};
use crate::fault::{self, Fault};
use crate::plan::expression::{self, Expression};

/// The conditions that are true where a filter is.
pub(crate) fn conjuncts(filter: Option<&Expression>) -> Vec<Expression> {
    filter.map_or_else(Vec::new, |filter| {
        split_conjunction(filter).into_iter().map(Arc::clone).collect()
    })
}

/// Adds the bounds of rows of `schema` that follow from bounds of other columns: `conditions` are true for these rows.
pub(crate) fn infer(bounds: &mut LowerBounds, schema: &Schema, conditions: &[Expression]) {
    // Each round that changes something gives a column a bound.
    while conditions.iter().any(|condition| infer_from(bounds, schema, condition)) {}
}

/// Whether a condition gave a column a bound.
fn infer_from(bounds: &mut LowerBounds, schema: &Schema, condition: &Expression) -> bool {
    let Some(binary) = condition.downcast_ref::<BinaryExpr>() else { return false };
    let (left, right) = match fault::armed(Fault::BoundDownwards) {
        true => (binary.right(), binary.left()),
        false => (binary.left(), binary.right()),
    };
    match binary.op() {
        Operator::GtEq | Operator::Gt => raise(bounds, schema, left, right),
        Operator::LtEq | Operator::Lt => raise(bounds, schema, right, left),
        Operator::Eq => raise(bounds, schema, left, right) || raise(bounds, schema, right, left),
        _ => false,
    }
}

/// Gives the column of `larger`, which has no bound yet, the bound of `smaller`.
fn raise(
    bounds: &mut LowerBounds,
    schema: &Schema,
    larger: &Expression,
    smaller: &Expression,
) -> bool {
    let Some((column, distance)) = column_and_distance(larger) else { return false };
    if bounds[column].is_ok() {
        return false;
    }
    let bound = match lower_bound(smaller, schema, bounds) {
        Ok(bound) => bound,
        Err(reason) => {
            // Would it rise, so would the column.
            if bounds[column] == Err(other_side()) {
                bounds[column] = Err(reason);
            }
            return false;
        }
    };
    let column_type = schema.field(column).data_type();
    let bound = bound.map(|value| {
        let Some((operator, length)) = &distance else { return Some(value) };
        if fault::armed(Fault::BoundWithoutOffset) {
            return Some(value);
        }
        let inverse = match operator {
            Operator::Plus => Operator::Minus,
            _ => Operator::Plus,
        };
        let shifted = BinaryExpr::new(value, inverse, Arc::clone(length));
        Some(Arc::new(shifted.with_fail_on_overflow(true)))
    });
    match bound {
        // A cast could round up.
        Some(bound) if bound.has_type(column_type) => {
            bounds[column] = Ok(bound);
            true
        }
        _ => false,
    }
}

/// The column of `column`, `column + length` or `column - length`, with the operator and the constant length.
fn column_and_distance(expression: &Expression) -> Option<(usize, Option<(Operator, Expression)>)> {
    if let Some(column) = expression::as_column(expression) {
        return Some((column, None));
    }
    let binary = expression.downcast_ref::<BinaryExpr>()?;
    let is_shift = matches!(binary.op(), Operator::Plus | Operator::Minus);
    let column = expression::as_column(binary.left())?;
    let shift = (*binary.op(), Arc::clone(binary.right()));
    (is_shift && is_constant(binary.right())).then_some((column, Some(shift)))
}
