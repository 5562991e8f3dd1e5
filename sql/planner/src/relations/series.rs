//! `generate_series` and `range` in FROM.

use std::sync::Arc;

use alluvium_dataflow::series::Series;
use alluvium_sql_syntax::error::{Error, Position};
use alluvium_sql_syntax::syntax::SeriesCall;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion_common::{DFSchema, DataFusionError, Result, ScalarValue};
use datafusion_expr::execution_props::ExecutionProps;
use datafusion_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion_expr::{Expr, ExprSchemable, LogicalPlanBuilder, TableSource};
use datafusion_physical_expr::create_physical_expr;
use sqlparser::ast::{FunctionArg, FunctionArgExpr, Spanned, TableFactor};

use crate::expressions::evaluation::{checked, one_row};

/// The rows of a call: a scan in a logical plan reads them.
#[derive(Debug)]
pub struct SeriesSource {
    series: Series,
    schema: SchemaRef,
}

impl SeriesSource {
    /// The values, which are in one column.
    pub fn series(&self) -> Series {
        self.series
    }
}

impl TableSource for SeriesSource {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// Plans calls of these functions.
#[derive(Debug)]
pub(crate) struct SeriesPlanner;

impl RelationPlanner for SeriesPlanner {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let Some(SeriesCall { function, name, arguments, alias }) = SeriesCall::of(&relation)
        else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let at = Position::of(name);
        if !(1..=3).contains(&arguments.len()) {
            let usage = format!("write {function}(end), {function}(start, end[, step])");
            return Err(wrong(usage, at));
        }
        let values: Option<Vec<i64>> = arguments
            .iter()
            .map(|argument| number(function, argument, context))
            .collect::<Result<_>>()?;
        let is_closed = function == "generate_series";
        let series = match values.as_deref() {
            // As in DuckDB, NULL makes no rows.
            None => Some(Series { first: 0, step: 1, length: 0 }),
            Some([end]) => Series::between(0, *end, 1, is_closed),
            Some([start, end]) => Series::between(*start, *end, 1, is_closed),
            Some([_, _, 0, ..]) => {
                return Err(wrong(format!("the step of {function} must not be zero"), at));
            }
            Some([start, end, step, ..]) => Series::between(*start, *end, *step, is_closed),
            Some([]) => None,
        };
        let Some(series) = series else {
            return Err(wrong(format!("{function} lists too many values to be counted"), at));
        };
        let schema = Arc::new(Schema::new(vec![Field::new(function, DataType::Int64, false)]));
        let source = Arc::new(SeriesSource { series, schema });
        let plan = LogicalPlanBuilder::scan(function, source, None)?.build()?;
        let planned = PlannedRelation::new(plan, alias.clone());
        Ok(RelationPlanning::Planned(Box::new(planned)))
    }
}

/// Refuses calls in FROM that no other planner takes.
#[derive(Debug)]
pub(crate) struct NoTableFunction;

impl RelationPlanner for NoTableFunction {
    fn plan_relation(
        &self,
        relation: TableFactor,
        _: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        match &relation {
            TableFactor::Table { name, args: Some(_), .. } => {
                let what = format!("the table function {name}");
                let error = Error::not_supported(what, Position::of(name));
                Err(DataFusionError::External(Box::new(error)))
            }
            _ => Ok(RelationPlanning::Original(Box::new(relation))),
        }
    }
}

/// The value of an argument, which is a constant integer; `None` if it is NULL.
fn number(
    function: &str,
    argument: &FunctionArg,
    context: &mut dyn RelationPlannerContext,
) -> Result<Option<i64>> {
    let at = Position::of_span(argument.span());
    let constant = || {
        let message = format!(
            "in FROM, {function} takes constants; write UNNEST({function}(…)) for values of columns"
        );
        wrong(message, at)
    };
    let FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) = argument else {
        return Err(wrong(format!("{function} takes arguments without names"), at));
    };
    let nothing = DFSchema::empty();
    let planned = context.sql_to_expr(argument.clone(), &nothing).map_err(|_| constant())?;
    if planned.contains_outer() {
        return Err(constant());
    }
    let data_type = planned.get_type(&nothing)?;
    if !data_type.is_integer() && data_type != DataType::Null {
        let message = format!("{function} in FROM takes integers, not {data_type}");
        return Err(wrong(message, at));
    }
    match value(&planned)?.cast_to(&DataType::Int64)? {
        ScalarValue::Int64(number) => Ok(number),
        _ => Err(constant()),
    }
}

/// The value of a constant expression.
fn value(expression: &Expr) -> Result<ScalarValue> {
    let physical = create_physical_expr(
        expression,
        &DFSchema::empty(),
        &ExecutionProps::new(),
        &PhysicalPlanningContext::default(),
    )?;
    let row = one_row();
    let values = checked(physical, row.schema_ref())?.evaluate(&row)?.into_array(1)?;
    ScalarValue::try_from_array(&values, 0)
}

fn wrong(message: String, at: Option<Position>) -> DataFusionError {
    DataFusionError::External(Box::new(Error::new(message, at)))
}
