//! The expressions that maps evaluate.

use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::Operator;
use datafusion_physical_expr::expressions::{
    BinaryExpr, CaseExpr, CastExpr, Column, IsNotNullExpr, IsNullExpr, Literal, NegativeExpr,
    NotExpr,
};
use datafusion_physical_expr::{PhysicalExpr, ScalarFunctionExpr};

use alluvium_sql_functions::FUNCTIONS;
use alluvium_sql_planner::rules::canonical_floats::NAN_FUNCTION;
use alluvium_sql_syntax::options::OPTIONS;

/// A physical expression.
pub(crate) type Expression = Arc<dyn PhysicalExpr>;

/// `value - by`, which fails on overflow.
pub(crate) fn less(value: Expression, by: ScalarValue) -> Expression {
    let by: Expression = Arc::new(Literal::new(by));
    Arc::new(BinaryExpr::new(value, Operator::Minus, by).with_fail_on_overflow(true))
}

/// Column `index` of `schema`.
pub(crate) fn column(schema: &Schema, index: usize) -> Expression {
    Arc::new(Column::new(schema.field(index).name(), index))
}

/// The column that an expression passes through unchanged, if it does.
pub(crate) fn as_column(expression: &Expression) -> Option<usize> {
    expression.downcast_ref::<Column>().map(Column::index)
}

/// The first element of a list, over rows of `schema`.
pub(crate) fn first_element(list: Expression, schema: &Schema) -> Option<Expression> {
    let function = Arc::clone(FUNCTIONS.scalar.get("array_element")?);
    let first: Expression = Arc::new(Literal::new(ScalarValue::Int64(Some(1))));
    let element =
        ScalarFunctionExpr::try_new(function, vec![list, first], schema, Arc::clone(&OPTIONS));
    Some(Arc::new(element.ok()?))
}

/// Whether evaluating an expression twice costs no more than evaluating it once.
pub(crate) fn is_free(expression: &Expression) -> bool {
    expression.is::<Column>() || expression.is::<Literal>()
}

/// `left AND right`, evaluated in this order: where `left` is false, `right` cannot fail.
pub(crate) fn and(left: Option<Expression>, right: Option<Expression>) -> Option<Expression> {
    match (left, right) {
        (Some(left), Some(right)) => Some(Arc::new(BinaryExpr::new(left, Operator::And, right))),
        (left, right) => left.or(right),
    }
}

/// `value` where `condition` is true, and NULL elsewhere, where `value` is not evaluated.
pub(crate) fn when(condition: Expression, value: Expression) -> Result<Expression> {
    Ok(Arc::new(CaseExpr::try_new(None, vec![(condition, value)], None)?))
}

/// Whether `condition` is true, over rows of `schema`; never NULL.
pub(crate) fn is_true(condition: Expression, schema: &Schema) -> Result<Expression> {
    if !is_nullable(&condition, schema)? {
        return Ok(condition);
    }
    let yes: Expression = Arc::new(Literal::new(ScalarValue::from(true)));
    Ok(Arc::new(BinaryExpr::new(condition, Operator::IsNotDistinctFrom, yes)))
}

/// Calls `visit` with every column that an expression uses, once for each use.
pub(crate) fn for_each_column(expression: &Expression, visit: &mut impl FnMut(usize)) {
    let walked = expression.apply(|node| {
        if let Some(column) = as_column(node) {
            visit(column);
        }
        Ok(TreeNodeRecursion::Continue)
    });
    debug_assert!(walked.is_ok(), "the visitor does not fail");
}

/// The expression with each column replaced.
pub(crate) fn replace_columns(
    expression: Expression,
    replace: impl Fn(usize) -> Expression,
) -> Result<Expression> {
    let replaced = expression.transform_up(|node| match as_column(&node) {
        Some(column) => Ok(Transformed::yes(replace(column))),
        None => Ok(Transformed::no(node)),
    })?;
    Ok(replaced.data)
}

/// Whether a value of the expression can be NULL, over rows of `schema`.
///
/// Other expressions than the strict ones count as nullable: a wrong `false` would make a batch invalid.
pub(crate) fn is_nullable(expression: &Expression, schema: &Schema) -> Result<bool> {
    Ok(!is_strict(expression) || expression.nullable(schema)?)
}

/// Whether an expression consists of columns, literals, and operators that return NULL only for NULL.
fn is_strict(expression: &Expression) -> bool {
    let mut strict = true;
    let walked = expression.apply(|node| {
        strict &= is_free(node)
            || node.is::<CastExpr>()
            || node.is::<BinaryExpr>()
            || node.is::<NegativeExpr>()
            || node.is::<NotExpr>()
            || node.is::<IsNullExpr>()
            || node.is::<IsNotNullExpr>()
            || is_one_nan(node);
        Ok(if strict { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    });
    walked.is_ok() && strict
}

fn is_one_nan(expression: &Expression) -> bool {
    expression.downcast_ref::<ScalarFunctionExpr>().is_some_and(|call| call.name() == NAN_FUNCTION)
}

/// `expression IS NOT NULL`. Casts are skipped: they return NULL only for NULL, and need not be evaluated.
pub(crate) fn is_not_null(expression: &Expression) -> Expression {
    let mut inner = expression;
    while let Some(cast) = inner.downcast_ref::<CastExpr>() {
        inner = cast.expr();
    }
    Arc::new(IsNotNullExpr::new(Arc::clone(inner)))
}
