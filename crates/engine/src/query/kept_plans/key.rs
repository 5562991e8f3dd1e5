//! Keys whose values the filters of a plan tell.

use alluvium_sql::planner::fit;
use datafusion::common::Column;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use datafusion::scalar::ScalarValue;

use crate::error::Result;

/// The column that a condition compares for equality, and with what.
pub(super) fn equality(condition: &Expr) -> Option<(&Column, &Expr)> {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = condition else {
        return None;
    };
    match (left.as_ref(), right.as_ref()) {
        (Expr::Column(column), value) | (value, Expr::Column(column)) => Some((column, value)),
        _ => None,
    }
}

/// The values of a key whose parts are constants and parameters; `None` if one of them is NULL, or a part is something else.
pub(super) fn key_values(key: &[Expr], given: &[ScalarValue]) -> Result<Option<Vec<ScalarValue>>> {
    let value = |part: &Expr| match part {
        Expr::Literal(value, _) => Ok(value.clone()),
        Expr::Placeholder(parameter) => Ok(fit(parameter, given)?),
        _ => Ok(ScalarValue::Null),
    };
    let values = key.iter().map(value).collect::<Result<Vec<_>>>()?;
    Ok((!values.iter().any(ScalarValue::is_null)).then_some(values))
}
