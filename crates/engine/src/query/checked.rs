//! Integer arithmetic that fails instead of wrapping around, as in views.
//!
//! DataFusion's `+`, `-` and `*` wrap, and its optimiser folds constants with them; `/` and `%` of constants fail where
//! there are no rows. So functions replace
//! the operators before it runs, as soon as the types are known.

use std::sync::{Arc, LazyLock};

use alluvium_sql::planner::type_of;
use arrow::array::new_empty_array;
use arrow::compute::kernels::numeric::{add, div, mul, rem, sub};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, LogicalPlan, Operator, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::physical_expr_common::datum::apply;

static ADD: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Checked::function("checked_add", Operation::Add));
static SUBTRACT: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Checked::function("checked_subtract", Operation::Subtract));
static MULTIPLY: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Checked::function("checked_multiply", Operation::Multiply));
static DIVIDE: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Checked::function("checked_divide", Operation::Divide));
static REMAINDER: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Checked::function("checked_remainder", Operation::Remainder));

/// Replaces arithmetic that wraps around by arithmetic that fails. Runs after the types are coerced.
#[derive(Debug)]
pub(super) struct CheckedArithmetic;

impl AnalyzerRule for CheckedArithmetic {
    fn name(&self) -> &str {
        "checked_arithmetic"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|node| {
            let schema = merge_schema(&node.inputs());
            let names = NamePreserver::new(&node);
            let node = node.map_expressions(|expr| {
                let name = names.save(&expr);
                let replaced = expr.transform_up(|expr| Ok(check(expr, &schema)))?;
                Ok(replaced.update_data(|expr| name.restore(expr)))
            })?;
            node.map_data(LogicalPlan::recompute_schema)
        })
        .map(|plan| plan.data)
    }
}

/// The expression, checked if it is integer arithmetic.
fn check(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let is_integer = |expr: &Expr| match expr {
        Expr::ScalarFunction(call) if call.func.inner().is::<Checked>() => true,
        expr => type_of(expr, schema).is_some_and(|kind| kind.is_integer()),
    };
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let function = match op {
                Operator::Plus => &*ADD,
                Operator::Minus => &*SUBTRACT,
                Operator::Multiply => &*MULTIPLY,
                Operator::Divide => &*DIVIDE,
                Operator::Modulo => &*REMAINDER,
                op => return Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
            };
            if !is_integer(&left) || !is_integer(&right) {
                return Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right }));
            }
            Transformed::yes(Expr::ScalarFunction(ScalarFunction::new_udf(
                function.clone(),
                vec![*left, *right],
            )))
        }
        expr => Transformed::no(expr),
    }
}

/// An operation on two integers of one type.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Checked {
    name: &'static str,
    operation: Operation,
    signature: Signature,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Operation {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl Checked {
    fn function(name: &'static str, operation: Operation) -> Arc<ScalarUDF> {
        let signature = Signature::any(2, Volatility::Immutable);
        Arc::new(ScalarUDF::from(Self { name, operation, signature }))
    }
}

impl ScalarUDFImpl for Checked {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(arguments[0].clone())
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let nullable = arguments.arg_fields.iter().any(|field| field.is_nullable());
        let kind = arguments.arg_fields[0].data_type().clone();
        Ok(Arc::new(Field::new(self.name, kind, nullable)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [left, right] = &arguments.args[..] else {
            return datafusion::common::internal_err!("{} takes two arguments", self.name);
        };
        if arguments.number_rows == 0 {
            // Two constants would fail without any row to fail for.
            return Ok(ColumnarValue::Array(new_empty_array(arguments.return_type())));
        }
        match self.operation {
            Operation::Add => apply(left, right, add),
            Operation::Subtract => apply(left, right, sub),
            Operation::Multiply => apply(left, right, mul),
            Operation::Divide => apply(left, right, div),
            Operation::Remainder => apply(left, right, rem),
        }
    }
}
