//! Parameters: `$1`, `$2`, …

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use alluvium_sql_functions::texts;
use alluvium_sql_syntax::error::{Error, Position, Result};
use alluvium_sql_syntax::statement::StatementKind;
use alluvium_sql_syntax::walk::walk;
use arrow::datatypes::{DataType, Field};
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{DataFusionError, ScalarValue};
use datafusion_expr::expr::Placeholder;
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::{Expr, LogicalPlan};
use sqlparser::ast::{self, Visitor};

use crate::rules::numbers::loses_fraction;

/// Refuses a statement whose parameters are not exactly `$1` to the number of values that are given.
pub fn check_parameters(statement: &StatementKind, given: usize) -> Result<()> {
    let mut uses = Uses { given, used: vec![false; given] };
    walk_parameters(statement, &mut uses)?;
    match uses.used.iter().position(|used| !used) {
        None => Ok(()),
        Some(unused) => {
            let message = format!("there is a value for ${}, which does not occur", unused + 1);
            Err(Error::new(message, None))
        }
    }
}

/// The number of a statement's parameters, which are `$1` to this number.
///
/// # Errors
/// If a parameter has another name, or if one between does not occur.
pub fn parameter_count(statement: &StatementKind) -> Result<usize> {
    let mut named = Named::default();
    walk_parameters(statement, &mut named)?;
    let count = named.places.len();
    match (0..count).find(|place| !named.places.contains(place)) {
        None => Ok(count),
        Some(missing) => {
            let message = format!("parameter ${} does not occur", missing + 1);
            Err(Error::new(message, None))
        }
    }
}

/// Visits the parts of a statement that may have parameters.
fn walk_parameters(
    statement: &StatementKind,
    visitor: &mut dyn Visitor<Break = Error>,
) -> Result<()> {
    match statement {
        StatementKind::Query(query)
        | StatementKind::ExplainSelect { query, .. }
        | StatementKind::CreateTableAs { query, .. } => walk(query, visitor),
        StatementKind::LockingQuery(locking) => walk(&locking.query, visitor),
        StatementKind::DeclareCursor(cursor) => walk_parameters(&cursor.query.kind, visitor),
        StatementKind::Execute { values: Some(values), .. } => {
            walk_parameters(&values.kind, visitor)
        }
        StatementKind::Insert(insert) => walk(insert, visitor),
        StatementKind::Update(update) => walk(update, visitor),
        StatementKind::Delete(delete) => walk(delete, visitor),
        _ => Ok(()),
    }
}

/// The parameter that an expression is, and where.
fn parameter(expression: &ast::Expr) -> Option<(&str, Option<Position>)> {
    let ast::Expr::Value(value) = expression else { return None };
    let ast::Value::Placeholder(name) = &value.value else { return None };
    Some((name, Position::of_span(value.span)))
}

fn misnamed(name: &str) -> String {
    format!("parameters are written $1, $2, …, not {name}")
}

/// The parameters of a statement, by place.
#[derive(Default)]
struct Named {
    places: BTreeSet<usize>,
}

impl Visitor for Named {
    type Break = Error;

    fn pre_visit_expr(&mut self, expression: &ast::Expr) -> ControlFlow<Error> {
        let Some((name, position)) = parameter(expression) else {
            return ControlFlow::Continue(());
        };
        match place(name) {
            Some(place) => {
                self.places.insert(place);
                ControlFlow::Continue(())
            }
            None => ControlFlow::Break(Error::new(misnamed(name), position)),
        }
    }
}

struct Uses {
    given: usize,
    used: Vec<bool>,
}

impl Visitor for Uses {
    type Break = Error;

    fn pre_visit_expr(&mut self, expression: &ast::Expr) -> ControlFlow<Error> {
        let Some((name, position)) = parameter(expression) else {
            return ControlFlow::Continue(());
        };
        let message = match place(name) {
            Some(place) if place < self.given => {
                self.used[place] = true;
                return ControlFlow::Continue(());
            }
            Some(_) => format!("there is no value for parameter {name}"),
            None => misnamed(name),
        };
        ControlFlow::Break(Error::new(message, position))
    }
}

