//! CHECK: conditions that the rows of a table have to meet.

use std::sync::Arc;

use alluvium_sql_syntax::error::{Error, Result};
use alluvium_sql_syntax::name;
use alluvium_sql_syntax::statement::{Check, TableDefinition, check_names};
use arrow::array::{Array, AsArray, BooleanArray, RecordBatch};
use arrow::datatypes::DataType;
use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_expr::execution_props::ExecutionProps;
use datafusion_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion_expr::{Expr, LogicalPlan, Volatility};
use datafusion_physical_expr::{PhysicalExpr, create_physical_expr};

use super::query::{from, named, select};
use super::returning::is_row_by_row;
use super::statement_rows::NAME;
use super::target::Target;
use crate::context::{Nothing, Scope};
use crate::expressions::evaluation::checked;
use crate::registered::RegisteredFunctions;
use crate::rules::optimizer::ViewOptimizer;
use crate::type_name;

/// The conditions of a table, ready to be evaluated.
#[derive(Debug)]
pub struct Checks(Vec<Compiled>);

#[derive(Debug)]
struct Compiled {
    name: String,
    /// As it was written.
    text: String,
    condition: Arc<dyn PhysicalExpr>,
    /// The columns that it reads.
    columns: Vec<usize>,
}

/// A row that does not meet a condition.
#[derive(Clone, Copy, Debug)]
pub struct Violation<'a> {
    /// The name of the condition.
    pub name: &'a str,
    /// The condition, as it was written.
    pub condition: &'a str,
    /// The columns that it reads.
    pub columns: &'a [usize],
    /// The first row that does not meet it.
    pub row: usize,
}

impl Checks {
    /// The first of these rows, which have the columns of the table, that does not meet the first condition that some do not.
    ///
    /// # Errors
    /// If a condition cannot be evaluated.
    pub fn violation(&self, rows: &RecordBatch) -> Result<Option<Violation<'_>>> {
        for Compiled { name, text, condition, columns } in &self.0 {
            let holds =
                condition.evaluate(rows).and_then(|holds| holds.into_array(rows.num_rows()));
            let holds = holds.map_err(|error| Error::from_datafusion(&error))?;
            let holds: &BooleanArray = holds.as_boolean();
            if holds.has_false() {
                let fails = |row: &usize| holds.is_valid(*row) && !holds.value(*row);
                let row = (0..holds.len()).find(fails).unwrap_or_default();
                return Ok(Some(Violation { name, condition: text, columns, row }));
            }
        }
        Ok(None)
    }
}

/// Compiles the conditions of a table.
pub fn checks(optimizer: &ViewOptimizer, table: &TableDefinition) -> Result<Checks> {
    let columns: Vec<&str> = table.schema.fields().iter().map(|field| &**field.name()).collect();
    let names = check_names(&table.name, &columns, &table.checks)?;
    let target = Target::of_definition(table);
    let compile = |(check, name): (&Check, String)| {
        compiled(optimizer, check, name, &target).map_err(|error| error.at(check.position))
    };
    table.checks.iter().zip(names).map(compile).collect::<Result<_>>().map(Checks)
}

fn compiled(
    optimizer: &ViewOptimizer,
    check: &Check,
    name: String,
    target: &Target,
) -> Result<Compiled> {
    let registered = RegisteredFunctions::default();
    let scope = Scope { catalog: &Nothing, registered: &registered };
    let items = vec![named(check.condition.clone(), "condition")];
    let (_, own_name) = name::split(&target.name);
    let query = select(items, vec![from(NAME, &own_name)], None);
    let plan = target.queried(query, scope)?;
    if !is_row_by_row(&plan) {
        let what = "an aggregate, a window function, UNNEST or a subquery in CHECK";
        return Err(Error::not_supported(what, None));
    }
    let plan = optimizer.optimize(plan).map_err(|error| Error::from_datafusion(&error))?;
    let LogicalPlan::Projection(projection) = &plan else {
        return Err(Error::not_supported("this condition in CHECK", None));
    };
    let [condition] = &projection.expr[..] else {
        return Err(Error::not_supported("this condition in CHECK", None));
    };
    depends_on_rows_alone(condition)?;
    let data_type = plan.schema().field(0).data_type().clone();
    if data_type != DataType::Boolean {
        let message = format!("a CHECK is a condition, and not of type {}", type_name(&data_type));
        return Err(Error::new(message, None));
    }
    let schema = projection.input.schema();
    let mut columns: Vec<usize> = condition
        .column_refs()
        .into_iter()
        .filter_map(|column| schema.maybe_index_of_column(column))
        .collect();
    columns.sort_unstable();
    let physical = create_physical_expr(
        condition,
        schema,
        &ExecutionProps::new(),
        &PhysicalPlanningContext::default(),
    );
    let condition = physical
        .and_then(|condition| checked(condition, schema.as_arrow()))
        .map_err(|error| Error::from_datafusion(&error))?;
    Ok(Compiled { name, text: check.condition.to_string(), condition, columns })
}

/// Refuses conditions that can hold now and not later.
fn depends_on_rows_alone(condition: &Expr) -> Result<()> {
    let mut refused = None;
    let walked = condition.apply(|part| {
        refused = match part {
            Expr::Placeholder(parameter) => {
                Some(format!("the parameter {} in CHECK", parameter.id))
            }
            Expr::ScalarFunction(call)
                if call.func.signature().volatility != Volatility::Immutable =>
            {
                Some(format!("{}() in CHECK, which depends on more than the row", call.func.name()))
            }
            _ => return Ok(TreeNodeRecursion::Continue),
        };
        Ok(TreeNodeRecursion::Stop)
    });
    walked.map_err(|error| Error::from_datafusion(&error))?;
    match refused {
        Some(what) => Err(Error::not_supported(what, None)),
        None => Ok(()),
    }
}
