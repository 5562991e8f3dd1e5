//! Lower bounds of pairs of rows.

use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion_expr::Operator;
use datafusion_physical_expr::expressions::BinaryExpr;

use super::{LowerBound, LowerBounds, Reason, infer, least};
use crate::expression::{self, Expression};

type Bound = Result<LowerBound, Reason>;

/// The lower bounds of the columns of pairs of a left and a right row, left ones first.
pub(crate) struct PairBounds {
    /// The bounds of the pairs that a change of a left row makes or ends.
    pub(crate) by_left: LowerBounds,
    /// The bounds of the pairs that a change of a right row makes or ends.
    pub(crate) by_right: LowerBounds,
    /// The number of left columns.
    width: usize,
}

impl PairBounds {
    /// The bounds of pairs that agree on the columns `on` and for which `conditions` are true; `schema` has the columns of both
    /// sides.
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
        let unknown = |bounds: &LowerBounds| vec![Err(super::other_side()); bounds.len()];
        let mut by_left: LowerBounds = left.iter().cloned().chain(unknown(&right)).collect();
        let mut by_right: LowerBounds = unknown(&left).into_iter().chain(right).collect();
        infer(&mut by_left, schema, &conditions);
        infer(&mut by_right, schema, &conditions);
        Self { by_left, by_right, width }
    }

    /// The bounds of all pairs that are made or end.
    pub(crate) fn of_all(&self) -> LowerBounds {
        let pairs = self.by_left.iter().zip(&self.by_right).enumerate();
        let bound = |(column, (left, right)): (usize, (&Bound, &Bound))| {
            // A side's own reason is the first thing to mend.
            match right {
                Err(reason) if column >= self.width => Err(reason.clone()),
                _ => least(left, right),
            }
        };
        pairs.map(bound).collect()
    }
}