/// The index of a parameter's value.
pub(crate) fn place(name: &str) -> Option<usize> {
    name.strip_prefix('$')?.parse::<usize>().ok()?.checked_sub(1)
}

/// The plan with values in place of its parameters, cast to the types that the context asks for.
///
/// The statement has passed [`check_parameters`].
pub fn bind(plan: LogicalPlan, values: &[ScalarValue]) -> Result<LogicalPlan> {
    replace(plan, values, value)
}

/// The plan with open parameters that have types: those that the context asks for, else these. Each may be NULL.
///
/// There is a type for each parameter.
pub fn typed(plan: LogicalPlan, types: &[DataType]) -> Result<LogicalPlan> {
    replace(plan, types, |parameter, types| {
        let field = match &parameter.field {
            Some(field) => field.as_ref().clone().with_nullable(true),
            None => Field::new("", given(parameter, types)?.clone(), true),
        };
        let id = parameter.id.clone();
        Ok(Expr::Placeholder(Placeholder::new_with_field(id, Some(Arc::new(field)))))
    })
}

/// The plan with other expressions in place of its parameters, made of what is given for each.
fn replace<G>(
    plan: LogicalPlan,
    values: &[G],
    replacement: impl Fn(&Placeholder, &[G]) -> datafusion_common::Result<Expr>,
) -> Result<LogicalPlan> {
    if values.is_empty() {
        return Ok(plan);
    }
    let bound = plan.transform_up_with_subqueries(|node| {
        let names = NamePreserver::new(&node);
        let node = node.map_expressions(|expression| {
            let name = names.save(&expression);
            let bound = expression.transform_up(|part| match part {
                Expr::Placeholder(parameter) => {
                    replacement(&parameter, values).map(Transformed::yes)
                }
                part => Ok(Transformed::no(part)),
            })?;
            Ok(bound.update_data(|expression| name.restore(expression)))
        })?;
        match node.transformed {
            true => node.map_data(LogicalPlan::recompute_schema),
            false => Ok(node),
        }
    });
    bound.map(|bound| bound.data).map_err(|error| Error::from_datafusion(&error))
}

fn wrong(message: String) -> DataFusionError {
    DataFusionError::External(Box::new(Error::new(message, None)))
}

/// The value given for a parameter.
fn given<'a, G>(parameter: &Placeholder, values: &'a [G]) -> datafusion_common::Result<&'a G> {
    let value = place(&parameter.id).and_then(|place| values.get(place));
    value.ok_or_else(|| wrong(format!("there is no value for parameter {}", parameter.id)))
}

/// The value of a parameter, cast to the type that the context asks for.
///
/// # Errors
/// If there is none, or if it does not fit.
pub fn fit(parameter: &Placeholder, values: &[ScalarValue]) -> Result<ScalarValue> {
    fitting(parameter, values).map_err(|error| Error::from_datafusion(&error))
}

/// The value in place of a parameter.
fn value(parameter: &Placeholder, values: &[ScalarValue]) -> datafusion_common::Result<Expr> {
    fitting(parameter, values).map(|value| Expr::Literal(value, None))
}

fn fitting(
    parameter: &Placeholder,
    values: &[ScalarValue],
) -> datafusion_common::Result<ScalarValue> {
    let value = given(parameter, values)?;
    Ok(match &parameter.field {
        Some(field) if *field.data_type() != value.data_type() => fitted(value, field.data_type())
            .ok_or_else(|| {
                let (given, wanted) = (value.data_type(), field.data_type());
                wrong(format!(
                    "the value {value} of type {given} for parameter {} does not fit type {wanted}",
                    parameter.id
                ))
            })?,
        _ => value.clone(),
    })
}

/// The value with another type, unless that type cannot hold it. An integer does not hold a fraction.
fn fitted(value: &ScalarValue, wanted: &DataType) -> Option<ScalarValue> {
    let fitted = texts::cast_value(value, wanted).ok()?;
    let given = value.data_type();
    let is_held = match value {
        _ if !loses_fraction(&given, wanted) => true,
        // -0.0 is held.
        ScalarValue::Float64(Some(number)) => number.fract() == 0.0,
        value => fitted.cast_to(&given).is_ok_and(|back| back == *value),
    };
    is_held.then_some(fitted)
}
