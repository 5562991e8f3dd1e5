//! The optimizer rules for views.
//!
//! A rule is listed only if it is correct for multisets that change: none uses statistics, the present data or the time. Of
//! DataFusion's rules these are left out:
//!
//! - subqueries, except scalars of one row: `subquery` rewrites them with regard to NULLs and numbers of rows;
//! - limits, column pruning, and DISTINCT as aggregation: the incremental plan does these;
//! - rules that only help plans that run once.

use std::sync::Arc;

use alluvium_sql_functions::microseconds::in_microseconds;
use alluvium_sql_syntax::options::OPTIONS;
use alluvium_sql_syntax::statement::nearest;
use arrow::datatypes::DataType;
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
use datafusion_optimizer::optimizer::OptimizerRule;
use datafusion_optimizer::scalar_subquery_to_join::ScalarSubqueryToJoin;
use datafusion_optimizer::{Optimizer, OptimizerContext};

use crate::expressions::constant;
use crate::expressions::corrections::TextToInterval;
use crate::rules::distinct_on::DistinctOnToRowNumber;
use crate::rules::filter_push_down::FilterPushDown;
use crate::rules::in_lists::DisjointLists;
use crate::rules::intervals::IntervalsByLength;
use crate::rules::join_keys::{CrossJoinElimination, EquijoinExtraction};
use crate::rules::microseconds::Microseconds;
use crate::rules::numbers::ExactNumbers;
use crate::rules::one_nan::OneNan;
use crate::rules::one_zero::OneZero;
use crate::rules::simplify::BoundedSimplifier;

/// Analyzer and optimizer of views.
#[derive(Debug)]
pub struct ViewOptimizer {
    analyzer: Analyzer,
    optimizer: Optimizer,
    sharing: Optimizer,
}

impl ViewOptimizer {
    pub fn new() -> ViewOptimizer {
        let mut analyzer = Analyzer::with_rules(vec![
            Arc::new(ResolveGroupingFunction::new()),
            Arc::new(TypeCoercion::new()),
            Arc::new(ExactNumbers),
            Arc::new(Microseconds),
            Arc::new(TextToInterval),
            Arc::new(IntervalsByLength),
            Arc::new(DisjointLists),
            Arc::new(OneNan),
            Arc::new(OneZero::of_views()),
        ]);
        analyzer.add_function_rewrite(Arc::new(ColumnTypes));
        let rules: Vec<Arc<dyn OptimizerRule + Send + Sync>> = vec![
            Arc::new(DistinctOnToRowNumber),
            Arc::new(BoundedSimplifier::default()),
            Arc::new(ScalarSubqueryToJoin::new()),
            Arc::new(EquijoinExtraction::default()),
            Arc::new(EliminateDuplicatedExpr::new()),
            Arc::new(EliminateFilter::new()),
            Arc::new(CrossJoinElimination::default()),
            Arc::new(EliminateOuterJoin::new()),
            Arc::new(FilterPushDown::default()),
        ];
        let sharing = Optimizer::with_rules(vec![Arc::new(CommonSubexprEliminate::new())]);
        ViewOptimizer { analyzer, optimizer: Optimizer::with_rules(rules), sharing }
    }

    /// The plan with explicit types, optimized except for common subexpressions.
    pub fn optimize(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        let analyzed = self.analyzer.execute_and_check(plan, &OPTIONS, |_, _| {})?;
        constant::check(&analyzed)
            .map_err(|error| datafusion_common::DataFusionError::External(Box::new(error)))?;
        self.optimizer.optimize(analyzed, &context(), |_, _| {})
    }

    /// The optimized plan with common subexpressions computed once.
    ///
    /// Their names are unique only within the plan, so this comes last, after views have been expanded.
    pub fn share(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        self.sharing.optimize(plan, &context(), |_, _| {})
    }
}

fn context() -> OptimizerContext {
    OptimizerContext::new_with_config_options(Arc::clone(&OPTIONS))
        .without_query_execution_start_time()
}

/// Functions return the types of tables: of several types of text, lists and so on, only one.
#[derive(Debug)]
struct ColumnTypes;

impl FunctionRewrite for ColumnTypes {
    fn name(&self) -> &str {
        "column_types"
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
        // A function whose arguments are not coerced yet may have no type: type coercion reports the error.
        let Ok(data_type) = expression.get_type(schema) else {
            return Ok(Transformed::no(expression));
        };
        match column_type(&data_type) {
            Some(plain) => Ok(Transformed::yes(expression.cast_to(&plain, schema)?)),
            None => Ok(Transformed::no(expression)),
        }
    }
}

/// The type that a function returns instead of another one. A time zone stays: functions of local times need it. So do NULL
/// and lists of it, which take the type of what they meet.
fn column_type(data_type: &DataType) -> Option<DataType> {
    let timed = in_microseconds(data_type);
    let plain = match nearest(&timed) {
        Some(nearest) if !has_null(&timed) && !has_zone(&timed) => nearest,
        _ => timed,
    };
    (plain != *data_type).then_some(plain)
}

fn has_null(data_type: &DataType) -> bool {
    has_part(data_type, &DataType::is_null)
}

fn has_zone(data_type: &DataType) -> bool {
    let has_zone =
        |part: &DataType| matches!(part, DataType::Timestamp(_, Some(zone)) if **zone != *"+00:00");
    has_part(data_type, &has_zone)
}

/// Whether a type, or one that it nests, is such a type.
fn has_part(data_type: &DataType, is_such: &dyn Fn(&DataType) -> bool) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => has_part(values, is_such),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => has_part(item.data_type(), is_such),
        DataType::Struct(fields) => fields.iter().any(|field| has_part(field.data_type(), is_such)),
        plain => is_such(plain),
    }
}
