//! Casts that round, and results that fit.

use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType};
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::{Transformed, TransformedResult};
use datafusion_common::{DFSchema, Result, ScalarValue};
use datafusion_expr::expr::{Cast, ScalarFunction, TryCast};
use datafusion_expr::{BinaryExpr, Expr, LogicalPlan, Operator};
use datafusion_optimizer::AnalyzerRule;

use super::double::literal;
use super::functions::{IN_PRECISION, ROUND, is_called, loses_fraction};
use super::{Change, Types, change_node, change_up};
use crate::planner::short_time::with_seconds;

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
pub(crate) fn exact(expression: Expr) -> Result<Expr> {
    change_up(expression, &DFSchema::empty(), &corrected).data()
}

fn corrected(part: Expr, types: &mut Types) -> Result<Change> {
    let unchanged = |part| Ok((Transformed::no(part), None));
    match part {
        Expr::Cast(Cast { expr, field }) => {
            let target = field.data_type().clone();
            match converted(*expr, types, &target) {
                Converted::Exact(exact) => Ok((Transformed::yes(exact), Some(target))),
                Converted::Operand(expr, changed) => {
                    let cast = Expr::Cast(Cast { expr: Box::new(expr), field });
                    Ok((Transformed::new_transformed(cast, changed), Some(target)))
                }
            }
        }
        Expr::TryCast(TryCast { expr, field }) => {
            let target = field.data_type().clone();
            match converted(*expr, types, &target) {
                Converted::Exact(exact) => Ok((Transformed::yes(exact), Some(target))),
                Converted::Operand(expr, changed) => {
                    let cast = Expr::TryCast(TryCast { expr: Box::new(expr), field });
                    Ok((Transformed::new_transformed(cast, changed), Some(target)))
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
            if is_called(&func, &IN_PRECISION)
                && matches!(args.as_slice(), [Expr::ScalarFunction(inner)] if is_called(&inner.func, &IN_PRECISION)) =>
        {
            Ok((Transformed::yes(args.remove(0)), types.first().cloned().flatten()))
        }
        part => unchanged(part),
    }
}

/// What is cast instead of an operand.
enum Converted {
    /// Nothing: this is the result.
    Exact(Expr),
    /// This, which may be the operand itself.
    Operand(Expr, bool),
}

fn converted(operand: Expr, types: &Types, target: &DataType) -> Converted {
    let Some(Some(source)) = types.first() else { return Converted::Operand(operand, false) };
    if let Some(literal) = with_seconds(&operand, target) {
        return Converted::Operand(literal, true);
    }
    if let (true, DataType::Float64, Some(value)) = (source.is_decimal(), target, literal(&operand))
    {
        return Converted::Exact(datafusion_expr::lit(value));
    }
    let is_rounded =
        matches!(&operand, Expr::ScalarFunction(call) if is_called(&call.func, &ROUND));
    if is_rounded || !loses_fraction(source, target) {
        return Converted::Operand(operand, false);
    }
    // The second argument says which of the numbers in lists and structs become integers.
    match ScalarValue::try_from(target) {
        Ok(target) => {
            let target = Expr::Literal(target, None);
            let rounded = ScalarFunction::new_udf(ROUND.clone(), vec![operand, target]);
            Converted::Operand(Expr::ScalarFunction(rounded), true)
        }
        Err(_) => Converted::Operand(operand, false),
    }
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
    let expr = Expr::BinaryExpr(binary);
    if digits <= i16::from(DECIMAL128_MAX_PRECISION) {
        return Ok((Transformed::no(expr), None));
    }
    let checked = ScalarFunction::new_udf(IN_PRECISION.clone(), vec![expr]);
    Ok((Transformed::yes(Expr::ScalarFunction(checked)), None))
}
