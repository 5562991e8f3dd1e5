//! Expressions that DataFusion plans to something else than SQL means.
//!
//! - [`in_syntax`]: `x <op> ANY(list)` is NULL, not false, if only a NULL of the list could decide it; `x <op> ANY('{a,b}')` compares with
//!   the elements of an array of Postgres; a text is cast to BYTEA as Postgres reads it.
//! - [`in_plan`]: `SIMILAR TO` has the patterns of the standard, and no pattern is too long to be compiled; `round(x, n)` has
//!   one type; `-x` of integers does not wrap around.
//! - [`TextToInterval`]: a text without a unit is a number of seconds, `'6'::interval`, as it is in `INTERVAL '6'`.

use std::ops::ControlFlow;
use std::sync::{Arc, LazyLock};

use alluvium_sql_functions::bytea::BYTEA;
use alluvium_sql_functions::with_bounded_pattern;
use alluvium_sql_syntax::syntax::call;
use arrow::array::{ArrayRef, AsArray, IntervalMonthDayNanoArray};
use arrow::compute::cast;
use arrow::compute::kernels::cast_utils::{
    IntervalParseConfig, IntervalUnit as Unit, parse_interval_month_day_nano_config,
};
use arrow::datatypes::{DataType, IntervalUnit};
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::expr::{Cast, ScalarFunction, TryCast};
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::utils::merge_schema;
use datafusion_expr::{
    ColumnarValue, Expr, LogicalPlan, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use datafusion_optimizer::analyzer::AnalyzerRule;
use sqlparser::ast::{self, VisitMut, VisitorMut};

use crate::expressions::array_text;
use crate::expressions::time_arithmetic::negated;
use crate::expressions::types::type_of;

/// Rewrites the syntax of a query.
pub(crate) fn in_syntax<S: VisitMut>(syntax: &mut S) {
    struct AnyOf;
    impl VisitorMut for AnyOf {
        type Break = std::convert::Infallible;

        fn post_visit_expr(&mut self, expression: &mut ast::Expr) -> ControlFlow<Self::Break> {
            if let ast::Expr::Cast { kind, expr, data_type: ast::DataType::Bytea, .. } = expression
                && matches!(kind, ast::CastKind::Cast | ast::CastKind::DoubleColon)
                && !is_parameter(expr)
            {
                let text = std::mem::replace(expr.as_mut(), ast::Expr::value(ast::Value::Null));
                *expression = call(ast::Ident::new(BYTEA.name()), [text]);
                return ControlFlow::Continue(());
            }
            if let Some(compared) = with_elements(expression) {
                *expression = compared;
                return ControlFlow::Continue(());
            }
            let corrected = match &*expression {
                ast::Expr::AnyOp { right, .. } if !matches!(**right, ast::Expr::Subquery(_)) => {
                    or_null(expression, right)
                }
                _ => return ControlFlow::Continue(()),
            };
            *expression = corrected;
            ControlFlow::Continue(())
        }
    }
    let ControlFlow::Continue(()) = syntax.visit(&mut AnyOf);
}

/// Whether an expression is a parameter, which clients send as bytes where these are expected.
fn is_parameter(expression: &ast::Expr) -> bool {
    matches!(expression, ast::Expr::Value(value) if matches!(value.value, ast::Value::Placeholder(_)))
}

/// `x = ANY('{a,b}')` as `x IN ('a', 'b')`, and other comparisons with the elements one by one; `None` if it is no ANY or ALL of an array
/// in a text.
fn with_elements(expression: &ast::Expr) -> Option<ast::Expr> {
    let (left, operator, array, joins, if_empty) = match expression {
        ast::Expr::AnyOp { left, compare_op, right, .. } => {
            (left, compare_op, right, ast::BinaryOperator::Or, false)
        }
        ast::Expr::AllOp { left, compare_op, right } => {
            (left, compare_op, right, ast::BinaryOperator::And, true)
        }
        _ => return None,
    };
    let text = match array.as_ref() {
        ast::Expr::Nested(inner) => inner.as_ref(),
        text => text,
    };
    let ast::Expr::Value(ast::ValueWithSpan { value, span }) = text else { return None };
    let ast::Value::SingleQuotedString(text) = value else { return None };
    let elements = array_text::elements(text)?.into_iter().map(|element| {
        let value = element.map_or(ast::Value::Null, ast::Value::SingleQuotedString);
        ast::Expr::Value(value.with_span(*span))
    });
    if *operator == ast::BinaryOperator::Eq && !if_empty && elements.len() > 0 {
        let (expr, list) = (left.clone(), elements.collect());
        let negated = false;
        return Some(ast::Expr::Nested(Box::new(ast::Expr::InList { expr, list, negated })));
    }
    let compared = elements.map(|right| ast::Expr::BinaryOp {
        left: left.clone(),
        op: operator.clone(),
        right: Box::new(right),
    });
    let joined = compared.reduce(|left, right| ast::Expr::BinaryOp {
        left: Box::new(left),
        op: joins.clone(),
        right: Box::new(right),
    });
    let none = || ast::Expr::Value(ast::Value::Boolean(if_empty).with_span(*span));
    Some(ast::Expr::Nested(Box::new(joined.unwrap_or_else(none))))
}

/// `any OR CASE WHEN array_position(list, NULL) IS NULL THEN FALSE END`: neither copies the other, which would double nested
/// ones at each level.
fn or_null(any: &ast::Expr, list: &ast::Expr) -> ast::Expr {
    let value = |value| ast::Expr::Value(ast::Value::with_empty_span(value));
    let position = call(ast::Ident::new("array_position"), [list.clone(), value(ast::Value::Null)]);
    let no_null = ast::CaseWhen {
        condition: ast::Expr::IsNull(Box::new(position)),
        result: value(ast::Value::Boolean(false)),
    };
    let case = ast::Expr::Case {
        case_token: ast::helpers::attached_token::AttachedToken::empty(),
        end_token: ast::helpers::attached_token::AttachedToken::empty(),
        operand: None,
        conditions: vec![no_null],
        else_result: None,
    };
    ast::Expr::Nested(Box::new(ast::Expr::BinaryOp {
        left: Box::new(any.clone()),
        op: ast::BinaryOperator::Or,
        right: Box::new(case),
    }))
}

/// The plan with other expressions.
pub(crate) fn in_plan(plan: LogicalPlan) -> Result<LogicalPlan> {
    let corrected = plan.transform_up_with_subqueries(|node| {
        let schema = merge_schema(&node.inputs());
        let names = NamePreserver::new(&node);
        node.map_expressions(|expression| {
            let name = names.save(&expression);
            let corrected = in_expression(expression)?.transform_data(|expression| {
                expression.transform_up(|part| Ok(negated(part, &schema)))
            })?;
            Ok(corrected.update_data(|expression| name.restore(expression)))
        })
    })?;
    Ok(corrected.data)
}

/// An expression with other parts.
pub(crate) fn in_expression(expression: Expr) -> Result<Transformed<Expr>> {
    expression
        .transform_up(with_bounded_pattern)?
        .transform_data(|expression| expression.transform_up(with_short_places))
}

/// `round(x, n)` or `trunc(x, n)` with an `n` that needs no cast. A DECIMAL has another type where `n` is no literal, which the cast would make
/// it until the plan is simplified.
fn with_short_places(part: Expr) -> Result<Transformed<Expr>> {
    let Expr::ScalarFunction(mut round) = part else { return Ok(Transformed::no(part)) };
    let number = |expression: &Expr| match expression {
        Expr::Literal(ScalarValue::Int64(Some(number)), _) => i32::try_from(*number).ok(),
        _ => None,
    };
    let places = match &round.args[..] {
        [_, Expr::Negative(places)] if is_rounding(&round) => number(places).map(|number| -number),
        [_, places] if is_rounding(&round) => number(places),
        _ => None,
    };
    let Some(places) = places else {
        return Ok(Transformed::no(Expr::ScalarFunction(round)));
    };
    round.args[1] = Expr::Literal(ScalarValue::Int32(Some(places)), None);
    Ok(Transformed::yes(Expr::ScalarFunction(round)))
}

fn is_rounding(call: &ScalarFunction) -> bool {
    matches!(call.func.name(), "round" | "trunc")
}

/// Replaces casts of texts to intervals. Runs when the types are coerced.
#[derive(Debug)]
pub struct TextToInterval;

impl AnalyzerRule for TextToInterval {
    fn name(&self) -> &str {
        "text_to_interval"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|node| {
            let schema = merge_schema(&node.inputs());
            let names = NamePreserver::new(&node);
            node.map_expressions(|expression| {
                let name = names.save(&expression);
                let replaced = expression.transform_up(|part| {
                    let (text, field, function) = match &part {
                        Expr::Cast(Cast { expr, field }) => (expr, field, &INTERVAL),
                        Expr::TryCast(TryCast { expr, field }) => (expr, field, &TRY_INTERVAL),
                        _ => return Ok(Transformed::no(part)),
                    };
                    if !matches!(field.data_type(), DataType::Interval(_))
                        || !type_of(text, &schema).is_some_and(|kind| kind.is_string())
                    {
                        return Ok(Transformed::no(part));
                    }
                    let call = ScalarFunction::new_udf((*function).clone(), vec![*text.clone()]);
                    Ok(Transformed::yes(Expr::ScalarFunction(call)))
                })?;
                Ok(replaced.update_data(|expression| name.restore(expression)))
            })
        })
        .map(|plan| plan.data)
    }
}

