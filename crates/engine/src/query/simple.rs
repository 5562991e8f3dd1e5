//! Planning point reads in less time than it takes to find the row.
//!
//! Most of DataFusion's rules look for joins, aggregates, sorts and partitions. A plan of projections and filters over one
//! relation, or over VALUES, has none of these, and the few rules that can change it are enough.

use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::source_as_provider;
use datafusion::execution::context::SessionState;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::logical_expr::LogicalPlan;

use super::table::RelationTable;

/// The rules for filters and columns, besides our own.
const RULES: [&str; 4] =
    ["simplify_expressions", "push_down_filter", "optimize_projections", "conditions_in_turn"];

/// Whether a plan consists of projections and filters over one relation or over constants, without subqueries.
pub(super) fn is_simple(plan: &LogicalPlan) -> Result<bool> {
    let mut node = plan;
    loop {
        let mut has_subquery = false;
        node.apply_subqueries(|_| {
            has_subquery = true;
            Ok(TreeNodeRecursion::Stop)
        })?;
        if has_subquery {
            return Ok(false);
        }
        node = match node {
            LogicalPlan::Projection(projection) => &projection.input,
            LogicalPlan::Filter(filter) => &filter.input,
            LogicalPlan::SubqueryAlias(alias) => &alias.input,
            LogicalPlan::Values(_) | LogicalPlan::EmptyRelation(_) => return Ok(true),
            LogicalPlan::TableScan(scan) => {
                let provider = source_as_provider(&scan.source);
                return Ok(provider.is_ok_and(|provider| provider.is::<RelationTable>()));
            }
            _ => return Ok(false),
        };
    }
}

/// The state that plans such plans: the usual one with fewer rules.
pub(super) fn state(usual: &SessionState) -> SessionState {
    let rules = usual.optimizers().iter().filter(|rule| RULES.contains(&rule.name())).cloned();
    SessionStateBuilder::new_from_existing(usual.clone())
        .with_optimizer_rules(rules.collect())
        .with_physical_optimizer_rules(Vec::new())
        .build()
}
