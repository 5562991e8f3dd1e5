//! WITH RECURSIVE.

use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_expr::LogicalPlan;
use datafusion_expr::logical_plan::RecursiveQuery;

use super::{Builder, check_columns, with_column_types};
use crate::error::{Error, Result};
use crate::plan::{IncrementalPlan, Node};
use crate::planner::RECURSION_LIMIT;
use crate::planner::recursion::{WorkTable, work_table};

/// The rows of a recursion whose step is being built.
pub(super) struct Recurring {
    name: String,
    rows: IncrementalPlan,
}

impl Builder<'_> {
    pub(super) fn recursion(&self, query: &RecursiveQuery) -> Result<IncrementalPlan> {
        let base = with_column_types(self.build(&query.static_term)?)?;
        check_columns(&base.schema)?;
        if base.recurs() {
            return self.refuse_in_step(&query.name, "another recursion over its rows");
        }
        let (mut limit, mut columns) = (RECURSION_LIMIT, None);
        query.recursive_term.apply(|node| {
            if let LogicalPlan::TableScan(scan) = node
                && let Some(table) = work_table(scan.source.as_ref())
                && table.name() == query.name
            {
                (limit, columns) = (table.limit(), Some(table.columns().clone()));
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        // A step that does not refer to the rows, as where a condition is never true, adds rows once.
        let columns = columns.unwrap_or_else(|| base.schema.clone());
        let rows = IncrementalPlan::recurrence(&query.name, &base, columns, query.is_distinct);
        let name = query.name.clone();
        let around = self.recurring.replace(Some(Recurring { name: name.clone(), rows }));
        let step = self.build(&query.recursive_term);
        self.recurring.replace(around);
        let mut step = with_column_types(step?)?;
        if query.is_distinct {
            step.drop_distinct();
        }
        if let Some(what) = step.stays_out_of_rounds() {
            return self.refuse_in_step(&name, what);
        }
        Ok(IncrementalPlan::recursion(name, base, step, query.is_distinct, limit)?)
    }

    /// The rows of the recursion that is being built.
    pub(super) fn recurrence(&self, table: &WorkTable) -> Result<IncrementalPlan> {
        match &*self.recurring.borrow() {
            Some(recurring) if recurring.name == table.name() => Ok(recurring.rows.clone()),
            _ => self.refuse_in_step(table.name(), "another recursion over its rows"),
        }
    }

    fn refuse_in_step<T>(&self, name: &str, what: &str) -> Result<T> {
        let message = format!(
            "{what} in the recursive part of \"{name}\" in a view (it may have filters, expressions, inner joins, UNION and \
             UNNEST of its rows)"
        );
        Err(Error::not_supported(message, self.landmarks.recursion.or(self.landmarks.start)))
    }
}

impl IncrementalPlan {
    /// Leaves out DISTINCT of rows that recur. In a recursion by UNION it does not matter how often a row is made.
    fn drop_distinct(&mut self) {
        if !self.recurs() {
            return;
        }
        while let Node::Distinct(distinct) = &self.node {
            *self = distinct.input.as_ref().clone();
        }
        self.inputs_mut().into_iter().for_each(IncrementalPlan::drop_distinct);
    }

    /// What in the step of a recursion cannot be there, because more rows can take rows away.
    fn stays_out_of_rounds(&self) -> Option<&'static str> {
        if !self.recurs() {
            return None;
        }
        if self.node.as_node().in_rounds().is_none() {
            return Some(match &self.node {
                Node::Aggregate(_) => "GROUP BY, or an aggregate,",
                Node::Top(_) => "LIMIT, DISTINCT ON or a bounded row number",
                Node::Window(_) => "a window function",
                Node::Session(_) => "SESSION",
                Node::Distinct(_) => "DISTINCT",
                Node::SetOperation(_) => "INTERSECT or EXCEPT",
                Node::OuterJoin(_) => "an outer join, or IN or EXISTS of a subquery,",
                Node::AsofJoin(_) => "an ASOF join",
                Node::TemporalFilter(_) => "a comparison of its rows with NOW()",
                Node::Recursion(_) => "another recursion over its rows",
                _ => "this",
            });
        }
        self.inputs().into_iter().find_map(IncrementalPlan::stays_out_of_rounds)
    }
}
