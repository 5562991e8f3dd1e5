//! Queries of views as other databases read them.

use std::ops::ControlFlow;

use alluvium_sql::syntax::NEGATED;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Query, UnaryOperator, Value, visit_expressions_mut,
};

/// A query without the operator that stands for the negation of what may be a difference of times.
pub(crate) fn in_words_of_others(query: &Query) -> String {
    let mut query = query.clone();
    let _: ControlFlow<()> = visit_expressions_mut(&mut query, |expression| {
        if let Expr::BinaryOp { left, op: BinaryOperator::Custom(operator), .. } = expression
            && operator == NEGATED
        {
            let null = Expr::Value(Value::Null.with_empty_span());
            let expr = Box::new(std::mem::replace(left.as_mut(), null));
            *expression = Expr::UnaryOp { op: UnaryOperator::Minus, expr };
        }
        ControlFlow::Continue(())
    });
    query.to_string()
}
