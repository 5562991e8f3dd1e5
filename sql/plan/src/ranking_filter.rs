//! Filters on row numbers: `WHERE n <= 3` over `ROW_NUMBER()`, `RANK()` or `DENSE_RANK()` is a top-k.

use std::sync::Arc;

use alluvium_dataflow::reductions::ranked::{Numbering, Top};
use arrow::datatypes::DataType;
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::{Operator, WindowFunctionDefinition};
use datafusion_physical_expr::expressions::{BinaryExpr, CastExpr, Literal};
use datafusion_physical_expr::split_conjunction;

use super::expression::{self, Expression};
use super::{IncrementalPlan, Node};

/// The numbers that a condition accepts.
struct Numbers {
    above: u64,
    /// The last one, if there is a last one.
    up_to: Option<u64>,
}

/// Replaces a window whose row numbers `filter` bounds by a top-k, and returns the rest of the filter.
///
/// `project` is evaluated on the rows that pass.
pub(super) fn into_top(
    input: IncrementalPlan,
    filter: Option<Expression>,
    project: &[(Expression, String)],
) -> Result<(IncrementalPlan, Option<Expression>)> {
    let (Node::Window(window), Some(condition)) = (&input.node, &filter) else {
        return Ok((input, filter));
    };
    let number = window.input.width();
    let numbering = match window.functions.as_slice() {
        [function] => match &function.function {
            WindowFunctionDefinition::WindowUDF(function) => match function.name() {
                "row_number" => Numbering::Row,
                "rank" => Numbering::Rank,
                "dense_rank" => Numbering::DenseRank,
                _ => return Ok((input, filter)),
            },
            WindowFunctionDefinition::AggregateUDF(_) => return Ok((input, filter)),
        },
        _ => return Ok((input, filter)),
    };
    let mut numbers = Numbers { above: 0, up_to: None };
    let mut rest = None;
    for part in split_conjunction(condition) {
        if !numbers.narrow(part, number) {
            rest = expression::and(rest, Some(Arc::clone(part)));
        }
    }
    let Some(last) = numbers.up_to else { return Ok((input, filter)) };
    let mut numbered = false;
    for expression in rest.iter().chain(project.iter().map(|(expression, _)| expression)) {
        expression::for_each_column(expression, &mut |column| numbered |= column == number);
    }
    let (rows, keys, order) =
        (window.input.as_ref().clone(), window.keys.clone(), window.order.clone());
    let take = Some(last.saturating_sub(numbers.above));
    let which = Top { numbering, skip: numbers.above, take, numbered };
    Ok((IncrementalPlan::top(rows, keys, order, which)?, rest))
}

impl Numbers {
    /// Narrows the numbers by a condition, if it compares column `number` with a constant; returns whether it does.
    fn narrow(&mut self, condition: &Expression, number: usize) -> bool {
        let Some(comparison) = condition.downcast_ref::<BinaryExpr>() else { return false };
        let (operator, constant) = match (
            is_number(comparison.left(), number),
            whole(comparison.right()),
            is_number(comparison.right(), number),
            whole(comparison.left()),
        ) {
            (true, Some(constant), _, _) => (Some(*comparison.op()), constant),
            (_, _, true, Some(constant)) => (comparison.op().swap(), constant),
            _ => return false,
        };
        let within = |number: i128| u64::try_from(number.max(0)).unwrap_or(u64::MAX);
        let (above, up_to) = match operator {
            Some(Operator::Lt) => (0, Some(within(constant - 1))),
            Some(Operator::LtEq) => (0, Some(within(constant))),
            Some(Operator::Eq) => (within(constant - 1), Some(within(constant))),
            Some(Operator::Gt) => (within(constant), None),
            Some(Operator::GtEq) => (within(constant - 1), None),
            _ => return false,
        };
        self.above = self.above.max(above);
        self.up_to = match (self.up_to, up_to) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        true
    }
}

/// Whether an expression is column `number`, perhaps cast to another integer type.
fn is_number(expression: &Expression, number: usize) -> bool {
    match expression.downcast_ref::<CastExpr>() {
        Some(cast) => cast.cast_type().is_integer() && is_number(cast.expr(), number),
        None => expression::as_column(expression) == Some(number),
    }
}

/// The value of an integer literal.
fn whole(expression: &Expression) -> Option<i128> {
    let value = expression.downcast_ref::<Literal>()?.value();
    if !value.data_type().is_integer() {
        return None;
    }
    match value.cast_to(&DataType::Decimal128(38, 0)) {
        Ok(ScalarValue::Decimal128(value, ..)) => value,
        _ => None,
    }
}
