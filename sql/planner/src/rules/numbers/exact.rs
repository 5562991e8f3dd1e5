//! Casts that round, and results that fit.

use std::sync::Arc;

use alluvium_sql_functions::texts;
use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType};
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::{Transformed, TransformedResult};
use datafusion_common::{DFSchema, Result, ScalarValue};
use datafusion_expr::expr::{Cast, ScalarFunction, TryCast};
use datafusion_expr::type_coercion::binary::BinaryTypeCoercer;
use datafusion_expr::{BinaryExpr, Expr, LogicalPlan, Operator, ScalarUDF};
use datafusion_optimizer::AnalyzerRule;

use super::double::literal;
use super::functions::{
    IN_CALENDAR, IN_CALENDAR_OR_NULL, IN_PRECISION, IN_REAL, IN_REAL_OR_NULL, OF_TEXT,
    OF_TEXT_OR_NULL, QUOTIENT, ROUND, counts_time, is_called, loses_fraction, narrows,
};
use super::{Change, Types, change_node, change_up};

/// Corrects casts and the arithmetic of DECIMAL. Runs after the types are coerced.
#[derive(Debug)]
pub struct ExactNumbers;

impl AnalyzerRule for ExactNumbers {
    fn name(&self) -> &str {
        "exact_numbers"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|node| {
            let node = change_node(node, &corrected)?;
            match node.transformed {
                true => node.map_data(LogicalPlan::recompute_schema),
                false => Ok(node),
            }
        })
        .data()
    }
}

/// An expression without columns, corrected.
pub fn exact(expression: Expr) -> Result<Expr> {
    change_up(expression, &DFSchema::empty(), &corrected).data()
}

