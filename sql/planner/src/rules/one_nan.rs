//! One NaN, as in PostgreSQL.
//!
//! Arithmetic has NaNs with and without a sign, `-CAST('NaN' AS DOUBLE)` and infinity minus infinity, and DataFusion
//! compares and groups floats by their bits. Tables hold the one NaN alone. So it is enough that results of computations
//! become the one NaN wherever they are NaN: where they leave an expression, or are compared inside of one.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion_common::{DFSchema, Result, ScalarValue};
use datafusion_expr::expr::{AggregateFunction, Alias, Case, Cast, ScalarFunction, Sort, TryCast};
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::utils::merge_schema;
use datafusion_expr::{BinaryExpr, Expr, LogicalPlan, Operator, ScalarUDF};
use datafusion_optimizer::AnalyzerRule;

use crate::expressions::types::type_of;
use crate::rules::canonical_floats::{NAN_FUNCTION, ONE_NAN, is_float};
use crate::rules::operands::map_compared;

/// Makes every NaN that an expression computes the same. Runs after the types are coerced.
#[derive(Debug)]
pub struct OneNan;

impl AnalyzerRule for OneNan {
    fn name(&self) -> &str {
        NAN_FUNCTION
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|node| {
            let schema = merge_schema(&node.inputs());
            let names = NamePreserver::new(&node);
            node.map_expressions(|expression| {
                if matches!(expression, Expr::Column(_)) {
                    return Ok(Transformed::no(expression));
                }
                let name = names.save(&expression);
                let replaced = expression.transform_up(|part| Ok(compared(part, &schema)))?;
                Ok(replaced.update_data(|expression| name.restore(canonical(expression, &schema))))
            })
        })
        .data()
    }
}

/// The expression with the operands that it compares made canonical.
fn compared(expression: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let all = |parts: Vec<Expr>| parts.into_iter().map(|part| canonical(part, schema)).collect();
    Transformed::yes(match expression {
        Expr::ScalarFunction(ScalarFunction { func, args }) if chooses(&func) => {
            Expr::ScalarFunction(ScalarFunction { func, args: all(args) })
        }
        Expr::AggregateFunction(AggregateFunction { func, mut params }) => {
            params.args = all(params.args);
            Expr::AggregateFunction(AggregateFunction { func, params })
        }
        Expr::WindowFunction(mut call) => {
            let params = &mut call.params;
            params.args = all(std::mem::take(&mut params.args));
            params.partition_by = all(std::mem::take(&mut params.partition_by));
            let order = std::mem::take(&mut params.order_by).into_iter();
            let canonical = |sort: Sort| Sort { expr: canonical(sort.expr, schema), ..sort };
            params.order_by = order.map(canonical).collect();
            Expr::WindowFunction(call)
        }
        // A parameter.
        Expr::Literal(ScalarValue::Float64(Some(number)), metadata) if number.is_nan() => {
            Expr::Literal(ScalarValue::Float64(Some(f64::NAN)), metadata)
        }
        Expr::Literal(ScalarValue::Float32(Some(number)), metadata) if number.is_nan() => {
            Expr::Literal(ScalarValue::Float32(Some(f32::NAN)), metadata)
        }
        expression => return map_compared(expression, &|part| canonical(part, schema)),
    })
}

/// Whether a function returns one of its arguments.
fn chooses(function: &ScalarUDF) -> bool {
    matches!(function.name(), "coalesce" | "greatest" | "least" | "nullif")
}

/// The expression, with one NaN if it is a computation of floats.
fn canonical(expression: Expr, schema: &DFSchema) -> Expr {
    let boxed = |part: Box<Expr>| Box::new(canonical(*part, schema));
    match expression {
        Expr::Alias(Alias { expr, relation, name, metadata }) => {
            Expr::Alias(Alias { expr: boxed(expr), relation, name, metadata })
        }
        Expr::Case(Case { expr, when_then_expr, else_expr }) => {
            let branches = when_then_expr.into_iter().map(|(when, then)| (when, boxed(then)));
            let when_then_expr = branches.collect();
            Expr::Case(Case { expr, when_then_expr, else_expr: else_expr.map(boxed) })
        }
        // A NaN passes such an operation as it is.
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if is_arithmetic(op) && (is_number(&left) || is_number(&right)) =>
        {
            Expr::BinaryExpr(BinaryExpr { left: boxed(left), op, right: boxed(right) })
        }
        Expr::Cast(Cast { expr, field }) if !is_text(&expr, schema) => {
            Expr::Cast(Cast { expr: boxed(expr), field })
        }
        Expr::TryCast(TryCast { expr, field }) if !is_text(&expr, schema) => {
            Expr::TryCast(TryCast { expr: boxed(expr), field })
        }
        Expr::ScalarFunction(call) if Arc::ptr_eq(&call.func, &ONE_NAN) || chooses(&call.func) => {
            Expr::ScalarFunction(call)
        }
        Expr::Negative(_)
        | Expr::BinaryExpr(_)
        | Expr::Cast(_)
        | Expr::TryCast(_)
        | Expr::ScalarFunction(_)
            if is_float(&expression, schema) =>
        {
            Expr::ScalarFunction(ScalarFunction::new_udf(ONE_NAN.clone(), vec![expression]))
        }
        expression => expression,
    }
}

fn is_arithmetic(op: Operator) -> bool {
    matches!(op, Operator::Plus | Operator::Minus | Operator::Multiply | Operator::Divide)
}

/// Whether an expression is a finite constant other than zero: infinity and zero make NaNs.
fn is_number(expression: &Expr) -> bool {
    match expression {
        Expr::Cast(Cast { expr, .. }) => is_number(expr),
        Expr::Literal(value, _) if value.data_type().is_numeric() => {
            matches!(value.cast_to(&DataType::Float64), Ok(ScalarValue::Float64(Some(number))) if number.is_finite() && number != 0.0)
        }
        _ => false,
    }
}

fn is_text(expression: &Expr, schema: &DFSchema) -> bool {
    type_of(expression, schema).is_some_and(|of| of.is_string())
}
