//! Lower bounds that follow from conditions.

use std::sync::Arc;

use alluvium_sql_functions::microseconds;
use alluvium_sql_planner::rules::intervals;
use arrow::datatypes::{DataType, IntervalMonthDayNano, Schema};
use datafusion_common::ScalarValue;
use datafusion_expr::Operator;
use datafusion_physical_expr::expressions::{BinaryExpr, CastExpr, Literal};
use datafusion_physical_expr::utils::split_conjunction;

use super::monotone::is_constant;
use super::{LowerBounds, lower_bound, other_side};
use crate::expression::{self, Expression};
use crate::fault::{self, Fault};

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
    let Some((column, steps)) = column_and_steps(larger, schema) else { return false };
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
    let bound = bound.map(|value| Some(steps.iter().fold(value, |value, step| step.undo(value))));
    match bound {
        // A cast could round up.
        Some(bound) if bound.has_type(column_type) => {
            bounds[column] = Ok(bound);
            true
        }
        _ => false,
    }
}

/// The column that `computed` computes with steps that keep the order of all values and can be undone, and the expression
/// that has to compare with it as `compared` does with `computed`.
pub(crate) fn undone(
    computed: &Expression,
    schema: &Schema,
    compared: &Expression,
) -> Option<(usize, Expression)> {
    let (column, steps) = column_and_steps(computed, schema)?;
    if steps.iter().any(|step| matches!(step, Step::Midnight)) {
        return None;
    }
    let compared = steps.iter().fold(Arc::clone(compared), |value, step| step.undo(value));
    Some((column, compared))
}

/// The column of times, which are in UTC, to which an expression adds constant lengths, and their sum, in the unit of the times.
pub(crate) fn shift(expression: &Expression, schema: &Schema) -> Option<(usize, i64)> {
    let (column, steps) = column_and_steps(expression, schema)?;
    let data_type = schema.field(column).data_type();
    let DataType::Timestamp(unit, _) = data_type else { return None };
    if !has_same_numbers(data_type, data_type) {
        return None;
    }
    let mut sum = 0;
    for step in &steps {
        let Step::Shift(operator, length) = step else { continue };
        let length = constant_length(length)?;
        sum += if *operator == Operator::Plus { length } else { -length };
    }
    let unit = i128::from(microseconds::nanoseconds(*unit));
    let is_whole = sum % unit == 0;
    Some((column, i64::try_from(sum / unit).ok().filter(|_| is_whole)?))
}

/// The nanoseconds of an interval that is constant and always of the same length.
fn constant_length(length: &Expression) -> Option<i128> {
    let interval = match length.downcast_ref::<Literal>()?.value() {
        ScalarValue::IntervalMonthDayNano(Some(interval)) if interval.months == 0 => *interval,
        ScalarValue::IntervalDayTime(Some(interval)) => {
            let nanoseconds = i64::from(interval.milliseconds) * 1_000_000;
            IntervalMonthDayNano::new(0, interval.days, nanoseconds)
        }
        _ => return None,
    };
    Some(intervals::nanoseconds(interval))
}

/// A step of a computation that keeps the order of all values and can be undone, or nearly so.
enum Step {
    /// `+` or `-`, and a constant length.
    Shift(Operator, Expression),
    /// From this type of a time to one with the same numbers.
    Cast(DataType),
    /// From a date to the time at which it begins. Undone it is the day of a time, which is no later.
    Midnight,
}

impl Step {
    /// The value before this step, of a `value` after it.
    fn undo(&self, value: Expression) -> Expression {
        match self {
            Step::Shift(..) if fault::armed(Fault::BoundWithoutOffset) => value,
            Step::Shift(operator, length) => {
                let inverse = match operator {
                    Operator::Plus => Operator::Minus,
                    _ => Operator::Plus,
                };
                let shifted = BinaryExpr::new(value, inverse, Arc::clone(length));
                Arc::new(shifted.with_fail_on_overflow(true))
            }
            Step::Midnight => Arc::new(CastExpr::new(value, DataType::Date32, None)),
            Step::Cast(data_type) => Arc::new(CastExpr::new(value, data_type.clone(), None)),
        }
    }
}

/// The column that an expression computes with such steps alone, and the steps, the last one first.
fn column_and_steps(expression: &Expression, schema: &Schema) -> Option<(usize, Vec<Step>)> {
    let (mut rest, mut steps) = (expression, Vec::new());
    loop {
        if let Some(column) = expression::as_column(rest) {
            return Some((column, steps));
        }
        if let Some(cast) = rest.downcast_ref::<CastExpr>() {
            let from = cast.expr().data_type(schema).ok()?;
            match (&from, cast.cast_type()) {
                (DataType::Date32, DataType::Timestamp(_, None)) => steps.push(Step::Midnight),
                (from, to) if has_same_numbers(from, to) => steps.push(Step::Cast(from.clone())),
                _ => return None,
            }
            rest = cast.expr();
            continue;
        }
        let binary = rest.downcast_ref::<BinaryExpr>()?;
        let is_shift = matches!(binary.op(), Operator::Plus | Operator::Minus);
        if !is_shift || !is_constant(binary.right()) {
            return None;
        }
        steps.push(Step::Shift(*binary.op(), Arc::clone(binary.right())));
        rest = binary.left();
    }
}

/// Whether times of two types are equal if their numbers are: both are in UTC.
pub(crate) fn has_same_numbers(from: &DataType, to: &DataType) -> bool {
    let is_utc = |zone: &Option<Arc<str>>| zone.as_deref().is_none_or(|zone| zone == "+00:00");
    match (from, to) {
        (DataType::Timestamp(from, from_zone), DataType::Timestamp(to, to_zone)) => {
            from == to && is_utc(from_zone) && is_utc(to_zone)
        }
        _ => false,
    }
}
