//! The types of parameters, as far as the places where they stand tell.
//!
//! Most come from DataFusion, which gives a parameter the type of what it is compared, computed or listed with, or of the
//! column that it is written to. Beyond that the type of a CAST counts, that of the column into which a query's result is
//! inserted, that of the bounds of a BETWEEN, a list of what is compared with ANY of it, and BIGINT in LIMIT and OFFSET.

use alluvium_sql_syntax::error::{Error, Result};
use arrow::datatypes::DataType;
use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_common::{Column, DFSchema, Result as PlanResult};
use datafusion_expr::expr::{Between, Cast, Placeholder};
use datafusion_expr::utils::merge_schema;
use datafusion_expr::{Expr, ExprSchemable, LogicalPlan, Projection};

use crate::statements::parameters::place;

/// The types of the parameters of a statement that has these plans, by place; `None` where nothing tells.
///
/// Of several places that tell the first counts: a value is cast for each.
pub(crate) fn parameter_types(
    plans: &[&LogicalPlan],
    count: usize,
) -> Result<Vec<Option<DataType>>> {
    let mut types = Types { told: vec![None; count], hinted: vec![None; count] };
    if count > 0 {
        for plan in plans {
            types.add(plan).map_err(|error| Error::from_datafusion(&error))?;
        }
    }
    let types = types.told.into_iter().zip(types.hinted);
    Ok(types.map(|(told, hinted)| told.or(hinted)).collect())
}

struct Types {
    /// The types that values are cast to.
    told: Vec<Option<DataType>>,
    /// The types for values that may have any.
    hinted: Vec<Option<DataType>>,
}

impl Types {
    fn add(&mut self, plan: &LogicalPlan) -> PlanResult<()> {
        plan.apply_with_subqueries(|node| {
            if let LogicalPlan::Limit(limit) = node {
                for bound in [&limit.skip, &limit.fetch].into_iter().flatten() {
                    self.hint(bound, &DataType::Int64);
                }
            }
            let schema = merge_schema(&node.inputs());
            node.apply_expressions(|expression| {
                expression.apply(|part| {
                    self.part(part, node, &schema);
                    Ok(TreeNodeRecursion::Continue)
                })
            })
        })?;
        Ok(())
    }

    fn part(&mut self, part: &Expr, node: &LogicalPlan, schema: &DFSchema) {
        match part {
            Expr::Placeholder(Placeholder { id, field: Some(field) }) => {
                set(&mut self.told, id, field.data_type());
            }
            Expr::Cast(Cast { expr, field }) => match (expr.as_ref(), node) {
                (Expr::Column(column), LogicalPlan::Projection(Projection { input, .. })) => {
                    if let Some(parameter) = selected(input, column) {
                        self.hint(parameter, field.data_type());
                    }
                }
                (expression, _) => self.hint(expression, field.data_type()),
            },
            // `value = ANY($1)`
            Expr::ScalarFunction(call) if call.name() == "array_has" => {
                if let [list, value] = &call.args[..]
                    && let Ok(data_type) = value.get_type(schema)
                {
                    self.hint(list, &DataType::new_list(data_type, true));
                }
            }
            Expr::Between(Between { expr, low, high, .. }) => {
                let bound = [low, high].into_iter().find_map(|bound| {
                    let bound = bound.get_type(schema).ok();
                    bound.filter(|data_type| !data_type.is_null())
                });
                if let Some(data_type) = bound {
                    self.hint(expr, &data_type);
                }
            }
            _ => {}
        }
    }

    /// An expression, if it is a parameter or one of several by CASE, may have this type.
    fn hint(&mut self, expression: &Expr, data_type: &DataType) {
        match expression {
            Expr::Placeholder(Placeholder { id, field: None }) => {
                set(&mut self.hinted, id, data_type);
            }
            Expr::Case(case) => {
                let values = case.when_then_expr.iter().map(|(_, value)| value);
                values.chain(&case.else_expr).for_each(|value| self.hint(value, data_type));
            }
            _ => {}
        }
    }
}

/// Notes a type, if none is known.
fn set(types: &mut [Option<DataType>], id: &str, data_type: &DataType) {
    if let Some(known) = place(id).and_then(|place| types.get_mut(place)) {
        known.get_or_insert_with(|| data_type.clone());
    }
}

/// The parameter that a column of a query's result is.
fn selected<'a>(plan: &'a LogicalPlan, column: &Column) -> Option<&'a Expr> {
    match plan {
        LogicalPlan::Projection(projection) => {
            let place = projection.schema.maybe_index_of_column(column)?;
            let mut expression = &projection.expr[place];
            loop {
                expression = match expression {
                    Expr::Alias(alias) => &alias.expr,
                    Expr::Cast(cast) => &cast.expr,
                    Expr::Column(column) => return selected(&projection.input, column),
                    parameter @ Expr::Placeholder(_) => return Some(parameter),
                    _ => return None,
                };
            }
        }
        LogicalPlan::SubqueryAlias(alias) => {
            let place = alias.schema.maybe_index_of_column(column)?;
            let column = Column::from(alias.input.schema().qualified_field(place));
            selected(&alias.input, &column)
        }
        _ => None,
    }
}
