//! Which expressions can fail.

use std::sync::Arc;

use datafusion_expr::Operator;
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_expr::expressions::{
    BinaryExpr, CaseExpr, Column, InListExpr, IsNotNullExpr, IsNullExpr, LikeExpr, Literal,
    NotExpr, TryCastExpr,
};

/// Whether `expression` may fail for some row.
///
/// True when in doubt: arithmetic, casts and functions count as fallible, whatever their types.
pub fn can_fail(expression: &Arc<dyn PhysicalExpr>) -> bool {
    !is_total(expression) || expression.children().into_iter().any(can_fail)
}

/// Whether the expression has a value for any values of its children. False when in doubt, as [`can_fail`] says it.
pub fn is_total(expression: &Arc<dyn PhysicalExpr>) -> bool {
    if let Some(binary) = expression.downcast_ref::<BinaryExpr>() {
        return matches!(
            binary.op(),
            Operator::Eq
                | Operator::NotEq
                | Operator::Lt
                | Operator::LtEq
                | Operator::Gt
                | Operator::GtEq
                | Operator::And
                | Operator::Or
                | Operator::IsDistinctFrom
                | Operator::IsNotDistinctFrom
        );
    }
    if let Some(like) = expression.downcast_ref::<LikeExpr>() {
        // A pattern that differs by row may be invalid.
        return like.pattern().is::<Literal>();
    }
    expression.is::<Column>()
        || expression.is::<Literal>()
        || expression.is::<NotExpr>()
        || expression.is::<IsNullExpr>()
        || expression.is::<IsNotNullExpr>()
        || expression.is::<InListExpr>()
        || expression.is::<CaseExpr>()
        || expression.is::<TryCastExpr>()
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::DataType;
    use datafusion_physical_expr::expressions::{CastExpr, TryCastExpr, lit};

    use super::*;

    #[test]
    fn comparisons_cannot_fail_and_arithmetic_can() {
        let column = || Arc::new(Column::new("a", 0)) as Arc<dyn PhysicalExpr>;
        let binary = |left, operator, right| {
            Arc::new(BinaryExpr::new(left, operator, right)) as Arc<dyn PhysicalExpr>
        };
        let is_less = binary(column(), Operator::Lt, lit(5_i64));
        let sum = binary(column(), Operator::Plus, lit(5_i64));
        assert!(!can_fail(&is_less));
        assert!(!can_fail(&binary(is_less.clone(), Operator::And, is_less.clone())));
        assert!(can_fail(&sum));
        assert!(can_fail(&binary(is_less, Operator::Or, binary(sum, Operator::Eq, lit(1_i64)))));
        let cast: Arc<dyn PhysicalExpr> = Arc::new(CastExpr::new(column(), DataType::Int64, None));
        let try_cast: Arc<dyn PhysicalExpr> = Arc::new(TryCastExpr::new(column(), DataType::Int64));
        assert!(can_fail(&cast));
        assert!(!can_fail(&try_cast));
    }
}
