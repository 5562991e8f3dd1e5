//! Operators that DataFusion's planner does not have, or has with another meaning.

use std::sync::Arc;

use alluvium_sql_functions::FUNCTIONS;
use alluvium_sql_functions::duckdb::{EXTRACT, EXTRACT_TEXT};
use alluvium_sql_syntax::syntax::{DOUBLE, NAMED, NEGATED};
use arrow::datatypes::DataType;
use datafusion_common::{Column, DFSchema, ExprSchema, Result, ScalarValue, plan_datafusion_err};
use datafusion_expr::expr::{Cast, ScalarFunction};
use datafusion_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion_expr::{Expr, ExprSchemable, lit};
use sqlparser::ast::BinaryOperator;

use crate::expressions::{array_text, time_arithmetic};

/// The key of the metadata of columns of names of objects, under which stands the name of none: statements may write it as the number
/// zero, as if the names were identifiers.
pub const NAME_OF_NONE: &str = "alluvium.name_of_none";

/// The key of the metadata of results of functions that show the object of a number, their first argument, as a name, and give the number of a
/// name.
pub const REFERENCE: &str = "alluvium.reference";

/// Plans numbers that are DOUBLE, names of columns that may be those of others, `^`, which is the power in DOUBLE, `->` and `->>`
/// of JSON, arithmetic with times, and comparisons of lists with texts, of [names](NAME_OF_NONE) with zero,
/// and of references with each other.
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
            (
                BinaryOperator::Eq
                | BinaryOperator::NotEq
                | BinaryOperator::Lt
                | BinaryOperator::LtEq
                | BinaryOperator::Gt
                | BinaryOperator::GtEq,
                _,
            ) => {
                let raw = with_references(with_names(raw, schema), schema);
                Ok(PlannerResult::Original(with_lists(raw, schema)))
            }
            _ => Ok(PlannerResult::Original(raw)),
        }
    }
}

/// The comparison of a name with the number zero as one with the name that stands for it.
fn with_names(mut raw: RawBinaryExpr, schema: &DFSchema) -> RawBinaryExpr {
    let none = |expression: &Expr| match expression {
        Expr::Column(column) => {
            let field = schema.field_from_column(column).ok()?;
            field.metadata().get(NAME_OF_NONE).cloned()
        }
        _ => None,
    };
    let (left, right) = (none(&raw.left), none(&raw.right));
    let zero = Expr::Literal(ScalarValue::Int64(Some(0)), None);
    let put = |expression: &mut Expr, name: Option<String>| {
        if let Some(name) = name.filter(|_| *expression == zero) {
            *expression = lit(name);
        }
    };
    put(&mut raw.left, right);
    put(&mut raw.right, left);
    raw
}

/// A text that is an array of Postgres, as a list of texts.
fn of_postgres(text: &Expr) -> Option<Expr> {
    let Expr::Literal(ScalarValue::Utf8(Some(text)), _) = text else { return None };
    let elements: Vec<ScalarValue> =
        array_text::elements(text)?.into_iter().map(ScalarValue::Utf8).collect();
    let list = ScalarValue::new_list(&elements, &DataType::Utf8, true);
    Some(lit(ScalarValue::List(list)))
}

/// The comparison of two references by one function, of which one is shown as a name and the other is a number, as one of numbers:
/// `x::regclass = 't'::regclass`. The name is that of the function's first argument.
fn with_references(mut raw: RawBinaryExpr, schema: &DFSchema) -> RawBinaryExpr {
    let (Expr::ScalarFunction(left), Expr::ScalarFunction(right)) = (&raw.left, &raw.right) else {
        return raw;
    };
    if left.name() != right.name() {
        return raw;
    }
    let number = |side: &Expr, call: &ScalarFunction| {
        let (_, field) = side.to_field(schema).ok()?;
        let is_name = field.data_type().is_string() && field.metadata().contains_key(REFERENCE);
        call.args.first().filter(|_| is_name).cloned()
    };
    match (number(&raw.left, left), number(&raw.right, right)) {
        (Some(number), None) => raw.left = number,
        (None, Some(number)) => raw.right = number,
        _ => {}
    }
    raw
}

/// The comparison with a text that is written beside a list read as one.
fn with_lists(mut raw: RawBinaryExpr, schema: &DFSchema) -> RawBinaryExpr {
    let list = |expression: &Expr| {
        expression.get_type(schema).ok().filter(|it| matches!(it, DataType::List(_)))
    };
    let (left, right) = (list(&raw.left), list(&raw.right));
    let read = |expression: &mut Expr, list: Option<DataType>| {
        if let (Expr::Literal(ScalarValue::Utf8(Some(_)), _), Some(list)) = (&*expression, list) {
            let text = match of_postgres(expression) {
                Some(array) => array,
                None => std::mem::replace(expression, lit(ScalarValue::Null)),
            };
            *expression = Expr::Cast(Cast::new(Box::new(text), list));
        }
    };
    read(&mut raw.left, right);
    read(&mut raw.right, left);
    raw
}
