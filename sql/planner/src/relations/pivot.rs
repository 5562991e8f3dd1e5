//! PIVOT and UNPIVOT.
//!
//! ```sql
//! SELECT * FROM t PIVOT (sum(x) FOR k IN ('a', 'b'))
//! SELECT g, sum(x) FILTER (WHERE k = 'a') AS a, sum(x) FILTER (WHERE k = 'b') AS b FROM t GROUP BY g
//! ```
//!
//! are the same, where `g` is what else `t` has; and so are
//!
//! ```sql
//! SELECT * FROM t UNPIVOT (x FOR k IN (a, b))
//! SELECT g, 'a' AS k, a AS x FROM t WHERE a IS NOT NULL UNION ALL SELECT g, 'b', b FROM t WHERE b IS NOT NULL
//! ```
//!
//! Columns have the names that DuckDB gives them.

use std::collections::HashSet;

use datafusion_common::{Column, DFSchema, DataFusionError, Result};
use datafusion_expr::expr::AggregateFunction;
use datafusion_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion_expr::utils::{conjunction, expand_wildcard};
use datafusion_expr::{Expr, LogicalPlan, LogicalPlanBuilder, lit};
use sqlparser::ast::{
    self, ExprWithAlias, Ident, NullInclusion, PivotValueSource, TableFactor, Value,
};

use alluvium_sql_syntax::error::{Error, Position};
use alluvium_sql_syntax::syntax::column_name;

/// Plans PIVOT and UNPIVOT.
#[derive(Debug)]
pub(crate) struct PivotPlanner;

impl RelationPlanner for PivotPlanner {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let (plan, alias) = match relation {
            TableFactor::Pivot {
                table,
                aggregate_functions,
                value_column,
                value_source: PivotValueSource::List(values),
                default_on_null: None,
                alias,
            } => {
                let input = context.plan(*table)?;
                (pivoted(input, aggregate_functions, value_column, values, context)?, alias)
            }
            TableFactor::Unpivot { table, value, name, columns, null_inclusion, alias } => {
                let input = context.plan(*table)?;
                let has_nulls = null_inclusion == Some(NullInclusion::IncludeNulls);
                let rows = Unpivoted { name, value, columns, has_nulls };
                (rows.plan(input, context)?, alias)
            }
            relation => return Ok(RelationPlanning::Original(Box::new(relation))),
        };
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, alias))))
    }
}

/// A group for each combination of the columns that are not named, with each aggregate of each value.
fn pivoted(
    input: LogicalPlan,
    aggregates: Vec<ExprWithAlias>,
    keys: Vec<ast::Expr>,
    values: Vec<ExprWithAlias>,
    context: &mut dyn RelationPlannerContext,
) -> Result<LogicalPlan> {
    let schema = input.schema().clone();
    let keys = keys.into_iter().map(|key| context.sql_to_expr(key, &schema));
    let keys = keys.collect::<Result<Vec<_>>>()?;
    let has_names = aggregates.len() > 1 || aggregates.iter().any(|one| one.alias.is_some());
    let aggregates = aggregates
        .into_iter()
        .map(|ExprWithAlias { expr, alias }| {
            let position = Position::of(&expr);
            let name = match alias {
                Some(alias) => Some(context.normalize_ident(alias)),
                None => column_name(&expr),
            };
            match context.sql_to_expr(expr, &schema)?.unalias_nested().data {
                Expr::AggregateFunction(function) => Ok((name.unwrap_or_default(), function)),
                _ => refuse("PIVOT takes aggregates, as sum(x)", position),
            }
        })
        .collect::<Result<Vec<_>>>()?;
    let named = aggregates.iter().map(|(_, function)| Expr::AggregateFunction(function.clone()));
    let named: HashSet<Column> = (named.chain(keys.iter().cloned()))
        .flat_map(|expression| expression.column_refs().into_iter().cloned().collect::<Vec<_>>())
        .collect();
    let groups = others(&input, &named)?;
    let mut cells: Vec<Expr> = Vec::new();
    let mut names: Vec<(usize, String)> = Vec::new();
    for ExprWithAlias { expr, alias } in values {
        let position = Position::of(&expr);
        let name = match alias {
            Some(alias) => context.normalize_ident(alias),
            None => text_of(&expr),
        };
        let is_row = condition(&keys, expr, context)?;
        for (aggregate, function) in &aggregates {
            let mut function: AggregateFunction = function.clone();
            let filters = function.params.filter.take().map(|filter| *filter);
            let filter = conjunction(filters.into_iter().chain([is_row.clone()]));
            function.params.filter = filter.map(Box::new);
            let cell = Expr::AggregateFunction(function);
            let number = cells.iter().position(|other| *other == cell).unwrap_or_else(|| {
                cells.push(cell);
                cells.len() - 1
            });
            let name = if has_names { format!("{name}_{aggregate}") } else { name.clone() };
            if names.iter().any(|(_, other)| *other == name) {
                let message = format!("column \"{name}\" appears twice; rename one with AS");
                return refuse(message, position);
            }
            names.push((number, name));
        }
    }
    let grouped_by = groups.len();
    let grouped = LogicalPlanBuilder::from(input).aggregate(groups, cells)?.build()?;
    let columns: Vec<Expr> = grouped.schema().columns().into_iter().map(Expr::Column).collect();
    let (groups, cells) = columns.split_at(grouped_by);
    let cells = names.into_iter().map(|(number, name)| cells[number].clone().alias(name));
    let columns: Vec<Expr> = groups.iter().cloned().chain(cells).collect();
    LogicalPlanBuilder::from(grouped).project(columns)?.build()
}

