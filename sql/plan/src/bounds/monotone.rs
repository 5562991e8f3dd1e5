//! Lower bounds of expressions.

use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use datafusion_common::ScalarValue;
use datafusion_expr::Operator;
use datafusion_physical_expr::ScalarFunctionExpr;
use datafusion_physical_expr::expressions::{BinaryExpr, CastExpr, Literal};

use super::{LowerBound, LowerBounds, Reason};
use crate::expression::{self, Expression};
use crate::names::Names;

/// Functions that never fall where their argument of this number rises and the others, which are constant, stay.
const MONOTONE: [(&str, usize); 6] = [
    ("date_trunc", 1),
    ("date_bin", 1),
    ("time_bucket", 1),
    ("hop_starts", 0),
    ("time_slot", 0),
    ("time_slots", 0),
];

/// The lower bound of an expression over rows of `schema`, whose columns have these bounds.
pub(crate) fn lower_bound(
    expression: &Expression,
    schema: &Schema,
    bounds: &LowerBounds,
) -> Result<LowerBound, Reason> {
    let lost = || {
        let shown = Names(&Arc::new(schema.clone())).expression(expression);
        let shown = shown.unwrap_or_else(|_| expression.to_string());
        Reason::new(format!("{shown} need not rise with time"))
            .of_expression(expression, schema)
            .with_remedy("use the time itself, or DATE_TRUNC or DATE_BIN of it, or add a constant")
    };
    if let Some(column) = expression::as_column(expression) {
        return bounds[column].clone();
    }
    let Some(argument) = rising(expression, schema) else { return Err(lost()) };
    let is_local = argument.data_type(schema).is_ok_and(|data_type| has_zone(&data_type));
    if is_local && !expression.is::<CastExpr>() {
        return Err(lost());
    }
    let below = lower_bound(argument, schema, bounds)?;
    let replaced = |value: Expression| {
        let children = expression.children().into_iter();
        let children = children.map(|child| match Arc::ptr_eq(child, argument) {
            true => Arc::clone(&value),
            false => Arc::clone(child),
        });
        Arc::clone(expression).with_new_children(children.collect()).ok()
    };
    below.map(replaced).ok_or_else(lost)
}

/// The child with which an expression rises, and never falls.
fn rising<'a>(expression: &'a Expression, schema: &Schema) -> Option<&'a Expression> {
    if let Some(cast) = expression.downcast_ref::<CastExpr>() {
        let from = cast.expr().data_type(schema).ok()?;
        return is_rising_cast(&from, cast.cast_type()).then(|| cast.expr());
    }
    if let Some(binary) = expression.downcast_ref::<BinaryExpr>() {
        return match binary.op() {
            Operator::Plus if is_constant(binary.right()) => Some(binary.left()),
            Operator::Plus if is_constant(binary.left()) => Some(binary.right()),
            Operator::Minus if is_constant(binary.right()) => Some(binary.left()),
            _ => None,
        };
    }
    let call = expression.downcast_ref::<ScalarFunctionExpr>()?;
    let (_, place) = MONOTONE.iter().find(|(name, _)| *name == call.name())?;
    let others = call.args().iter().enumerate().filter(|(number, _)| number != place);
    let is_constant = others.map(|(_, argument)| argument).all(|it| it.is::<Literal>());
    is_constant.then(|| call.args().get(*place))?
}

/// Whether an expression is a number, or an interval that always has the same length.
pub(super) fn is_constant(expression: &Expression) -> bool {
    let Some(literal) = expression.downcast_ref::<Literal>() else { return false };
    match literal.value() {
        ScalarValue::IntervalMonthDayNano(Some(interval)) => interval.months == 0,
        ScalarValue::IntervalDayTime(Some(_)) => true,
        value => {
            let data_type = value.data_type();
            !value.is_null()
                && (data_type.is_integer() || matches!(data_type, DataType::Duration(_)))
        }
    }
}

/// Clocks of zones other than UTC go back in autumn.
fn is_rising_cast(from: &DataType, to: &DataType) -> bool {
    match (from, to) {
        // These are instants.
        (DataType::Timestamp(_, Some(_)), DataType::Timestamp(_, Some(_))) => true,
        (
            DataType::Timestamp(..) | DataType::Date32 | DataType::Date64,
            DataType::Timestamp(..) | DataType::Date32 | DataType::Date64,
        ) => !has_zone(from) && !has_zone(to),
        _ => from.is_signed_integer() && to.is_signed_integer(),
    }
}

/// Whether values are times of a zone other than UTC.
fn has_zone(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Timestamp(_, Some(zone)) if !matches!(&**zone, "+00:00" | "UTC"))
}
