//! `COUNT(DISTINCT a, b)`, which DataFusion plans but cannot run: the count of distinct structs of the arguments.

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::functions::core::expr_fn::named_struct;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan, lit, when};
use datafusion::optimizer::AnalyzerRule;

/// Replaces the arguments by one, which is NULL where one of them is.
#[derive(Debug)]
pub(super) struct DistinctRows;

impl AnalyzerRule for DistinctRows {
    fn name(&self) -> &str {
        "distinct_rows"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|node| {
            let names = NamePreserver::new(&node);
            node.map_expressions(|expr| {
                let name = names.save(&expr);
                let replaced = expr.transform_up(one_argument)?;
                Ok(replaced.update_data(|expr| name.restore(expr)))
            })
        })
        .map(|plan| plan.data)
    }
}

fn one_argument(expr: Expr) -> Result<Transformed<Expr>> {
    let Expr::AggregateFunction(AggregateFunction { func, mut params }) = expr else {
        return Ok(Transformed::no(expr));
    };
    if func.name() != "count" || !params.distinct || params.args.len() < 2 {
        return Ok(Transformed::no(Expr::AggregateFunction(AggregateFunction { func, params })));
    }
    let all_there = params.args.iter().cloned().map(Expr::is_not_null).reduce(Expr::and);
    let fields = params.args.drain(..).enumerate();
    let fields = fields.flat_map(|(place, value)| [lit(format!("c{place}")), value]).collect();
    let row = when(all_there.unwrap_or_else(|| lit(true)), named_struct(fields)).end()?;
    params.args = vec![row];
    Ok(Transformed::yes(Expr::AggregateFunction(AggregateFunction { func, params })))
}
