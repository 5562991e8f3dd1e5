//! The arguments of a time window function.

use alluvium_sql_syntax::error::Position;
use alluvium_sql_syntax::syntax::{WindowArguments, described};
use arrow::datatypes::DataType;
use datafusion_common::{Column, DFSchema, Result, ScalarValue};
use datafusion_expr::planner::RelationPlannerContext;
use datafusion_expr::{Expr, LogicalPlan};

use super::{Duration, wrong};

/// The column of times.
pub(super) fn time(
    arguments: &WindowArguments<'_>,
    rows: &LogicalPlan,
    context: &mut dyn RelationPlannerContext,
) -> Result<Column> {
    let named = arguments.get("TIMECOL").map(described);
    let name = arguments.function.name();
    let Some([time]) = named.as_deref() else {
        return Err(wrong(format!("{name} takes one time column"), arguments.at));
    };
    let at = Position::of(*time).or(arguments.at);
    let planned = context.sql_to_expr((*time).clone(), rows.schema())?;
    let Expr::Column(column) = planned else {
        return Err(wrong(format!("the time of {name} must be a column"), at));
    };
    match rows.schema().qualified_field_from_column(&column)?.1.data_type() {
        DataType::Timestamp(_, _) => Ok(column),
        other => Err(wrong(
            format!("the time of {name} must be a TIMESTAMP: \"{}\" is {other}", column.name),
            at,
        )),
    }
}

/// The key columns of sessions.
pub(super) fn keys(
    arguments: &WindowArguments<'_>,
    rows: &LogicalPlan,
    context: &mut dyn RelationPlannerContext,
) -> Result<Vec<Expr>> {
    let named = arguments.get("KEY").map(described).unwrap_or_default();
    let keys = named.into_iter().map(|key| {
        let at = Position::of(key).or(arguments.at);
        match context.sql_to_expr(key.clone(), rows.schema())? {
            Expr::Column(column) => Ok(Expr::Column(column)),
            _ => Err(wrong(format!("a key of {} must be a column", arguments.function.name()), at)),
        }
    });
    keys.collect()
}

/// A required interval above zero.
pub(super) fn duration(
    arguments: &WindowArguments<'_>,
    name: &str,
    context: &mut dyn RelationPlannerContext,
) -> Result<Duration> {
    let duration = interval(arguments, name, context)?;
    match duration {
        Some(duration) if duration.0 > 0 => Ok(duration),
        _ => {
            let at = arguments.get(name).and_then(Position::of).or(arguments.at);
            let name = name.to_ascii_lowercase();
            Err(wrong(
                format!("the {name} of {} must be greater than zero", arguments.function.name()),
                at,
            ))
        }
    }
}

/// The offset of the windows; zero if it is left out.
pub(super) fn offset(
    arguments: &WindowArguments<'_>,
    context: &mut dyn RelationPlannerContext,
) -> Result<Duration> {
    Ok(interval(arguments, "OFFSET", context)?.unwrap_or(Duration(0)))
}

fn interval(
    arguments: &WindowArguments<'_>,
    name: &str,
    context: &mut dyn RelationPlannerContext,
) -> Result<Option<Duration>> {
    const DAY: i64 = 86_400_000_000_000;
    let Some(expression) = arguments.get(name) else { return Ok(None) };
    let planned = context.sql_to_expr(expression.clone(), &DFSchema::empty())?;
    let duration = match planned {
        Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(interval)), _)
            if interval.months == 0 =>
        {
            i64::from(interval.days)
                .checked_mul(DAY)
                .and_then(|days| days.checked_add(interval.nanoseconds))
        }
        _ => None,
    };
    duration.map(|duration| Some(Duration(duration))).ok_or_else(|| {
        let (function, name) = (arguments.function.name(), name.to_ascii_lowercase());
        let message =
            format!("the {name} of {function} must be an INTERVAL of days or shorter units");
        wrong(message, Position::of(expression).or(arguments.at))
    })
}
