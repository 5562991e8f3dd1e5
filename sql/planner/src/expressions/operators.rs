//! Operators that DataFusion's planner does not have, or has with another meaning.

use std::sync::Arc;

use alluvium_sql_functions::FUNCTIONS;
use alluvium_sql_functions::duckdb::{EXTRACT, EXTRACT_TEXT};
use alluvium_sql_syntax::syntax::{DOUBLE, NAMED, NEGATED};
use arrow::datatypes::DataType;
use datafusion_common::{Column, DFSchema, Result, ScalarValue, plan_datafusion_err};
use datafusion_expr::expr::{Cast, ScalarFunction};
use datafusion_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion_expr::{Expr, lit};
use sqlparser::ast::BinaryOperator;

use crate::expressions::time_arithmetic;

/// Plans numbers that are DOUBLE, names of columns that may be those of others, `^`, which is the power in DOUBLE, `->` and `->>`
/// of JSON, and arithmetic with times.
#[derive(Debug)]
pub(crate) struct Operators;

impl ExprPlanner for Operators {
    fn plan_binary_op(
        &self,
        raw: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        match (&raw.op, &raw.left) {
            (
                BinaryOperator::Custom(operator),
                Expr::Literal(ScalarValue::Utf8(Some(number)), _),
            ) if operator == DOUBLE => {
                let number = number.replace('_', "");
                let value: f64 = number
                    .parse()
                    .map_err(|_| plan_datafusion_err!("\"{number}\" is not a number"))?;
                Ok(PlannerResult::Planned(lit(value)))
            }
            (BinaryOperator::Custom(operator), Expr::Literal(ScalarValue::Utf8(Some(name)), _))
                if operator == NAMED =>
            {
                let named = schema.qualified_fields_with_unqualified_name(name);
                let planned = match &named[..] {
                    [] => raw.right,
                    [column] => Expr::Column(Column::from(*column)),
                    // A merged column, or else ambiguous.
                    _ => Expr::Column(Column::from_name(name)),
                };
                Ok(PlannerResult::Planned(planned))
            }
            (BinaryOperator::Custom(operator), _) if operator == NEGATED => {
                time_arithmetic::negative(raw.left, schema).map(PlannerResult::Planned)
            }
            (BinaryOperator::PGExp, _) => {
                let Some(power) = FUNCTIONS.scalar.get("power") else {
                    return Ok(PlannerResult::Original(raw));
                };
                let double = |expr: Expr| Expr::Cast(Cast::new(Box::new(expr), DataType::Float64));
                let arguments = vec![double(raw.left), double(raw.right)];
                let power = ScalarFunction::new_udf(Arc::clone(power), arguments);
                Ok(PlannerResult::Planned(Expr::ScalarFunction(power)))
            }
            (BinaryOperator::Arrow | BinaryOperator::LongArrow, _) => {
                let is_text = raw.op == BinaryOperator::LongArrow;
                let extract = if is_text { &EXTRACT_TEXT } else { &EXTRACT };
                let arguments = vec![raw.left, raw.right];
                let call = ScalarFunction::new_udf(Arc::clone(extract), arguments);
                Ok(PlannerResult::Planned(Expr::ScalarFunction(call)))
            }
            (
                BinaryOperator::Plus
                | BinaryOperator::Minus
                | BinaryOperator::Multiply
                | BinaryOperator::Divide,
                _,
            ) => time_arithmetic::planned(raw, schema),
            _ => Ok(PlannerResult::Original(raw)),
        }
    }
}
