//! Lower bounds of pairs of rows.

use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion_expr::Operator;
use datafusion_physical_expr::expressions::BinaryExpr;

use super::{LowerBounds, infer, least};
use crate::plan::expression::{self, Expression};

/// The lower bounds of the columns of pairs of a left and a right row, left ones first.
pub(crate) struct PairBounds {
    /// Of the pairs that a change of a left row makes or ends.
    pub(crate) by_left: LowerBounds,
    /// Of those that a change of a right row makes or ends.
    pub(crate) by_right: LowerBounds,
}

impl PairBounds {
    /// Of pairs that agree on the columns `on` and for which `conditions` are true; `schema` has the columns of both sides.
    pub(crate) fn new(
        left: LowerBounds,
        right: LowerBounds,
        on: &[(usize, usize)],
        schema: &Schema,
        conditions: &[Expression],
    ) -> Self {
        let width = left.len();
        let equal = on.iter().map(|&(l, r)| {
            let (l, r) = (expression::column(schema, l), expression::column(schema, width + r));
            Arc::new(BinaryExpr::new(l, Operator::Eq, r)) as Expression
        });
        let conditions: Vec<Expression> = equal.chain(conditions.iter().cloned()).collect();
        let unknown = |bounds: &LowerBounds| -> LowerBounds {
            let reason =
                |bound: &Result<_, _>| Err(bound.clone().err().unwrap_or_else(super::other_side));
            bounds.iter().map(reason).collect()
        };
        let mut by_left: LowerBounds = left.iter().cloned().chain(unknown(&right)).collect();
        let mut by_right: LowerBounds = unknown(&left).into_iter().chain(right).collect();
        infer(&mut by_left, schema, &conditions);
        infer(&mut by_right, schema, &conditions);
        Self { by_left, by_right }
    }

    /// Of all pairs that are made or end.
    pub(crate) fn of_all(&self) -> LowerBounds {
        self.by_left.iter().zip(&self.by_right).map(|(l, r)| least(l, r)).collect()
    }
}
