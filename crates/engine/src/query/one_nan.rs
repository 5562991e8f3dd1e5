//! One NaN in queries, as in views and in PostgreSQL.
//!
//! Arithmetic has NaNs with and without a sign, `-CAST('NaN' AS DOUBLE)` and infinity minus infinity, and DataFusion
//! compares and groups floats by their bits. So the results of computations become the one NaN wherever they are NaN:
//! where they leave an expression, or are compared inside of one.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, Float32Array, Float64Array};
use arrow::datatypes::{DataType, Field, FieldRef, Float32Type, Float64Type};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{AggregateFunction, Alias, Between, InList, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, LogicalPlan, Operator, ReturnFieldArgs,
    ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::AnalyzerRule;

static ONE_NAN: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::any(1, Volatility::Immutable);
    Arc::new(ScalarUDF::from(OneNan { signature }))
});

/// Makes every NaN that an expression computes the same. Runs after the types are coerced.
#[derive(Debug)]
pub(super) struct OneNanRule;

impl AnalyzerRule for OneNanRule {
    fn name(&self) -> &str {
        "one_nan"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|node| {
            let schema = merge_schema(&node.inputs());
            let names = NamePreserver::new(&node);
            node.map_expressions(|expr| {
                let name = names.save(&expr);
                let replaced = expr.transform_up(|part| Ok(compared(part, &schema)))?;
                Ok(replaced.update_data(|expr| name.restore(canonical(expr, &schema))))
            })
        })
        .map(|plan| plan.data)
    }
}

/// The expression with the operands that it compares made canonical.
fn compared(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let canonical = |expr: Box<Expr>| Box::new(canonical(*expr, schema));
    let is_comparison = |op: &Operator| {
        use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
        matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
    };
    Transformed::yes(match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(&op) => {
            Expr::BinaryExpr(BinaryExpr { left: canonical(left), op, right: canonical(right) })
        }
        Expr::Between(Between { expr, negated, low, high }) => Expr::Between(Between {
            expr: canonical(expr),
            negated,
            low: canonical(low),
            high: canonical(high),
        }),
        Expr::InList(InList { expr, list, negated }) => {
            let list = list.into_iter().map(|item| *canonical(Box::new(item))).collect();
            Expr::InList(InList { expr: canonical(expr), list, negated })
        }
        Expr::AggregateFunction(AggregateFunction { func, mut params }) => {
            params.args = params.args.into_iter().map(|item| *canonical(Box::new(item))).collect();
            Expr::AggregateFunction(AggregateFunction { func, params })
        }
        expr => return Transformed::no(expr),
    })
}

/// The expression, with one NaN if it is a computation of floats.
fn canonical(expr: Expr, schema: &DFSchema) -> Expr {
    match expr {
        Expr::Alias(Alias { expr, relation, name, metadata }) => {
            let expr = Box::new(canonical(*expr, schema));
            Expr::Alias(Alias { expr, relation, name, metadata })
        }
        Expr::Negative(_)
        | Expr::BinaryExpr(_)
        | Expr::Case(_)
        | Expr::Cast(_)
        | Expr::TryCast(_)
            if is_float(&expr, schema) =>
        {
            call(expr)
        }
        Expr::ScalarFunction(ref function)
            if function.func != *ONE_NAN && is_float(&expr, schema) =>
        {
            call(expr)
        }
        expr => expr,
    }
}

fn call(expr: Expr) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(ONE_NAN.clone(), vec![expr]))
}

fn is_float(expr: &Expr, schema: &DFSchema) -> bool {
    let is_float = |kind| matches!(kind, DataType::Float32 | DataType::Float64);
    expr.get_type(schema).is_ok_and(is_float)
}

/// Its argument, whose NaNs become the one without a sign.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OneNan {
    signature: Signature,
}

impl ScalarUDFImpl for OneNan {
    fn name(&self) -> &str {
        "one_nan"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(arguments[0].clone())
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let field = &arguments.arg_fields[0];
        Ok(Arc::new(Field::new(self.name(), field.data_type().clone(), field.is_nullable())))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(match &arguments.args[0] {
            ColumnarValue::Array(floats) => ColumnarValue::Array(one_nan(floats)),
            ColumnarValue::Scalar(float) => {
                ColumnarValue::Scalar(ScalarValue::try_from_array(&one_nan(&float.to_array()?), 0)?)
            }
        })
    }
}

fn one_nan(floats: &ArrayRef) -> ArrayRef {
    match floats.data_type() {
        DataType::Float32 => {
            let floats = floats.as_primitive::<Float32Type>();
            let floats: Float32Array = floats.unary(|x| if x.is_nan() { f32::NAN } else { x });
            Arc::new(floats)
        }
        DataType::Float64 => {
            let floats = floats.as_primitive::<Float64Type>();
            let floats: Float64Array = floats.unary(|x| if x.is_nan() { f64::NAN } else { x });
            Arc::new(floats)
        }
        _ => Arc::clone(floats),
    }
}
