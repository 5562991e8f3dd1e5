//! ASOF joins.

use alluvium_sql_planner::relations::asof::{AsofNode, Compared};
use alluvium_sql_syntax::error::Result;
use datafusion_expr::Expr;

use super::{Builder, check_columns};
use crate::IncrementalPlan;

impl Builder<'_> {
    /// An ASOF join.
    pub(super) fn asof_join(&self, node: &AsofNode) -> Result<IncrementalPlan> {
        let Compared { keys, times, nearest } = node.compared()?;
        let (left_keys, right_keys): (Vec<&Expr>, Vec<&Expr>) =
            keys.iter().map(|(left, right)| (left, right)).unzip();
        let of_left: Vec<&Expr> = left_keys.into_iter().chain([&times.0]).collect();
        let of_right: Vec<&Expr> = right_keys.into_iter().chain([&times.1]).collect();
        // A row with a NULL among what is compared has no match.
        let (left, of_left) = self.keyed(&node.left, &of_left, !node.keeps_left)?;
        let (right, of_right) = self.keyed(&node.right, &of_right, true)?;
        check_columns(&left.schema)?;
        check_columns(&right.schema)?;
        let width = left.width();
        let left_columns = 0..node.left.schema().fields().len();
        let right_columns = node.right.schema().fields().len();
        let kept = left_columns.chain((0..right_columns).map(|column| width + column));
        let kept: Vec<usize> = kept.collect();
        let mut on: Vec<(usize, usize)> = of_left.into_iter().zip(of_right).collect();
        let time = on.pop().unwrap_or_default();
        let joined = IncrementalPlan::asof_join(
            left,
            right,
            (on, time),
            node.ties(),
            (nearest, node.keeps_left),
        )?;
        Ok(IncrementalPlan::columns(joined, &kept)?)
    }
}
