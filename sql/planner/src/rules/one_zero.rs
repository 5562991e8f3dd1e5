//! -0.0 and 0.0 are equal, as in PostgreSQL.
//!
//! DataFusion's comparisons, groups and joins take them for equal, but its orders, distinct arguments, CASE, IN and
//! NULLIF tell floats apart by their bits. There -0.0 becomes 0.0 before it is compared. Values that are returned keep their sign.

use std::sync::{Arc, LazyLock};

use alluvium_dataflow::rows::codec::canonical_floats;
use arrow::compute::kernels::cmp::eq;
use arrow::compute::nullif;
use arrow::datatypes::DataType;
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion_common::{DFSchema, Result, ScalarValue};
use datafusion_expr::expr::{
    AggregateFunction, Case, InList, ScalarFunction, Sort, WindowFunction,
};
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::logical_plan::{Distinct, DistinctOn, Sort as SortPlan};
use datafusion_expr::utils::merge_schema;
use datafusion_expr::{
    ColumnarValue, Expr, LogicalPlan, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use datafusion_optimizer::AnalyzerRule;

use crate::rules::canonical_floats::{ONE_ZERO, ZERO_FUNCTION, is_float};

static NULL_IF: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::any(2, Volatility::Immutable);
    Arc::new(ScalarUDF::from(NullIf { signature }))
});

/// Makes -0.0 and 0.0 equal where DataFusion tells them apart. Runs after the types are coerced.
#[derive(Debug)]
pub struct OneZero {
    /// Whether orders and distinct arguments are compared by DataFusion too. Those of views are keys, which have one zero.
    of_queries: bool,
}

impl OneZero {
    /// For the expressions of views.
    pub fn of_views() -> Self {
        Self { of_queries: false }
    }

    /// For queries, which DataFusion evaluates.
    pub fn of_queries() -> Self {
        Self { of_queries: true }
    }

    fn part(&self, part: Expr, schema: &DFSchema) -> Transformed<Expr> {
        let one_zero = |part| canonical(part, schema);
        let boxed = |part: Box<Expr>| Box::new(canonical(*part, schema));
        Transformed::yes(match part {
            Expr::Case(Case { expr: Some(expr), when_then_expr, else_expr }) => {
                let branches = when_then_expr.into_iter();
                let when_then_expr = branches.map(|(when, then)| (boxed(when), then)).collect();
                Expr::Case(Case { expr: Some(boxed(expr)), when_then_expr, else_expr })
            }
            Expr::InList(InList { expr, list, negated }) if is_float(&expr, schema) => {
                match list.iter().all(|value| matches!(value, Expr::Literal(..))) {
                    // A column can be looked up where it is.
                    true => {
                        let list = list.into_iter().flat_map(both_zeros).collect();
                        Expr::InList(InList { expr, list, negated })
                    }
                    false => {
                        let list = list.into_iter().map(one_zero).collect();
                        Expr::InList(InList { expr: boxed(expr), list, negated })
                    }
                }
            }
            Expr::ScalarFunction(ScalarFunction { func, args })
                if func.name() == "nullif" && args.iter().any(|part| is_float(part, schema)) =>
            {
                Expr::ScalarFunction(ScalarFunction::new_udf(NULL_IF.clone(), args))
            }
            Expr::AggregateFunction(AggregateFunction { func, mut params }) if self.of_queries => {
                if params.distinct {
                    params.args = params.args.into_iter().map(one_zero).collect();
                }
                params.order_by = sorts(params.order_by, schema);
                Expr::AggregateFunction(AggregateFunction { func, params })
            }
            Expr::WindowFunction(call) if self.of_queries => {
                let WindowFunction { fun, mut params } = *call;
                params.partition_by = params.partition_by.into_iter().map(one_zero).collect();
                params.order_by = sorts(params.order_by, schema);
                Expr::WindowFunction(Box::new(WindowFunction { fun, params }))
            }
            part => return Transformed::no(part),
        })
    }

    fn node(&self, node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        let schema = merge_schema(&node.inputs());
        let names = NamePreserver::new(&node);
        let inner = node.map_expressions(|expression| {
            if matches!(expression, Expr::Column(_)) {
                return Ok(Transformed::no(expression));
            }
            let name = names.save(&expression);
            let replaced = expression.transform_up(|part| Ok(self.part(part, &schema)))?;
            Ok(replaced.update_data(|expression| name.restore(expression)))
        })?;
        if !self.of_queries {
            return Ok(inner);
        }
        Ok(inner.update_data(|node| match node {
            LogicalPlan::Sort(SortPlan { expr, input, fetch }) => {
                LogicalPlan::Sort(SortPlan { expr: sorts(expr, &schema), input, fetch })
            }
            LogicalPlan::Distinct(Distinct::On(on)) => {
                let sort_expr = on.sort_expr.map(|order| sorts(order, &schema));
                LogicalPlan::Distinct(Distinct::On(DistinctOn { sort_expr, ..on }))
            }
            node => node,
        }))
    }
}

impl AnalyzerRule for OneZero {
    fn name(&self) -> &str {
        ZERO_FUNCTION
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|node| self.node(node)).data()
    }
}

fn sorts(order: Vec<Sort>, schema: &DFSchema) -> Vec<Sort> {
    let order = order.into_iter();
    order.map(|sort| Sort { expr: canonical(sort.expr, schema), ..sort }).collect()
}

/// The expression, with one zero if it has floats.
fn canonical(expression: Expr, schema: &DFSchema) -> Expr {
    match &expression {
        Expr::Literal(ScalarValue::Float64(Some(number)), metadata) => {
            let metadata = metadata.clone();
            Expr::Literal(ScalarValue::Float64(Some(number + 0.0)), metadata)
        }
        Expr::Literal(ScalarValue::Float32(Some(number)), metadata) => {
            let metadata = metadata.clone();
            Expr::Literal(ScalarValue::Float32(Some(number + 0.0)), metadata)
        }
        Expr::Literal(..) => expression,
        _ if is_float(&expression, schema) => {
            Expr::ScalarFunction(ScalarFunction::new_udf(ONE_ZERO.clone(), vec![expression]))
        }
        _ => expression,
    }
}

/// The value, and the other zero if it is one.
fn both_zeros(value: Expr) -> impl Iterator<Item = Expr> {
    let other = match &value {
        Expr::Literal(ScalarValue::Float64(Some(number)), metadata) if *number == 0.0 => {
            Some(Expr::Literal(ScalarValue::Float64(Some(-number)), metadata.clone()))
        }
        Expr::Literal(ScalarValue::Float32(Some(number)), metadata) if *number == 0.0 => {
            Some(Expr::Literal(ScalarValue::Float32(Some(-number)), metadata.clone()))
        }
        _ => None,
    };
    std::iter::once(value).chain(other)
}

/// NULLIF of floats: its first argument with its sign, unless it equals the second.
#[derive(Debug, PartialEq, Eq, Hash)]
struct NullIf {
    signature: Signature,
}

impl ScalarUDFImpl for NullIf {
    fn name(&self) -> &str {
        "nullif"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(arguments[0].clone())
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let columns = ColumnarValue::values_to_arrays(&arguments.args)?;
        let (one, other) = (canonical_floats(&columns[0])?, canonical_floats(&columns[1])?);
        Ok(ColumnarValue::Array(nullif(&columns[0], &eq(&one, &other)?)?))
    }
}