/// Whether the keys of a row are these values: one, or a list in brackets.
fn condition(
    keys: &[Expr],
    values: ast::Expr,
    context: &mut dyn RelationPlannerContext,
) -> Result<Expr> {
    let position = Position::of(&values);
    let values = match values {
        ast::Expr::Tuple(values) => values,
        ast::Expr::Nested(value) => vec![*value],
        value => vec![value],
    };
    if values.len() != keys.len() {
        let (values, keys) = (values.len(), keys.len());
        let message = format!("PIVOT is by {keys} columns, and this is a value of {values}");
        return refuse(message, position);
    }
    let equal = keys.iter().zip(values).map(|(key, value)| {
        let value = context.sql_to_expr(value, &DFSchema::empty())?;
        Ok(match &value {
            Expr::Literal(null, _) if null.is_null() => key.clone().is_null(),
            _ => key.clone().eq(value),
        })
    });
    let equal = equal.collect::<Result<Vec<_>>>()?;
    Ok(conjunction(equal).unwrap_or_else(|| lit(true)))
}

/// The columns that `*` stands for, but for these.
fn others(input: &LogicalPlan, without: &HashSet<Column>) -> Result<Vec<Expr>> {
    let mut columns = expand_wildcard(input.schema(), input, None)?;
    columns.retain(|column| column.try_as_col().is_none_or(|column| !without.contains(column)));
    Ok(columns)
}

/// A value as the name of a column.
fn text_of(value: &ast::Expr) -> String {
    match value {
        ast::Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => text.clone(),
            other => other.to_string(),
        },
        ast::Expr::TypedString(text) => match &text.value.value {
            Value::SingleQuotedString(text) => text.clone(),
            other => other.to_string(),
        },
        ast::Expr::Tuple(values) => values.iter().map(text_of).collect::<Vec<_>>().join("_"),
        other => other.to_string(),
    }
}

/// A row for each of some columns, with its name and its value.
struct Unpivoted {
    name: Ident,
    value: ast::Expr,
    columns: Vec<ExprWithAlias>,
    /// Whether there are rows for NULL.
    has_nulls: bool,
}

impl Unpivoted {
    fn plan(
        self,
        input: LogicalPlan,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<LogicalPlan> {
        let Unpivoted { name, value, columns, has_nulls } = self;
        let position = Position::of(&value);
        let ast::Expr::Identifier(value) = value else {
            return refuse("UNPIVOT gives the values one name", position);
        };
        let (name, value) = (context.normalize_ident(name), context.normalize_ident(value));
        let schema = input.schema().clone();
        let columns = columns
            .into_iter()
            .map(|ExprWithAlias { expr, alias }| {
                let position = Position::of(&expr);
                let Expr::Column(column) = context.sql_to_expr(expr, &schema)? else {
                    return refuse("UNPIVOT takes columns", position);
                };
                let text = alias.map_or_else(|| column.name.clone(), |alias| alias.value);
                Ok((column, text))
            })
            .collect::<Result<Vec<_>>>()?;
        let named = columns.iter().map(|(column, _)| column.clone()).collect();
        let others = others(&input, &named)?;
        let mut rows: Option<LogicalPlanBuilder> = None;
        for (column, text) in columns {
            let column = Expr::Column(column);
            let mut branch = LogicalPlanBuilder::from(input.clone());
            if !has_nulls {
                branch = branch.filter(column.clone().is_not_null())?;
            }
            let mut selected = others.clone();
            selected.extend([lit(text).alias(&name), column.alias(&value)]);
            let branch = branch.project(selected)?;
            rows = Some(match rows {
                None => branch,
                Some(rows) => rows.union(branch.build()?)?,
            });
        }
        match rows {
            Some(rows) => rows.build(),
            None => refuse("UNPIVOT needs columns", position),
        }
    }
}

fn refuse<T>(message: impl Into<String>, position: Option<Position>) -> Result<T> {
    Err(DataFusionError::External(Box::new(Error::new(message, position))))
}
