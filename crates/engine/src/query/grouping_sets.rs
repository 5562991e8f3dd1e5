//! A filter on a column says nothing above grouping sets that leave the column out.
//!
//! DataFusion knows of `WHERE k = 1` still above `GROUP BY ROLLUP (k)` that `k` is 1, though it is NULL in the rows of
//! all groups together, and does not sort by it. So, below such an aggregate, each grouping
//! column is wrapped in a function that the optimizer cannot see through. It has a second argument because a call with
//! only constant arguments would be a constant again.

use std::collections::HashSet;
use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, Result, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::logical_plan::Aggregate;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, LogicalPlanBuilder, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};
use datafusion::optimizer::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

static AS_IT_IS: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let numbers = vec![TypeSignature::Nullary, TypeSignature::Any(2)];
    let signature = Signature::one_of(numbers, Volatility::Volatile);
    Arc::new(ScalarUDF::from(AsItIs { signature }))
});

/// Hides the columns of grouping sets from the optimizer. It must be the last rule, because no filter passes the function
/// that it inserts.
#[derive(Debug)]
pub(super) struct HiddenGroups;

impl OptimizerRule for HiddenGroups {
    fn name(&self) -> &str {
        "hidden_groups"
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
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Aggregate(aggregate) = plan else { return Ok(Transformed::no(plan)) };
        let has_sets =
            aggregate.group_expr.iter().any(|group| matches!(group, Expr::GroupingSet(_)));
        if !has_sets || is_hidden(&aggregate.input) {
            return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
        }
        let Aggregate { input, group_expr, aggr_expr, schema, .. } = aggregate;
        let grouped: HashSet<&Column> = group_expr.iter().flat_map(Expr::column_refs).collect();
        let columns = input.schema().columns().into_iter().map(|column| {
            if !grouped.contains(&column) {
                return Expr::Column(column);
            }
            let (relation, name) = (column.relation.clone(), column.name.clone());
            hidden(Expr::Column(column)).alias_qualified(relation, name)
        });
        let columns: Vec<Expr> = columns.collect();
        let input = LogicalPlanBuilder::from(input).project(columns)?.build()?;
        let aggregate =
            Aggregate::try_new_with_schema(Arc::new(input), group_expr, aggr_expr, schema)?;
        Ok(Transformed::yes(LogicalPlan::Aggregate(aggregate)))
    }
}

fn hidden(column: Expr) -> Expr {
    let call =
        |arguments| Expr::ScalarFunction(ScalarFunction::new_udf(AS_IT_IS.clone(), arguments));
    call(vec![column, call(Vec::new())])
}

/// Whether the rule has been here.
fn is_hidden(input: &LogicalPlan) -> bool {
    let is_hidden = |expr: &Expr| {
        matches!(expr, Expr::Alias(alias)
            if matches!(&*alias.expr, Expr::ScalarFunction(call) if call.func == *AS_IT_IS))
    };
    matches!(input, LogicalPlan::Projection(projection) if projection.expr.iter().any(is_hidden))
}

/// Returns its first argument.
#[derive(Debug, PartialEq, Eq, Hash)]
struct AsItIs {
    signature: Signature,
}

impl ScalarUDFImpl for AsItIs {
    fn name(&self) -> &str {
        "as_it_is"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(arguments.first().cloned().unwrap_or(DataType::Boolean))
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let nothing = || Arc::new(Field::new(self.name(), DataType::Boolean, true));
        Ok(arguments.arg_fields.first().cloned().unwrap_or_else(nothing))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let nothing = || ColumnarValue::Scalar(ScalarValue::Boolean(None));
        Ok(arguments.args.into_iter().next().unwrap_or_else(nothing))
    }
}
