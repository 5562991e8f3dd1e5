//! How large a plan is, with the views that it expands.
//!
//! A view that reads another twice, ten times over, is a plan of a thousand copies: so plans are measured before anything
//! walks them.

use alluvium_sql_syntax::error::{Error, Result};
use alluvium_sql_syntax::stack::DEEPEST_PLAN;
use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_expr::{Expr, LogicalPlan};

use crate::catalog::Relation;
use crate::relations::relation::source_of;

/// The largest number of operations of a plan.
const MOST: usize = 10_000;

/// The size of a plan, with the views that it expands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// The levels of operations and of their expressions, one above the other.
    pub levels: usize,
    /// The number of operations.
    pub operations: usize,
}

impl Extent {
    /// The extent of a plan.
    ///
    /// # Errors
    /// If the plan has more levels or operations than plans can have.
    pub fn of(plan: &LogicalPlan) -> Result<Extent> {
        let mut extent = Extent::default();
        extent.measure(plan, 0)?;
        Ok(extent)
    }

    /// The extent of two plans beside each other.
    ///
    /// # Errors
    /// As [`Extent::of`].
    pub fn beside(mut self, other: Extent) -> Result<Extent> {
        self.add(other.levels, other.operations)?;
        Ok(self)
    }

    /// Adds a plan that is below `above` levels.
    fn measure(&mut self, plan: &LogicalPlan, above: usize) -> Result<()> {
        let mut rest = vec![(plan, above)];
        while let Some((node, above)) = rest.pop() {
            let mut level = above + 1;
            let mut measured = Ok(());
            node.apply_expressions(|expression| {
                let levels = self.expression(expression, above);
                measured = levels.map(|levels| level = level.max(above + 1 + levels));
                Ok(match measured {
                    Ok(()) => TreeNodeRecursion::Continue,
                    Err(_) => TreeNodeRecursion::Stop,
                })
            })?;
            measured?;
            self.add(level, 1)?;
            rest.extend(node.inputs().into_iter().map(|input| (input, level)));
            if let LogicalPlan::TableScan(scan) = node
                && let Some(source) = source_of(scan.source.as_ref())
            {
                match source.relation() {
                    Relation::View { extent: view, .. } => {
                        self.add(level + view.levels, view.operations)?;
                    }
                    Relation::Declared { recursion: Some(recursion), .. } => {
                        let extent = recursion.extent;
                        self.add(level + extent.levels, extent.operations)?;
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// The levels of an expression, whose subqueries are added.
    pub(crate) fn expression(&mut self, expression: &Expr, above: usize) -> Result<usize> {
        let mut levels = 0;
        let mut rest = vec![(expression, 1)];
        while let Some((expression, level)) = rest.pop() {
            levels = levels.max(level);
            let subquery = match expression {
                Expr::ScalarSubquery(subquery) => Some(subquery),
                Expr::Exists(exists) => Some(&exists.subquery),
                Expr::InSubquery(query) => Some(&query.subquery),
                Expr::SetComparison(comparison) => Some(&comparison.subquery),
                _ => None,
            };
            if let Some(subquery) = subquery {
                self.measure(&subquery.subquery, above + level)?;
            }
            expression.apply_children(|part| {
                rest.push((part, level + 1));
                Ok(TreeNodeRecursion::Continue)
            })?;
        }
        Ok(levels)
    }

    fn add(&mut self, level: usize, operations: usize) -> Result<()> {
        self.levels = self.levels.max(level);
        self.operations += operations;
        let views = "views that are not materialized count with all that they read: materialize one of them";
        if self.levels > DEEPEST_PLAN {
            let message = format!("the plan is more than {DEEPEST_PLAN} levels deep; {views}");
            return Err(Error::new(message, None));
        }
        if self.operations > MOST {
            let message = format!("the plan has more than {MOST} operations; {views}");
            return Err(Error::new(message, None));
        }
        Ok(())
    }
}
