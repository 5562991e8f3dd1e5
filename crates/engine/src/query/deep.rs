//! Deep expressions, hidden from DataFusion's optimizer.
//!
//! The optimizer hashes and prints each part of an expression with all that is below it, and does so for each part again:
//! a sum of 900 terms beside a condition takes it a minute. Here the parts of an expression below some levels become one
//! function of the columns that they read.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use alluvium_sql::planner::check_copies;
use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, ExprSchema};
use datafusion::error::Result;
use datafusion::execution::context::ExecutionProps;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, LogicalPlan, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::physical_expr::{PhysicalExpr, create_physical_expr};

/// Expressions of so many levels stay as they are.
const SHALLOW: usize = 32;

/// Makes a function of each deep expression. Runs after all rules that change expressions.
#[derive(Debug)]
pub(super) struct DeepExpressions;

impl AnalyzerRule for DeepExpressions {
    fn name(&self) -> &str {
        "deep_expressions"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|node| {
            let schema = merge_schema(&node.inputs());
            let names = NamePreserver::new(&node);
            let node = node.map_expressions(|expression| {
                if depth(&expression) <= SHALLOW {
                    return Ok(Transformed::no(expression));
                }
                let name = names.save(&expression);
                let hidden = hide(expression, &schema)?;
                Ok(hidden.update_data(|expression| name.restore(expression)))
            })?;
            match node.transformed {
                true => node.map_data(LogicalPlan::recompute_schema),
                false => Ok(node),
            }
        })
        .map(|plan| plan.data)
    }
}

fn depth(expression: &Expr) -> usize {
    let mut below = 0;
    let walked = expression.apply_children(|part| {
        below = below.max(depth(part));
        Ok(TreeNodeRecursion::Continue)
    });
    walked.map_or(0, |_| below + 1)
}

/// The expression with functions in place of its deep parts. Conditions of joins are not hidden, but what they compare.
fn hide(expression: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    if depth(&expression) <= SHALLOW {
        return Ok(Transformed::no(expression));
    }
    let is_condition = matches!(&expression, Expr::BinaryExpr(BinaryExpr { op, .. })
        if op.is_logic_operator() || op.supports_propagation());
    if !is_condition && is_of_columns(&expression) {
        check_copies(&expression)?;
        return Ok(Transformed::yes(Deep::call(&expression, schema)?));
    }
    expression.map_children(|part| hide(part, schema))
}

/// Whether an expression depends on nothing but columns of its input.
fn is_of_columns(expression: &Expr) -> bool {
    let mut is_of_columns = true;
    let walked = expression.apply(|part| {
        is_of_columns &= match part {
            Expr::ScalarFunction(call) => can_be_called(&call.func),
            Expr::Column(_)
            | Expr::Literal(..)
            | Expr::BinaryExpr(_)
            | Expr::Like(_)
            | Expr::SimilarTo(_)
            | Expr::Not(_)
            | Expr::IsNotNull(_)
            | Expr::IsNull(_)
            | Expr::IsTrue(_)
            | Expr::IsFalse(_)
            | Expr::IsUnknown(_)
            | Expr::IsNotTrue(_)
            | Expr::IsNotFalse(_)
            | Expr::IsNotUnknown(_)
            | Expr::Negative(_)
            | Expr::Between(_)
            | Expr::Case(_)
            | Expr::Cast(_)
            | Expr::TryCast(_)
            | Expr::InList(_) => true,
            _ => false,
        };
        Ok(if is_of_columns { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    });
    walked.is_ok() && is_of_columns
}

/// Whether a function has a value by itself. The simplifier replaces those that evaluate only some of their arguments, and
/// casts.
fn can_be_called(function: &ScalarUDF) -> bool {
    function.signature().volatility == Volatility::Immutable
        && !function.short_circuits()
        && !function.name().contains("cast")
}

/// A function of the columns that an expression reads.
#[derive(Debug)]
struct Deep {
    expression: Arc<dyn PhysicalExpr>,
    columns: SchemaRef,
    returned: FieldRef,
    signature: Signature,
}

impl Deep {
    fn call(expression: &Expr, schema: &DFSchema) -> Result<Expr> {
        let mut columns: Vec<Column> = expression.column_refs().into_iter().cloned().collect();
        columns.sort();
        let qualified = columns.iter().map(|column| {
            let field = schema.field_from_column(column)?;
            Ok((column.relation.clone(), Arc::clone(field)))
        });
        let qualified = qualified.collect::<Result<Vec<_>>>()?;
        let schema = DFSchema::new_with_metadata(qualified, Default::default())?;
        let physical = create_physical_expr(
            expression,
            &schema,
            &ExecutionProps::new(),
            &PhysicalPlanningContext::default(),
        )?;
        let plain = Arc::clone(schema.inner());
        let returned = physical.return_field(&plain)?;
        let deep = Deep {
            expression: physical,
            columns: plain,
            returned: Arc::new(Field::new("deep", returned.data_type().clone(), true)),
            signature: match columns.len() {
                0 => Signature::nullary(Volatility::Immutable),
                count => Signature::any(count, Volatility::Immutable),
            },
        };
        let arguments = columns.into_iter().map(Expr::Column).collect();
        let call = ScalarFunction::new_udf(Arc::new(ScalarUDF::from(deep)), arguments);
        Ok(Expr::ScalarFunction(call))
    }
}

impl PartialEq for Deep {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.expression, &other.expression)
    }
}

impl Eq for Deep {}

impl Hash for Deep {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.expression).cast::<()>().hash(state);
    }
}

impl ScalarUDFImpl for Deep {
    fn name(&self) -> &str {
        "deep"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.returned.data_type().clone())
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::clone(&self.returned))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = arguments.number_rows;
        let columns = arguments.args.into_iter().map(|column| column.into_array(rows));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        // The given columns may be NULL where the declared ones are not: below an outer join.
        let fields =
            self.columns.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let rows = RecordBatch::try_new_with_options(schema, columns, &options)?;
        self.expression.evaluate(&rows)
    }
}
