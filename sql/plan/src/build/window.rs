//! Window functions.

use std::sync::Arc;

use alluvium_dataflow::reductions::window::{Argument, WindowFunction};
use alluvium_sql_functions::moving::over;
use alluvium_sql_planner::expressions::frame_bounds::has_offset;
use alluvium_sql_syntax::error::{Error, Result};
use arrow::compute::SortOptions;
use arrow::datatypes::{DECIMAL256_MAX_PRECISION, DataType, Field, FieldRef, Schema};
use datafusion_common::DFSchema;
use datafusion_expr::expr::{NullTreatment, WindowFunctionParams};
use datafusion_expr::logical_plan as logical;
use datafusion_expr::{Expr, SortExpr, WindowFrame, WindowFrameUnits, WindowFunctionDefinition};
use datafusion_functions_aggregate::sum::sum_udaf;
use datafusion_physical_expr::expressions::{CastExpr, Literal};

use super::projection::{Projection, options};
use super::{Builder, check_columns};
use crate::IncrementalPlan;
use crate::expression::Expression;

/// A call of a window function.
type Call = datafusion_expr::expr::WindowFunction;

/// The calls of one node that are over the same partitions in the same order.
struct Group<'a> {
    partition_by: &'a [Expr],
    order_by: &'a [SortExpr],
    /// The numbers of the calls among the expressions of the node.
    members: Vec<usize>,
}

impl Builder<'_> {
    /// A node for each partitioning and order, one above the other.
    pub(super) fn window(&self, window: &logical::Window) -> Result<IncrementalPlan> {
        let below = window.input.schema();
        let mut plan = self.build(&window.input)?;
        let width = plan.width();
        let calls: Option<Vec<&Call>> = window.window_expr.iter().map(call).collect();
        let Some(calls) = calls else { return self.refuse("OVER") };
        // The output column of each call.
        let mut places = vec![0; calls.len()];
        for group in grouped(&calls) {
            let fields = &window.schema.fields()[width..];
            let members: Vec<(&Call, &Field)> = group
                .members
                .iter()
                .map(|&member| (calls[member], fields[member].as_ref()))
                .collect();
            plan = self.windows(plan, below, &group, &members)?;
            let first = plan.width() - group.members.len();
            for (number, &member) in group.members.iter().enumerate() {
                places[member] = first + number;
            }
        }
        let identity = plan.identity();
        let project = (0..width).chain(places).zip(window.schema.fields()).map(|(place, field)| {
            let (column, name) = identity[place].clone();
            match plan.schema.field(place).data_type() == field.data_type() {
                true => (column, name),
                // A sum that does not fit its type is an error of the row.
                false => {
                    let cast = CastExpr::new(column, field.data_type().clone(), None);
                    (Arc::new(cast) as Expression, name)
                }
            }
        });
        let project = project.collect();
        Ok(IncrementalPlan::map(plan, None, project)?)
    }

    /// The node of one group, whose members are given with the columns of their results.
    fn windows(
        &self,
        input: IncrementalPlan,
        below: &DFSchema,
        group: &Group<'_>,
        members: &[(&Call, &Field)],
    ) -> Result<IncrementalPlan> {
        let mut projection = Projection::of(&input);
        let mut keys = Vec::with_capacity(group.partition_by.len());
        for key in group.partition_by {
            keys.push(projection.place(self.expression(key, below)?, "key"));
        }
        let mut order = self.order(group.order_by, below, &mut projection)?;
        // A RANGE with an offset is counted from the value of a row, also if that is a constant.
        if order.is_empty()
            && members.iter().any(|(call, _)| has_range_offset(&call.params.window_frame))
            && let Some(sort) = group.order_by.first()
        {
            let key = projection.place(self.expression(&sort.expr, below)?, "order");
            order.push((key, options(sort)));
        }
        let mut functions = Vec::with_capacity(members.len());
        for (call, field) in members {
            functions.push(self.function(call, field, below, &order, &mut projection)?);
        }
        let input = projection.over(input)?;
        check_columns(&stored(&input.schema))?;
        for function in &functions {
            // A function that DataFusion cannot evaluate is refused now, and not when there are rows.
            let evaluation = function
                .expression(&input.schema, &order)
                .and_then(|expression| expression.create_window_fn().map(|_| ()));
            if let Err(error) = evaluation {
                let position = self.landmarks.window.or(self.landmarks.start);
                return Err(Error::from_datafusion(&error).at(position));
            }
        }
        let ties = input.properties.tie_breakers(&keys, &order);
        Ok(IncrementalPlan::window(input, keys, order, ties, functions))
    }

    /// One call, whose result is the column `field` and whose arguments are added to `projection`.
    fn function(
        &self,
        call: &Call,
        field: &Field,
        below: &DFSchema,
        order: &[(usize, SortOptions)],
        projection: &mut Projection,
    ) -> Result<WindowFunction> {
        let WindowFunctionParams { args, window_frame, filter, null_treatment, distinct, .. } =
            &call.params;
        let exact = if is_sum(&call.fun) { exact_sum(field.data_type()) } else { None };
        let mut arguments = Vec::with_capacity(args.len());
        for argument in args {
            let mut argument = self.expression(argument, below)?;
            if let Some((input, _)) = &exact {
                argument = Arc::new(CastExpr::new(argument, input.clone(), None));
            }
            arguments.push(match argument.downcast_ref::<Literal>() {
                Some(literal) => Argument::Constant(literal.value().clone()),
                None => Argument::Column(projection.place(argument, "input")),
            });
        }
        let filter = match filter {
            Some(filter) => Some(projection.place(self.expression(filter, below)?, "filter")),
            None => None,
        };
        let nullable = field.is_nullable() || !NEVER_NULL.contains(&call.fun.name());
        let (function, result) = match exact {
            Some((_, sum)) => (
                WindowFunctionDefinition::AggregateUDF(over(sum_udaf(), window_frame)),
                Field::new(field.name(), sum, true),
            ),
            None => (call.fun.clone(), field.clone().with_nullable(nullable)),
        };
        Ok(WindowFunction {
            function,
            arguments,
            frame: Arc::new(framed(window_frame, order)),
            filter,
            distinct: *distinct,
            ignore_nulls: *null_treatment == Some(NullTreatment::IgnoreNulls),
            result: Arc::new(result),
        })
    }
}

