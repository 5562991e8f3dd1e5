//! The DEFAULTs of a table.

use alluvium_sql_functions::sequence::generated_value;
use alluvium_sql_syntax::error::{Error, Position, Result};
use alluvium_sql_syntax::statement::TableDefinition;
use arrow::datatypes::DataType;
use datafusion_common::DFSchema;
use datafusion_expr::{Expr, ExprSchemable};
use datafusion_sql::planner::PlannerContext;
use sqlparser::ast;

use crate::checks::extent::Extent;
use crate::context::Context;
use crate::expressions::corrections;
use crate::rules::numbers;

/// The largest number of levels of a DEFAULT, which every INSERT evaluates.
const DEEPEST_DEFAULT: usize = 100;

/// The value of each column of a table where nothing else is given for it: an expression without columns, of the column's type. `None`
/// is NULL. Columns that are generated ask their sequences.
///
/// # Errors
/// If a DEFAULT is wrong, or is not of its column's type.
pub fn defaults(table: &TableDefinition) -> Result<Vec<Option<Expr>>> {
    let written = table.defaults.iter().zip(table.schema.fields());
    let planned = written.map(|(default, field)| {
        let Some(default) = default else { return Ok(None) };
        let expression = default.expression();
        let planned = plan(expression, field.data_type());
        planned.map(Some).map_err(|error| error.at(Position::of(expression)))
    });
    let mut defaults = planned.collect::<Result<Vec<_>>>()?;
    for (column, sequence, _) in table.sequences() {
        let data_type = table.schema.field(column).data_type();
        defaults[column] = Some(generated_value(&sequence, data_type));
    }
    Ok(defaults)
}

fn plan(expression: &ast::Expr, data_type: &DataType) -> Result<Expr> {
    let context = Context::of_nothing();
    let nothing = DFSchema::empty();
    context
        .planner()
        .sql_to_expr(expression.clone(), &nothing, &mut PlannerContext::new())
        .and_then(|default| Ok(corrections::in_expression(default)?.data))
        .and_then(|default| default.cast_to(data_type, &nothing))
        .and_then(numbers::exact)
        .map_err(|error| Error::from_datafusion(&error))
        .and_then(|default| match Extent::default().expression(&default, 0)? > DEEPEST_DEFAULT {
            true => {
                let message = format!("a DEFAULT nests at most {DEEPEST_DEFAULT} levels deep");
                Err(Error::new(message, None))
            }
            false => Ok(default),
        })
}
