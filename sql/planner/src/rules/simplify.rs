//! Simplification that stays in bounds.
//!
//! DataFusion's simplifier writes `x BETWEEN a AND b` as `x >= a AND x <= b`, and has such forms of COALESCE, of short lists of
//! IN and of CASE: they copy an operand. Where these nest, the expression doubles with each level.

use alluvium_sql_syntax::error::Error;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{DataFusionError, Result};
use datafusion_expr::expr::{Between, Case, InList};
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::utils::merge_schema;
use datafusion_expr::{Expr, LogicalPlan};
use datafusion_optimizer::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};
use datafusion_optimizer::simplify_expressions::SimplifyExpressions;

use crate::rules::whole_days;

/// The largest number of parts that an expression may become.
const MOST_PARTS: usize = 100_000;

/// The elements of a list up to which IN is written as comparisons.
const SHORT_LIST: usize = 3;

/// DataFusion's simplifier, which refuses an expression that it would copy out of proportion.
#[derive(Debug, Default)]
pub struct BoundedSimplifier {
    inner: SimplifyExpressions,
}

impl OptimizerRule for BoundedSimplifier {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.inner.apply_order()
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        plan.apply_expressions(|expression| {
            check_copies(expression).map(|()| TreeNodeRecursion::Continue)
        })?;
        self.inner.rewrite(plan, config)?.transform_data(in_whole_days)
    }
}

/// The plan with dates compared with days instead of constant instants.
fn in_whole_days(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let has_instant =
        |expression: &Expr| expression.exists(|part| Ok(whole_days::has_instant(part)));
    let mut is_needed = false;
    plan.apply_expressions(|expression| {
        is_needed |= has_instant(expression)?;
        Ok(if is_needed { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    if !is_needed {
        return Ok(Transformed::no(plan));
    }
    let schema = match plan.inputs().is_empty() {
        true => plan.schema().as_ref().clone(),
        false => merge_schema(&plan.inputs()),
    };
    let names = NamePreserver::new(&plan);
    plan.map_expressions(|expression| {
        let name = names.save(&expression);
        let replaced = expression.transform_up(|part| Ok(whole_days::compared(part, &schema)))?;
        Ok(replaced.update_data(|expression| name.restore(expression)))
    })
}

/// Refuses an expression that would be copied out of proportion when it is simplified or planned to be evaluated.
pub fn check_copies(expression: &Expr) -> Result<()> {
    match parts(expression) > MOST_PARTS {
        true => Err(DataFusionError::External(Box::new(Error::new(
            "BETWEEN, COALESCE, IN or the conditions of CASE nest too deeply here: \
             each of them doubles the expression inside of it",
            None,
        )))),
        false => Ok(()),
    }
}

/// About how many parts an expression has once operands are copied.
fn parts(expression: &Expr) -> usize {
    let all = |parts: &mut dyn Iterator<Item = usize>| parts.fold(1, usize::saturating_add);
    match expression {
        Expr::Between(Between { expr, low, high, .. }) => {
            let copied = parts(expr).saturating_mul(2);
            all(&mut [copied, parts(low), parts(high)].into_iter())
        }
        Expr::InList(InList { expr, list, .. }) if list.len() <= SHORT_LIST => {
            let copied = parts(expr).saturating_mul(list.len());
            all(&mut std::iter::once(copied).chain(list.iter().map(parts)))
        }
        Expr::Case(Case { expr, when_then_expr, else_expr }) => {
            let conditions = when_then_expr.iter().map(|(when, _)| parts(when).saturating_mul(2));
            let results = when_then_expr.iter().map(|(_, then)| parts(then));
            let others = expr.iter().chain(else_expr).map(|part| parts(part));
            all(&mut conditions.chain(results).chain(others))
        }
        // COALESCE and its like, which become a CASE.
        Expr::ScalarFunction(call) if call.func.short_circuits() => {
            let (last, copied) = match call.args.split_last() {
                Some((last, copied)) => (parts(last), copied),
                None => (0, &[][..]),
            };
            let copied = copied.iter().map(|argument| parts(argument).saturating_mul(2));
            all(&mut copied.chain([last]))
        }
        expression => {
            let mut sum = 1_usize;
            let walked = expression.apply_children(|part| {
                sum = sum.saturating_add(parts(part));
                Ok(TreeNodeRecursion::Continue)
            });
            walked.map_or(usize::MAX, |_| sum)
        }
    }
}