fn corrected(part: Expr, types: &mut Types) -> Result<Change> {
    let unchanged = |part| Ok((Transformed::no(part), None));
    match part {
        Expr::Cast(Cast { expr, field }) => {
            let target = field.data_type().clone();
            match converted(*expr, types, &target, &OF_TEXT)? {
                Converted::Exact(exact) => Ok((Transformed::yes(exact), Some(target))),
                Converted::Operand(expr, changed) => {
                    let cast = Expr::Cast(Cast { expr: Box::new(expr), field });
                    Ok((in_calendar(cast, changed, types, &target, &IN_CALENDAR), Some(target)))
                }
            }
        }
        Expr::TryCast(TryCast { expr, field }) => {
            let target = field.data_type().clone();
            match converted(*expr, types, &target, &OF_TEXT_OR_NULL)? {
                Converted::Exact(exact) => Ok((Transformed::yes(exact), Some(target))),
                Converted::Operand(expr, changed) => {
                    let cast = Expr::TryCast(TryCast { expr: Box::new(expr), field });
                    let cast = in_calendar(cast, changed, types, &target, &IN_CALENDAR_OR_NULL);
                    Ok((cast, Some(target)))
                }
            }
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match types.as_slice() {
            [Some(DataType::Decimal128(p, s)), Some(DataType::Decimal128(q, t))] => {
                let (here, there) = ((*p, *s), (*q, *t));
                decimal_arithmetic(BinaryExpr { left, op, right }, here, there)
            }
            _ => unchanged(Expr::BinaryExpr(BinaryExpr { left, op, right })),
        },
        // The plan of a view is corrected already.
        Expr::ScalarFunction(ScalarFunction { func, mut args })
            if [&IN_PRECISION, &IN_CALENDAR, &IN_CALENDAR_OR_NULL]
                .into_iter()
                .any(|check| is_called(&func, check))
                && matches!(args.as_slice(), [Expr::ScalarFunction(inner)] if Arc::ptr_eq(&inner.func, &func)) =>
        {
            Ok((Transformed::yes(args.remove(0)), types.first().cloned().flatten()))
        }
        part => unchanged(part),
    }
}

/// A cast whose result is in the calendar, if it makes a date or time of a number.
fn in_calendar(
    cast: Expr,
    changed: bool,
    types: &Types,
    target: &DataType,
    check: &Arc<ScalarUDF>,
) -> Transformed<Expr> {
    match types.first() {
        Some(Some(source)) if counts_time(source, target) => {
            let call = ScalarFunction::new_udf(Arc::clone(check), vec![cast]);
            Transformed::yes(Expr::ScalarFunction(call))
        }
        _ => Transformed::new_transformed(cast, changed),
    }
}

/// The expression that is cast instead of an operand.
enum Converted {
    /// Nothing: this is the result.
    Exact(Expr),
    /// This, which may be the operand itself.
    Operand(Expr, bool),
}

fn converted(
    operand: Expr,
    types: &Types,
    target: &DataType,
    of_text: &Arc<ScalarUDF>,
) -> Result<Converted> {
    let Some(Some(source)) = types.first() else { return Ok(Converted::Operand(operand, false)) };
    let or_null = is_called(of_text, &OF_TEXT_OR_NULL);
    if let Some(time) = time_of_literal(&operand, target, or_null)? {
        // DataFusion asks for nanoseconds.
        return Ok(match time.data_type() == *target {
            true => Converted::Exact(Expr::Literal(time, None)),
            false => Converted::Operand(Expr::Literal(time, None), true),
        });
    }
    if let (true, DataType::Float64, Some(value)) = (source.is_decimal(), target, literal(&operand))
    {
        return Ok(Converted::Exact(datafusion_expr::lit(value)));
    }
    if narrows(source, target) {
        let check = if or_null { &*IN_REAL_OR_NULL } else { &*IN_REAL };
        return Ok(match &operand {
            Expr::ScalarFunction(call) if Arc::ptr_eq(&call.func, check) => {
                Converted::Operand(operand, false)
            }
            _ => {
                let call = ScalarFunction::new_udf(Arc::clone(check), vec![operand]);
                Converted::Operand(Expr::ScalarFunction(call), true)
            }
        });
    }
    let function = if texts::are_read(source, target) {
        of_text
    } else if loses_fraction(source, target) {
        &*ROUND
    } else {
        return Ok(Converted::Operand(operand, false));
    };
    // The second argument says which of the values in lists and structs are meant.
    Ok(match (&operand, value_of(target)) {
        // What is rounded still is of a type with fractions; what is read is no text.
        (Expr::ScalarFunction(call), _)
            if is_called(&call.func, &ROUND) && is_called(function, &ROUND) =>
        {
            Converted::Operand(operand, false)
        }
        (operand, Ok(target_value)) => {
            let arguments = vec![operand.clone(), Expr::Literal(target_value, None)];
            let call = Expr::ScalarFunction(ScalarFunction::new_udf(function.clone(), arguments));
            match !loses_fraction(source, target) && texts::read_type(source, target) == *target {
                true => Converted::Exact(call),
                false => Converted::Operand(call, true),
            }
        }
        (_, Err(_)) => Converted::Operand(operand, false),
    })
}

/// A value of a type. Those of two types must differ: NULL with and without a time zone are equal.
fn value_of(target: &DataType) -> Result<ScalarValue> {
    match target {
        DataType::Timestamp(_, Some(zone)) => {
            Ok(ScalarValue::TimestampMicrosecond(Some(0), Some(Arc::clone(zone))))
        }
        target => ScalarValue::try_from(target),
    }
}

/// The date or time that a text literal is; `None` of all else.
///
/// # Errors
/// If the text is none, unless it may be NULL.
fn time_of_literal(
    operand: &Expr,
    target: &DataType,
    or_null: bool,
) -> Result<Option<ScalarValue>> {
    let Expr::Literal(text, _) = operand else { return Ok(None) };
    if !target.is_temporal()
        || text.try_as_str().flatten().is_none()
        || !texts::are_read(&text.data_type(), target)
    {
        return Ok(None);
    }
    let time = ScalarValue::try_from_array(&texts::read(&text.to_array()?, target, or_null)?, 0)?;
    Ok(Some(time).filter(|time| !time.is_null()))
}

/// Arithmetic of two DECIMAL of these precisions and scales, whose result may have more digits than its type.
fn decimal_arithmetic(binary: BinaryExpr, left: (u8, i8), right: (u8, i8)) -> Result<Change> {
    let (p, s) = (i16::from(left.0), i16::from(left.1));
    let (q, t) = (i16::from(right.0), i16::from(right.1));
    let digits = match binary.op {
        Operator::Plus | Operator::Minus => s.max(t) + (p - s).max(q - t) + 1,
        Operator::Multiply => p + q + 1,
        Operator::Divide => p - s + t + (s + 4),
        _ => 0,
    };
    if digits <= i16::from(DECIMAL128_MAX_PRECISION) {
        return Ok((Transformed::no(Expr::BinaryExpr(binary)), None));
    }
    let (left, right) =
        (DataType::Decimal128(left.0, left.1), DataType::Decimal128(right.0, right.1));
    let result = BinaryTypeCoercer::new(&left, &binary.op, &right).get_result_type().ok();
    let checked = match binary.op {
        Operator::Divide => {
            ScalarFunction::new_udf(QUOTIENT.clone(), vec![*binary.left, *binary.right])
        }
        _ => ScalarFunction::new_udf(IN_PRECISION.clone(), vec![Expr::BinaryExpr(binary)]),
    };
    Ok((Transformed::yes(Expr::ScalarFunction(checked)), result))
}