static INTERVAL: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Interval::function(false));
static TRY_INTERVAL: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Interval::function(true));

/// The interval that a text is; NULL for other texts if `or_null`.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Interval {
    or_null: bool,
    signature: Signature,
}

impl Interval {
    fn function(or_null: bool) -> Arc<ScalarUDF> {
        let signature = Signature::string(1, Volatility::Immutable);
        Arc::new(ScalarUDF::from(Interval { or_null, signature }))
    }
}

impl ScalarUDFImpl for Interval {
    fn name(&self) -> &str {
        if self.or_null { "try_text_to_interval" } else { "text_to_interval" }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Interval(IntervalUnit::MonthDayNano))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let seconds = IntervalParseConfig::new(Unit::Second);
        let interval = |text: &str| match parse_interval_month_day_nano_config(
            text.trim_ascii(),
            seconds.clone(),
        ) {
            Ok(interval) => Ok(Some(interval)),
            Err(_) if self.or_null => Ok(None),
            Err(error) => Err(error),
        };
        match &arguments.args[0] {
            ColumnarValue::Scalar(text) => {
                let text = text.try_as_str().flatten();
                let value = text.map(interval).transpose()?.flatten();
                Ok(ColumnarValue::Scalar(ScalarValue::IntervalMonthDayNano(value)))
            }
            ColumnarValue::Array(texts) => {
                let texts: ArrayRef = cast(texts, &DataType::Utf8)?;
                let values = texts.as_string::<i32>().iter().map(|text| match text {
                    Some(text) => interval(text),
                    None => Ok(None),
                });
                let values: std::result::Result<IntervalMonthDayNanoArray, _> = values.collect();
                Ok(ColumnarValue::Array(Arc::new(values?)))
            }
        }
    }
}