/// The calls grouped by their partitions and order.
fn grouped<'a>(calls: &[&'a Call]) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for (number, call) in calls.iter().enumerate() {
        let (partition_by, order_by) = (&call.params.partition_by[..], &call.params.order_by[..]);
        match groups
            .iter_mut()
            .find(|group| group.partition_by == partition_by && group.order_by == order_by)
        {
            Some(group) => group.members.push(number),
            None => groups.push(Group { partition_by, order_by, members: vec![number] }),
        }
    }
    groups
}

/// The type in which a sum of type `result` is computed, so that no sum wraps around, and the type of DataFusion's sum of
/// it; `None` for sums that do not wrap.
fn exact_sum(result: &DataType) -> Option<(DataType, DataType)> {
    match *result {
        DataType::Decimal128(precision, scale) => {
            let sum = DECIMAL256_MAX_PRECISION.min(precision + 10);
            Some((DataType::Decimal256(precision, scale), DataType::Decimal256(sum, scale)))
        }
        _ if result.is_integer() => {
            Some((DataType::Decimal128(20, 0), DataType::Decimal128(30, 0)))
        }
        _ => None,
    }
}

/// The columns that tables can store too: not the wide decimals that are summed.
fn stored(schema: &Schema) -> Schema {
    let is_wide = |field: &&FieldRef| matches!(field.data_type(), DataType::Decimal256(_, _));
    Schema::new(schema.fields().iter().filter(|field| !is_wide(field)).cloned().collect::<Vec<_>>())
}

/// Functions that always have a value.
const NEVER_NULL: [&str; 7] =
    ["row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "count"];

fn is_sum(function: &WindowFunctionDefinition) -> bool {
    matches!(function, WindowFunctionDefinition::AggregateUDF(function) if function.name() == "sum")
}

/// The frame as DataFusion evaluates it.
fn framed(frame: &WindowFrame, order: &[(usize, SortOptions)]) -> WindowFrame {
    match frame.units {
        WindowFrameUnits::Groups | WindowFrameUnits::Range if has_offset(frame) => frame.clone(),
        // Without an order all rows are peers: each of them sees all.
        WindowFrameUnits::Range | WindowFrameUnits::Groups if order.is_empty() => {
            WindowFrame::new(None)
        }
        // Peers are a group.
        WindowFrameUnits::Groups => WindowFrame::new_bounds(
            WindowFrameUnits::Range,
            frame.start_bound.clone(),
            frame.end_bound.clone(),
        ),
        WindowFrameUnits::Range | WindowFrameUnits::Rows => frame.clone(),
    }
}

/// Whether a frame has the rows whose values are near, by a number or an interval.
fn has_range_offset(frame: &WindowFrame) -> bool {
    frame.units == WindowFrameUnits::Range && has_offset(frame)
}

fn call(expr: &Expr) -> Option<&Call> {
    match expr {
        Expr::WindowFunction(call) => Some(call),
        Expr::Alias(alias) => call(&alias.expr),
        _ => None,
    }
}
