//! The optimizer rules for views.
//!
//! A rule must be valid for multisets that change, so none depends on statistics, on current data, or on the time.
//! These rules of DataFusion are omitted: decorrelation of subqueries, except for scalar subqueries of one row
//! (`subquery` rewrites the others, with correct NULLs and row counts); limit push-down, column pruning, and
//! DISTINCT as an aggregation or in aggregates (done on the incremental plan); and rules that only simplify plans
//! for a single execution.

use std::sync::Arc;

use datafusion_common::DFSchema;
use datafusion_common::Result;
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::Transformed;
use datafusion_expr::expr_rewriter::FunctionRewrite;
use datafusion_expr::{Expr, ExprSchemable, LogicalPlan};
use datafusion_optimizer::analyzer::Analyzer;
use datafusion_optimizer::analyzer::resolve_grouping_function::ResolveGroupingFunction;
use datafusion_optimizer::analyzer::type_coercion::TypeCoercion;
use datafusion_optimizer::common_subexpr_eliminate::CommonSubexprEliminate;
use datafusion_optimizer::eliminate_duplicated_expr::EliminateDuplicatedExpr;
use datafusion_optimizer::eliminate_filter::EliminateFilter;
use datafusion_optimizer::eliminate_outer_join::EliminateOuterJoin;
use datafusion_optimizer::extract_equijoin_predicate::ExtractEquijoinPredicate;
use datafusion_optimizer::optimizer::OptimizerRule;
use datafusion_optimizer::scalar_subquery_to_join::ScalarSubqueryToJoin;
use datafusion_optimizer::simplify_expressions::SimplifyExpressions;
use datafusion_optimizer::{Optimizer, OptimizerContext};

use super::constant;
use super::context::OPTIONS;
use super::cross_join::CrossJoinElimination;
use super::distinct_on::DistinctOnToRowNumber;
use super::filter_push_down::FilterPushDown;
use super::in_lists::DisjointLists;
use arrow::datatypes::DataType;

/// Analyzer and optimizer of views.
#[derive(Debug)]
pub(crate) struct ViewOptimizer {
    analyzer: Analyzer,
    optimizer: Optimizer,
    sharing: Optimizer,
}

impl ViewOptimizer {
    pub(crate) fn new() -> ViewOptimizer {
        let mut analyzer = Analyzer::with_rules(vec![
            Arc::new(ResolveGroupingFunction::new()),
            Arc::new(TypeCoercion::new()),
            Arc::new(DisjointLists),
        ]);
        analyzer.add_function_rewrite(Arc::new(OneStringType));
        let rules: Vec<Arc<dyn OptimizerRule + Send + Sync>> = vec![
            Arc::new(DistinctOnToRowNumber),
            Arc::new(SimplifyExpressions::new()),
            Arc::new(ScalarSubqueryToJoin::new()),
            Arc::new(ExtractEquijoinPredicate::new()),
            Arc::new(EliminateDuplicatedExpr::new()),
            Arc::new(EliminateFilter::new()),
            Arc::new(CrossJoinElimination::default()),
            Arc::new(EliminateOuterJoin::new()),
            Arc::new(FilterPushDown::default()),
        ];
        let sharing = Optimizer::with_rules(vec![Arc::new(CommonSubexprEliminate::new())]);
        ViewOptimizer { analyzer, optimizer: Optimizer::with_rules(rules), sharing }
    }

    /// The plan with explicit types, optimized except for the elimination of common subexpressions.
    pub(crate) fn optimize(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        let analyzed = self.analyzer.execute_and_check(plan, &OPTIONS, |_, _| {})?;
        constant::check(&analyzed)
            .map_err(|error| datafusion_common::DataFusionError::External(Box::new(error)))?;
        self.optimizer.optimize(analyzed, &context(), |_, _| {})
    }

    /// The optimized plan with common subexpressions eliminated.
    ///
    /// Common subexpressions get names that are unique only within a plan, so this runs last, when no other view's
    /// plan will be inlined.
    pub(crate) fn share(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        self.sharing.optimize(plan, &context(), |_, _| {})
    }
}

fn context() -> OptimizerContext {
    OptimizerContext::new_with_config_options(Arc::clone(&OPTIONS))
        .without_query_execution_start_time()
}

/// Casts the results of functions that return another string type to the string type of tables.
#[derive(Debug)]
struct OneStringType;

impl FunctionRewrite for OneStringType {
    fn name(&self) -> &str {
        "one_string_type"
    }

    fn rewrite(
        &self,
        expression: Expr,
        schema: &DFSchema,
        _config: &ConfigOptions,
    ) -> Result<Transformed<Expr>> {
        if !matches!(expression, Expr::ScalarFunction(_)) {
            return Ok(Transformed::no(expression));
        }
        // A function may have no type before its arguments are coerced; coercion reports an error then.
        let Ok(data_type) = expression.get_type(schema) else {
            return Ok(Transformed::no(expression));
        };
        let plain = match data_type {
            DataType::Utf8View | DataType::LargeUtf8 => DataType::Utf8,
            DataType::BinaryView | DataType::LargeBinary => DataType::Binary,
            _ => return Ok(Transformed::no(expression)),
        };
        Ok(Transformed::yes(expression.cast_to(&plain, schema)?))
    }
}
