//! Calls that fail for every row, such as `date_trunc('century', t)`.
//!
//! They would make every row of a view an error. A call is tried on a sample if some of its arguments are constants: an
//! unknown unit, a format or a pattern that is wrong.

use alluvium_sql_syntax::error::{Error, worded};
use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema};
use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_common::{Column, DFSchema, DataFusionError, Result, ScalarValue};
use datafusion_expr::execution_props::ExecutionProps;
use datafusion_expr::expr::ScalarFunction;
use datafusion_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion_expr::utils::merge_schema;
use datafusion_expr::{Expr, ExprSchemable, LogicalPlan, Volatility};
use datafusion_physical_expr::create_physical_expr;

use crate::registered::is_registered;

/// Refuses a plan with such a call.
pub(crate) fn check(plan: &LogicalPlan) -> alluvium_sql_syntax::error::Result<()> {
    let checked = plan.apply_with_subqueries(|node| {
        let schema = merge_schema(&node.inputs());
        node.apply_expressions(|expression| {
            expression.apply(|part| {
                if let Expr::ScalarFunction(call) = part
                    && let Some(failure) = failure(call, &schema)
                {
                    let message = format!("{part} fails for every row: {}", worded(&failure));
                    return Err(DataFusionError::External(Box::new(Error::new(message, None))));
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    });
    checked.map(|_| ()).map_err(|error| Error::from_datafusion(&error))
}

/// Why a call fails whatever its row is, if it does.
fn failure(call: &ScalarFunction, schema: &DFSchema) -> Option<DataFusionError> {
    // The result of the program's own function for a sample says nothing of other rows.
    if call.func.signature().volatility != Volatility::Immutable || is_registered(&call.func) {
        return None;
    }
    let is_constant = |argument: &&Expr| matches!(argument, Expr::Literal(..));
    let constants = call.args.iter().filter(is_constant).count();
    if constants == 0 {
        return None;
    }
    let mut types = Vec::with_capacity(call.args.len() - constants);
    for argument in call.args.iter().filter(|argument| !is_constant(argument)) {
        types.push(argument.get_type(schema).ok()?);
    }
    let sample: Option<Vec<ScalarValue>> = types.iter().map(sample).collect();
    let on_sample = tried(call, &types, &sample?)?;
    // A time fails for no reason of its own, nor does text that is searched for a pattern. Other patterns and flags do.
    let is_searched = call.func.name().starts_with("regexp_")
        && call.args.iter().skip(1).all(|argument| is_constant(&argument));
    let is_plain = types.iter().all(DataType::is_temporal) || is_searched;
    if is_plain {
        return Some(on_sample);
    }
    let nulls: Option<Vec<ScalarValue>> =
        types.iter().map(|data_type| ScalarValue::try_from(data_type).ok()).collect();
    tried(call, &types, &nulls?)
}

/// A value of a type, as good as any; none of nested types, of whose values there may have to be a certain number.
fn sample(data_type: &DataType) -> Option<ScalarValue> {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            ScalarValue::from("1").cast_to(data_type).ok()
        }
        DataType::Boolean => Some(ScalarValue::from(true)),
        nested if nested.is_nested() => None,
        other => ScalarValue::new_one(other)
            .or_else(|_| ScalarValue::from(1_i64).cast_to(other))
            .or_else(|_| ScalarValue::from(1_i32).cast_to(other))
            .ok(),
    }
}

/// The error of a call for a row with these values in place of arguments that are not constant.
fn tried(
    call: &ScalarFunction,
    types: &[DataType],
    values: &[ScalarValue],
) -> Option<DataFusionError> {
    let fields = types.iter().enumerate();
    let mut fields: Vec<Field> =
        fields.map(|(number, of)| Field::new(format!("c{number}"), of.clone(), true)).collect();
    fields.push(Field::new("row", DataType::Boolean, false));
    let schema = Schema::new(fields);
    let mut columns =
        values.iter().map(|value| value.to_array()).collect::<Result<Vec<_>>>().ok()?;
    columns.push(ScalarValue::from(true).to_array().ok()?);
    let row = RecordBatch::try_new(schema.clone().into(), columns).ok()?;
    let mut numbers = 0..;
    let arguments = call.args.iter().map(|argument| match argument {
        Expr::Literal(..) => argument.clone(),
        _ => Expr::Column(Column::from_name(format!("c{}", numbers.next().unwrap_or(0)))),
    });
    let call = ScalarFunction::new_udf(call.func.clone(), arguments.collect());
    let physical = create_physical_expr(
        &Expr::ScalarFunction(call),
        &DFSchema::try_from(schema).ok()?,
        &ExecutionProps::new(),
        &PhysicalPlanningContext::default(),
    );
    physical.and_then(|physical| physical.evaluate(&row)).err()
}
