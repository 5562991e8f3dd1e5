//! DISTINCT ON: the first row of each group.

use std::sync::Arc;

use datafusion_common::Result;
use datafusion_common::tree_node::Transformed;
use datafusion_expr::expr::{WindowFunction, WindowFunctionParams};
use datafusion_expr::logical_plan::{Distinct, DistinctOn, Projection};
use datafusion_expr::{Expr, LogicalPlan, LogicalPlanBuilder, WindowFrame, ident, lit};
use datafusion_functions_window::row_number::row_number_udwf;
use datafusion_optimizer::OptimizerConfig;
use datafusion_optimizer::optimizer::{ApplyOrder, OptimizerRule};

/// The column with the number of a row within its group.
const NUMBER: &str = "number within DISTINCT ON";

/// DISTINCT ON as a filter of row numbers.
///
/// This rule comes first: later rules would push filters below a DISTINCT ON and so change which rows are first.
#[derive(Debug, Default)]
pub struct DistinctOnToRowNumber;

impl OptimizerRule for DistinctOnToRowNumber {
    fn name(&self) -> &str {
        "distinct_on_to_row_number"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Distinct(Distinct::On(distinct)) = plan else {
            return Ok(Transformed::no(plan));
        };
        let DistinctOn { on_expr, select_expr, sort_expr, input, schema } = distinct;
        let order_by = sort_expr.unwrap_or_default();
        let number = Expr::from(WindowFunction {
            fun: datafusion_expr::WindowFunctionDefinition::WindowUDF(row_number_udwf()),
            params: WindowFunctionParams {
                args: Vec::new(),
                partition_by: on_expr,
                window_frame: WindowFrame::new((!order_by.is_empty()).then_some(false)),
                order_by,
                filter: None,
                null_treatment: None,
                distinct: false,
            },
        });
        let first = LogicalPlanBuilder::from(Arc::unwrap_or_clone(input))
            .window([number.alias(NUMBER)])?
            .filter(ident(NUMBER).eq(lit(1_u64)))?
            .build()?;
        let projection = Projection::try_new_with_schema(select_expr, Arc::new(first), schema)?;
        Ok(Transformed::yes(LogicalPlan::Projection(projection)))
    }
}
