//! Window functions.

use std::sync::Arc;

use alluvium_dataflow::window::{Argument, WindowFunction};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Field, Schema};
use datafusion_expr::expr::{NullTreatment, WindowFunctionParams};
use datafusion_expr::logical_plan as logical;
use datafusion_expr::{Expr, SortExpr, WindowFrame, WindowFrameUnits, WindowFunctionDefinition};
use datafusion_physical_expr::expressions::{CastExpr, Literal};

use super::build::{Builder, check_columns};
use super::expression::Expression;
use super::order::{Projection, ties};
use super::{IncrementalPlan, Node};
use crate::error::{Error, Result};

impl IncrementalPlan {
    /// All columns of the input, then those of window functions.
    pub(crate) fn window(
        input: IncrementalPlan,
        keys: Vec<usize>,
        order: Vec<(usize, SortOptions)>,
        ties: Option<Vec<usize>>,
        functions: Vec<WindowFunction>,
    ) -> IncrementalPlan {
        let results = functions.iter().map(|function| &function.result);
        let fields: Vec<_> = input.schema.fields().iter().chain(results).cloned().collect();
        IncrementalPlan {
            unique: input.unique.clone(),
            append_only: false,
            schema: Arc::new(Schema::new(fields)),
            node: Node::Window { input: Box::new(input), keys, order, ties, functions },
        }
    }
}

/// The functions of one node that are over the same rows in the same order.
struct Group<'a> {
    partition_by: &'a [Expr],
    order_by: &'a [SortExpr],
    /// Which expressions of the node.
    members: Vec<usize>,
}

impl Builder<'_> {
    /// A node for each partitioning and order, one above the other.
    pub(super) fn window(&self, window: &logical::Window) -> Result<IncrementalPlan> {
        let below = window.input.schema();
        let mut plan = self.build(&window.input)?;
        let width = plan.schema.fields().len();

        let mut groups: Vec<Group<'_>> = Vec::new();
        let mut calls = Vec::with_capacity(window.window_expr.len());
        for (number, expr) in window.window_expr.iter().enumerate() {
            let Some(call) = call(expr) else { return self.refuse("OVER") };
            let params = &call.params;
            let (partition_by, order_by) = (&params.partition_by[..], &params.order_by[..]);
            match groups
                .iter_mut()
                .find(|group| group.partition_by == partition_by && group.order_by == order_by)
            {
                Some(group) => group.members.push(number),
                None => groups.push(Group { partition_by, order_by, members: vec![number] }),
            }
            calls.push(call);
        }

        // Where the results of each expression end up.
        let mut places = vec![0; calls.len()];
        for group in groups {
            let mut projection = Projection::of(&plan);
            let mut keys = Vec::with_capacity(group.partition_by.len());
            for key in group.partition_by {
                keys.push(projection.place(self.expression(key, below)?, "key"));
            }
            let order = self.order(group.order_by, below, &mut projection)?;
            let mut functions = Vec::with_capacity(group.members.len());
            for &member in &group.members {
                let WindowFunctionParams { args, window_frame, filter, null_treatment, .. } =
                    &calls[member].params;
                let field = &window.schema.fields()[width + member];
                let exact = is_sum(&calls[member].fun) && field.data_type().is_integer();
                let mut arguments = Vec::with_capacity(args.len());
                for argument in args {
                    let mut argument = self.expression(argument, below)?;
                    if exact {
                        argument = Arc::new(CastExpr::new(argument, EXACT, None));
                    }
                    arguments.push(match argument.downcast_ref::<Literal>() {
                        Some(literal) => Argument::Constant(literal.value().clone()),
                        None => Argument::Column(projection.place(argument, "input")),
                    });
                }
                let filter = match filter {
                    Some(filter) => {
                        Some(projection.place(self.expression(filter, below)?, "filter"))
                    }
                    None => None,
                };
                let nullable =
                    field.is_nullable() || !NEVER_NULL.contains(&calls[member].fun.name());
                let result = match exact {
                    true => Field::new(field.name(), EXACT_SUM, true),
                    false => field.as_ref().clone().with_nullable(nullable),
                };
                functions.push(WindowFunction {
                    function: calls[member].fun.clone(),
                    arguments,
                    frame: Arc::new(framed(window_frame, &order)),
                    filter,
                    distinct: calls[member].params.distinct,
                    ignore_nulls: *null_treatment == Some(NullTreatment::IgnoreNulls),
                    result: Arc::new(result),
                });
            }
            let input = projection.over(plan)?;
            check_columns(&input.schema)?;
            for function in &functions {
                // What DataFusion cannot evaluate is refused now, and not when there are rows.
                let evaluation = function
                    .expression(&input.schema, &order)
                    .and_then(|expression| expression.create_window_fn().map(|_| ()));
                if let Err(error) = evaluation {
                    let position = self.landmarks.window.or(self.landmarks.start);
                    return Err(Error::from_datafusion(&error).at(position));
                }
            }
            let first = input.schema.fields().len();
            for (number, &member) in group.members.iter().enumerate() {
                places[member] = first + number;
            }
            let ties = ties(&input, &keys, &order);
            plan = IncrementalPlan::window(input, keys, order, ties, functions);
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
}

/// What whole numbers are added as, so that no sum wraps around.
const EXACT: DataType = DataType::Decimal128(20, 0);
/// What DataFusion makes of the sum.
const EXACT_SUM: DataType = DataType::Decimal128(30, 0);

/// Functions that always have a value.
const NEVER_NULL: [&str; 7] =
    ["row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "count"];

fn is_sum(function: &WindowFunctionDefinition) -> bool {
    matches!(function, WindowFunctionDefinition::AggregateUDF(function) if function.name() == "sum")
}

/// The frame as it is evaluated.
fn framed(frame: &WindowFrame, order: &[(usize, SortOptions)]) -> WindowFrame {
    match frame.units {
        // Without an order all rows are equal in it: each of them sees all.
        WindowFrameUnits::Range if order.is_empty() => WindowFrame::new(None),
        _ => frame.clone(),
    }
}

fn call(expr: &Expr) -> Option<&datafusion_expr::expr::WindowFunction> {
    match expr {
        Expr::WindowFunction(call) => Some(call),
        Expr::Alias(alias) => call(&alias.expr),
        _ => None,
    }
}
