//! `TUMBLE`, `HOP` and `SESSION`: relations with the time windows of their rows.
//!
//! ```sql
//! TABLE(TUMBLE(TABLE bid, DESCRIPTOR(date_time), INTERVAL 10 SECOND))
//! TUMBLE(bid, date_time, INTERVAL '10' SECOND)
//! ```
//!
//! are the same: all rows of `bid` whose time is not NULL, with `window_start` and `window_end`. Windows are aligned to
//! 1970-01-01 00:00 UTC, or to an offset from it that follows the size. A row is in one tumbling window, which is computed
//! as columns. It is in any number of hopping windows, so the list of their starts is computed and unnested. Its session
//! depends on the other rows of its key, and is computed by window functions. The result is an ordinary plan for queries
//! and views alike.
//!
//! `arguments` plans the arguments, `hop` computes the lists, `session` the sessions.
mod arguments;
pub mod hop;
mod session;

use std::sync::Arc;

use alluvium_sql_functions::FUNCTIONS;
use alluvium_sql_syntax::error::{Error, Position};
use alluvium_sql_syntax::syntax::{WindowArguments, WindowFunction, windowed};
use arrow::datatypes::DataType;
use datafusion_common::{
    Column, DataFusionError, NullHandling, Result, ScalarValue, TableReference, UnnestOptions,
};
use datafusion_expr::expr::ScalarFunction;
use datafusion_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion_expr::{Expr, LogicalPlan, LogicalPlanBuilder, lit};
use sqlparser::ast::{TableAlias, TableFactor};

use self::session::Bound;

const START: &str = "window_start";
const END: &str = "window_end";

/// Plans calls of these functions.
#[derive(Debug)]
pub(crate) struct TimeWindowPlanner;

impl RelationPlanner for TimeWindowPlanner {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let Some((function, name, arguments)) = windowed(&relation) else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let at = Position::of(name);
        let arguments = WindowArguments::read(function, arguments, at)
            .map_err(|error| DataFusionError::External(Box::new(error)))?;
        let (rows, time) = timed(&arguments, context)?;
        let size = arguments::duration(&arguments, "SIZE", context)?;
        let offset = arguments::offset(&arguments, context)?;
        let plan = match function {
            WindowFunction::Tumble => tumbling(rows, time, Windows { slide: size, size, offset }),
            WindowFunction::Hop => {
                let slide = arguments::duration(&arguments, "SLIDE", context)?;
                hopping(rows, time, Windows { slide, size, offset })
            }
            WindowFunction::Session => {
                let keys = arguments::keys(&arguments, &rows, context)?;
                sessions(rows, time, keys, size)
            }
        }?;
        let planned = PlannedRelation::new(plan, alias_of(relation));
        Ok(RelationPlanning::Planned(Box::new(planned)))
    }
}

fn alias_of(relation: TableFactor) -> Option<TableAlias> {
    match relation {
        TableFactor::TableFunction { alias, .. } | TableFactor::Table { alias, .. } => alias,
        _ => None,
    }
}

fn wrong(message: impl Into<String>, at: Option<Position>) -> DataFusionError {
    DataFusionError::External(Box::new(Error::new(message, at)))
}

/// Windows of one size.
struct Windows {
    /// The length from one window's start to the next one's.
    slide: Duration,
    size: Duration,
    /// The time that windows are aligned to.
    offset: Duration,
}

/// A length of time in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Duration(i64);

impl Duration {
    fn interval(self) -> Expr {
        lit(ScalarValue::new_interval_mdn(0, 0, self.0))
    }

    /// The length as a duration: adding a duration to a time adds numbers, unlike adding an interval.
    fn duration(self) -> Expr {
        lit(ScalarValue::DurationMicrosecond(Some(self.0.div_euclid(1_000))))
    }
}

