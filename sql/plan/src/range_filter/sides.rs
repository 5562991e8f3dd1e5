//! The two sides of a join that a filter compares.

use std::collections::BTreeSet;
use std::sync::Arc;

use alluvium_dataflow::joins::outer_join::OuterJoinKind;
use alluvium_sql_planner::rules::equality::compares_by_bytes;
use arrow::datatypes::{DataType, Schema};
use datafusion_common::Result;
use datafusion_expr::Operator;
use datafusion_physical_expr::expressions::BinaryExpr;

use crate::expression::{self, Expression};
use crate::node::Side;
use crate::{IncrementalPlan, Node};

/// The sides of a join, of which one has the ends of a range.
pub(super) struct Sides<'a> {
    /// The rows that are compared.
    pub(super) left: &'a IncrementalPlan,
    /// The rows that have the ends.
    pub(super) right: &'a IncrementalPlan,
    pub(super) on: Vec<(usize, usize)>,
    /// Whether the left side is the second one of the join.
    pub(super) is_swapped: bool,
    /// Whether left rows without a right one are kept, with NULLs.
    pub(super) keeps_left: bool,
    /// The columns of the join.
    pub(super) schema: &'a Schema,
}

impl<'a> Sides<'a> {
    /// The sides of a join, with the ends on either side; none if it is no inner join, and does not only keep left rows besides, or if it
    /// forgets rows.
    pub(super) fn of_join(join: &'a IncrementalPlan) -> Vec<Self> {
        let (left, right, on, retention, keeps_left) = match &join.node {
            Node::Join(join) => (&join.left, &join.right, &join.on, &join.retention, false),
            Node::OuterJoin(join)
                if join.kind == OuterJoinKind::Left && join.residual.is_none() =>
            {
                (&join.left, &join.right, &join.on, &join.retention, true)
            }
            _ => return Vec::new(),
        };
        let is_pruned = retention.0.column().is_some() || retention.1.column().is_some();
        if is_pruned || left.is_clock() || right.is_clock() {
            return Vec::new();
        }
        let (on, is_swapped, schema) = (on.clone(), false, &*join.schema);
        let sides = Self { left, right, on, is_swapped, keeps_left, schema };
        if keeps_left {
            return vec![sides];
        }
        let on = sides.on.iter().map(|&(l, r)| (r, l)).collect();
        let swapped = Self { left: right, right: left, on, is_swapped: true, keeps_left, schema };
        vec![sides, swapped]
    }

    /// The side of a column of the join, and its place there.
    pub(super) fn find(&self, column: usize) -> (Side, usize) {
        let first = if self.is_swapped { self.right.width() } else { self.left.width() };
        let (own, other) = match self.is_swapped {
            false => (Side::Left, Side::Right),
            true => (Side::Right, Side::Left),
        };
        match column.checked_sub(first) {
            None => (own, column),
            Some(column) => (other, column),
        }
    }

    /// The side whose columns an expression uses, if it uses those of one side only.
    pub(super) fn of(&self, expression: &Expression) -> Option<Side> {
        let (mut left, mut right) = (false, false);
        expression::for_each_column(expression, &mut |column| match self.find(column).0 {
            Side::Left => left = true,
            Side::Right => right = true,
        });
        match (left, right) {
            (true, false) => Some(Side::Left),
            (false, true) => Some(Side::Right),
            _ => None,
        }
    }

    /// The expression, which uses columns of one side only, over those of that side.
    pub(super) fn on_side(
        &self,
        expression: Expression,
        side: &IncrementalPlan,
    ) -> Result<Expression> {
        expression::replace_columns(expression, |column| {
            expression::column(&side.schema, self.find(column).1)
        })
    }

    /// The columns of one side that an expression uses.
    pub(super) fn used(&self, expression: &Expression, side: Side, used: &mut BTreeSet<usize>) {
        expression::for_each_column(expression, &mut |column| {
            used.extend(
                Some(self.find(column)).filter(|found| found.0 == side).map(|found| found.1),
            );
        });
    }

    /// The comparison of something of a left row with something of a right one that a condition is: what is compared, over the columns
    /// of the join, and how the left one compares.
    pub(super) fn comparison(
        &self,
        condition: &Expression,
    ) -> Option<(Expression, Operator, Expression)> {
        let binary = condition.downcast_ref::<BinaryExpr>()?;
        let (left, operator, right) = match self.of(binary.left())? {
            Side::Left => (binary.left(), *binary.op(), binary.right()),
            Side::Right => (binary.right(), binary.op().swap()?, binary.left()),
        };
        let is_range =
            matches!(operator, Operator::Gt | Operator::GtEq | Operator::Lt | Operator::LtEq);
        if !is_range || self.of(left) != Some(Side::Left) || self.of(right) != Some(Side::Right) {
            return None;
        }
        let data_type = left.data_type(self.schema).ok()?;
        let is_same = right.data_type(self.schema).is_ok_and(|other| other == data_type);
        (is_same && is_comparable(&data_type))
            .then(|| (Arc::clone(left), operator, Arc::clone(right)))
    }
}

/// Whether values of a type compare in SQL as they sort.
fn is_comparable(data_type: &DataType) -> bool {
    data_type.is_floating() || compares_by_bytes(data_type)
}
