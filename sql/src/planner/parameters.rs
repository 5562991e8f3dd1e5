//! Parameters: `$1`, `$2`, …

use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{DataFusionError, ScalarValue};
use datafusion_expr::expr::Placeholder;
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::{Expr, LogicalPlan};
use sqlparser::ast::{self, Visitor};

use super::numbers::loses_fraction;
use crate::error::{Error, Position, Result};
use crate::statement::StatementKind;
use crate::walk::walk;

const MILLISECONDS_IN_DAY: i64 = 24 * 60 * 60 * 1000;

/// Refuses a statement whose parameters are not exactly `$1` to the number of values, and values that no type has.
pub fn check_parameters(statement: &StatementKind, values: &[ScalarValue]) -> Result<()> {
    for (place, value) in values.iter().enumerate() {
        if let ScalarValue::Date64(Some(milliseconds)) = value
            && i32::try_from(milliseconds.div_euclid(MILLISECONDS_IN_DAY)).is_err()
        {
            // DataFusion cannot even print some of them.
            let message = format!("the value of ${}, {milliseconds} ms, is no date", place + 1);
            return Err(Error::new(message, None));
        }
    }
    let given = values.len();
    let mut uses = Uses { given, used: vec![false; given] };
    match statement {
        StatementKind::Query(query)
        | StatementKind::ExplainSelect(query)
        | StatementKind::CreateTableAs { query, .. } => walk(query, &mut uses),
        StatementKind::Insert(insert) => walk(insert, &mut uses),
        StatementKind::Update(update) => walk(update, &mut uses),
        StatementKind::Delete(delete) => walk(delete, &mut uses),
        _ => Ok(()),
    }?;
    match uses.used.iter().position(|used| !used) {
        None => Ok(()),
        Some(unused) => {
            let message = format!("there is a value for ${}, which does not occur", unused + 1);
            Err(Error::new(message, None))
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
        let ast::Expr::Value(value) = expression else { return ControlFlow::Continue(()) };
        let ast::Value::Placeholder(name) = &value.value else { return ControlFlow::Continue(()) };
        let message = match place(name) {
            Some(place) if place < self.given => {
                self.used[place] = true;
                return ControlFlow::Continue(());
            }
            Some(_) => format!("there is no value for parameter {name}"),
            None => format!("parameters are written $1, $2, …, not {name}"),
        };
        ControlFlow::Break(Error::new(message, Position::of_span(value.span)))
    }
}

/// The index of a parameter's value.
fn place(name: &str) -> Option<usize> {
    name.strip_prefix('$')?.parse::<usize>().ok()?.checked_sub(1)
}

/// The plan with values in place of its parameters, cast to the types that the context asks for.
///
/// The statement has passed [`check_parameters`].
pub fn bind(plan: LogicalPlan, values: &[ScalarValue]) -> Result<LogicalPlan> {
    replace(plan, values, value)
}

/// The plan with open parameters that have types: those that the context asks for, else those of the values. Each may be
/// NULL.
///
/// The statement has passed [`check_parameters`].
pub fn typed(plan: LogicalPlan, values: &[ScalarValue]) -> Result<LogicalPlan> {
    replace(plan, values, |parameter, values| {
        let field = match &parameter.field {
            Some(field) => field.as_ref().clone().with_nullable(true),
            None => Field::new("", given(parameter, values)?.data_type(), true),
        };
        let id = parameter.id.clone();
        Ok(Expr::Placeholder(Placeholder::new_with_field(id, Some(Arc::new(field)))))
    })
}

/// The plan with other expressions in place of its parameters.
fn replace(
    plan: LogicalPlan,
    values: &[ScalarValue],
    replacement: impl Fn(&Placeholder, &[ScalarValue]) -> datafusion_common::Result<Expr>,
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

/// The value that is given for a parameter.
fn given<'a>(
    parameter: &Placeholder,
    values: &'a [ScalarValue],
) -> datafusion_common::Result<&'a ScalarValue> {
    let value = place(&parameter.id).and_then(|place| values.get(place));
    value.ok_or_else(|| wrong(format!("there is no value for parameter {}", parameter.id)))
}

/// The value in place of a parameter.
fn value(parameter: &Placeholder, values: &[ScalarValue]) -> datafusion_common::Result<Expr> {
    let value = given(parameter, values)?;
    let value = match &parameter.field {
        Some(field) if *field.data_type() != value.data_type() => fitted(value, field.data_type())
            .ok_or_else(|| {
                let (given, wanted) = (value.data_type(), field.data_type());
                wrong(format!(
                    "the value {value} of type {given} for parameter {} does not fit type {wanted}",
                    parameter.id
                ))
            })?,
        _ => value.clone(),
    };
    Ok(Expr::Literal(value, None))
}

/// The value with another type, unless that type cannot hold it. An integer does not hold a fraction.
fn fitted(value: &ScalarValue, wanted: &DataType) -> Option<ScalarValue> {
    let fitted = value.cast_to(wanted).ok()?;
    let given = value.data_type();
    let is_held = match value {
        _ if !loses_fraction(&given, wanted) => true,
        // -0.0 is held.
        ScalarValue::Float64(Some(number)) => number.fract() == 0.0,
        value => fitted.cast_to(&given).is_ok_and(|back| back == *value),
    };
    is_held.then_some(fitted)
}