/// The rows that have a time, and the column it is in.
fn timed(
    arguments: &WindowArguments<'_>,
    context: &mut dyn RelationPlannerContext,
) -> Result<(LogicalPlan, Column)> {
    let rows = context.plan(arguments.table())?;
    let time = arguments::time(arguments, &rows, context)?;
    let (_, field) = rows.schema().qualified_field_from_column(&time)?;
    let rows = match field.is_nullable() {
        true => LogicalPlanBuilder::from(rows)
            .filter(Expr::Column(time.clone()).is_not_null())?
            .build()?,
        false => rows,
    };
    Ok((rows, time))
}

fn tumbling(rows: LogicalPlan, time: Column, windows: Windows) -> Result<LogicalPlan> {
    let mut arguments = vec![windows.size.interval(), Expr::Column(time.clone())];
    if windows.offset != Duration(0) {
        let (_, field) = rows.schema().qualified_field_from_column(&time)?;
        let zone = match field.data_type() {
            DataType::Timestamp(_, zone) => zone.clone(),
            _ => None,
        };
        let origin = windows.offset.0.div_euclid(1_000);
        arguments.push(lit(ScalarValue::TimestampMicrosecond(Some(origin), zone)));
    }
    let start = Expr::ScalarFunction(ScalarFunction::new_udf(
        Arc::clone(&FUNCTIONS.scalar["date_bin"]),
        arguments,
    ));
    let all = all_columns(&rows);
    let relation = time.relation;
    let started = LogicalPlanBuilder::from(rows)
        .project(all.into_iter().chain([start.alias_qualified(relation.clone(), START)]))?;
    ended(started.build()?, relation, windows.size)
}

fn hopping(rows: LogicalPlan, time: Column, windows: Windows) -> Result<LogicalPlan> {
    let starts = Expr::ScalarFunction(ScalarFunction::new_udf(
        Arc::clone(&hop::HOP_STARTS),
        vec![
            Expr::Column(time.clone()),
            windows.slide.interval(),
            windows.size.interval(),
            windows.offset.interval(),
        ],
    ));
    // A name that no column has, because unnesting drops the qualifier.
    let list = Column::from_name("hop_starts(…)");
    let all = all_columns(&rows);
    let width = all.len();
    let relation = time.relation;
    let unnested = LogicalPlanBuilder::from(rows)
        .project(all.into_iter().chain([starts.alias(list.name())]))?
        .unnest_columns_with_options(
            vec![list],
            UnnestOptions::new().with_null_handling(NullHandling::Drop),
        )?
        .build()?;
    let mut columns = all_columns(&unnested);
    let start = columns.split_off(width).into_iter();
    let start = start.map(|start| start.alias_qualified(relation.clone(), START));
    let started =
        LogicalPlanBuilder::from(unnested).project(columns.into_iter().chain(start))?.build()?;
    ended(started, relation, windows.size)
}

fn sessions(
    rows: LogicalPlan,
    time: Column,
    keys: Vec<Expr>,
    gap: Duration,
) -> Result<LogicalPlan> {
    let all = all_columns(&rows);
    let relation = time.relation.clone();
    let bounds = [Bound::Start, Bound::End]
        .map(|bound| session::bound(bound, Expr::Column(time.clone()), keys.clone(), gap));
    let told = LogicalPlanBuilder::from(rows).window(bounds)?.build()?;
    let told_bounds = all_columns(&told).split_off(all.len()).into_iter();
    let named = told_bounds
        .zip([START, END])
        .map(|(bound, name)| bound.alias_qualified(relation.clone(), name));
    LogicalPlanBuilder::from(told).project(all.into_iter().chain(named))?.build()
}

/// Rows whose last column is the start of their window, with its end.
fn ended(
    rows: LogicalPlan,
    relation: Option<TableReference>,
    size: Duration,
) -> Result<LogicalPlan> {
    let all = all_columns(&rows);
    let start = Expr::Column(Column::new(relation.clone(), START));
    let end = (start + size.duration()).alias_qualified(relation, END);
    LogicalPlanBuilder::from(rows).project(all.into_iter().chain([end]))?.build()
}

fn all_columns(plan: &LogicalPlan) -> Vec<Expr> {
    plan.schema().columns().into_iter().map(Expr::Column).collect()
}
