//! FROM: relations and joins.

use sqlparser::ast::{
    Expr, Join, JoinConstraint, JoinOperator, PivotValueSource, Spanned, TableAlias,
    TableAliasColumnDef, TableFactor, TableFunctionArgs, TableWithJoins,
};

use super::asof::AsofJoin;
use super::clause::{Clause, none_of, refuse};
use super::time_window::is_time_window;
use crate::error::{Error, Position, Result};

pub(super) fn check_joins(from: &TableWithJoins) -> Result<()> {
    let TableWithJoins { relation, joins } = from;
    joins.iter().try_for_each(check_join)?;
    let Some(last) = joins.iter().rposition(|join| AsofJoin::of(&join.join_operator).is_some())
    else {
        return Ok(());
    };
    let mut relations = joins[..=last].iter().map(|join| &join.relation);
    match std::iter::once(relation).chain(&mut relations).find(|factor| refers(factor)) {
        Some(_) => {
            refuse("an ASOF JOIN with UNNEST or LATERAL (put the join into a subquery)", || {
                joins[last].relation.span()
            })
        }
        None => Ok(()),
    }
}

/// Writes `SEMI JOIN` and `ANTI JOIN`, as DuckDB has them, as `LEFT SEMI JOIN` and `LEFT ANTI JOIN`.
pub(super) fn name_semi_joins(from: &mut [TableWithJoins]) {
    for TableWithJoins { relation, joins } in from {
        let joined = joins.iter_mut().map(|join| {
            let operator = &mut join.join_operator;
            *operator = match std::mem::replace(operator, JoinOperator::CrossApply) {
                JoinOperator::Semi(constraint) => JoinOperator::LeftSemi(constraint),
                JoinOperator::Anti(constraint) => JoinOperator::LeftAnti(constraint),
                other => other,
            };
            &mut join.relation
        });
        for factor in std::iter::once(relation).chain(joined) {
            if let TableFactor::NestedJoin { table_with_joins, .. } = factor {
                name_semi_joins(std::slice::from_mut(table_with_joins));
            }
        }
    }
}

/// Whether a relation may refer to those before it.
pub fn refers(factor: &TableFactor) -> bool {
    matches!(
        factor,
        TableFactor::Derived { lateral: true, .. }
            | TableFactor::Function { lateral: true, .. }
            | TableFactor::UNNEST { .. }
    )
}

fn check_join(join: &Join) -> Result<()> {
    let Join { relation, global, join_operator } = join;
    none_of(&[(global, "GLOBAL JOIN")], || relation.span())?;
    let constraint = match join_operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint)
        | JoinOperator::LeftSemi(constraint)
        | JoinOperator::RightSemi(constraint)
        | JoinOperator::LeftAnti(constraint)
        | JoinOperator::RightAnti(constraint) => constraint,
        JoinOperator::CrossJoin(JoinConstraint::None) => return Ok(()),
        JoinOperator::CrossJoin(
            JoinConstraint::On(_) | JoinConstraint::Using(_) | JoinConstraint::Natural,
        ) => return refuse("CROSS JOIN with a condition (write JOIN)", || relation.span()),
        JoinOperator::Semi(_) => {
            return refuse("SEMI JOIN (write LEFT SEMI JOIN)", || relation.span());
        }
        JoinOperator::Anti(_) => {
            return refuse("ANTI JOIN (write LEFT ANTI JOIN)", || relation.span());
        }
        JoinOperator::CrossApply | JoinOperator::OuterApply => {
            return refuse("APPLY", || relation.span());
        }
        JoinOperator::AsOf { match_condition: _, constraint: _ } => {
            return check_asof(join_operator, relation);
        }
        JoinOperator::StraightJoin(_) => return refuse("STRAIGHT_JOIN", || relation.span()),
        JoinOperator::ArrayJoin | JoinOperator::LeftArrayJoin | JoinOperator::InnerArrayJoin => {
            return refuse("ARRAY JOIN", || relation.span());
        }
    };
    match constraint {
        JoinConstraint::On(_)
        | JoinConstraint::Using(_)
        | JoinConstraint::Natural
        | JoinConstraint::None => Ok(()),
    }
}

fn check_asof(operator: &JoinOperator, relation: &TableFactor) -> Result<()> {
    let Some(AsofJoin { name, condition, constraint }) = AsofJoin::of(operator) else {
        return Ok(());
    };
    if !matches!(name, "ASOF JOIN" | "LEFT ASOF JOIN") {
        return refuse(name, || relation.span());
    }
    match constraint {
        JoinConstraint::On(_) | JoinConstraint::Using(_) => Ok(()),
        JoinConstraint::None if condition.is_some() => Ok(()),
        JoinConstraint::Natural => refuse("NATURAL ASOF JOIN", || relation.span()),
        JoinConstraint::None => {
            let message = "an ASOF JOIN needs a condition: write MATCH_CONDITION (a.ts >= b.ts) ON a.k = b.k, or \
                           ON a.k = b.k AND a.ts >= b.ts";
            Err(Error::new(message, Position::of_span(relation.span())))
        }
    }
}

pub(super) fn check(factor: &TableFactor) -> Result<()> {
    match factor {
        TableFactor::Table {
            name,
            alias,
            args,
            with_hints,
            version,
            with_ordinality,
            partitions,
            json_path,
            sample,
            index_hints,
        } => {
            let refused: &[(&dyn Clause, &str)] = &[
                (with_hints, "a hint, WITH (…), on a table"),
                (version, "a table as of another time"),
                (&(*with_ordinality && args.is_none()), "WITH ORDINALITY on a table"),
                (partitions, "PARTITION of a table"),
                (json_path, "a path into a table"),
                (sample, "TABLESAMPLE"),
                (index_hints, "an index hint"),
            ];
            none_of(refused, || name.span())?;
            if let Some(TableFunctionArgs { args: _, settings }) = args {
                // The planner knows which functions there are.
                none_of(&[(settings, "SETTINGS")], || name.span())?;
            }
            check_optional(alias)
        }
        TableFactor::Derived { lateral: _, subquery, alias, sample } => {
            none_of(&[(sample, "TABLESAMPLE")], || subquery.span())?;
            check_optional(alias)
        }
        TableFactor::UNNEST {
            alias,
            array_exprs: _,
            with_offset,
            with_offset_alias: _,
            with_ordinality: _,
        } => {
            none_of(&[(with_offset, "WITH OFFSET (write WITH ORDINALITY)")], || factor.span())?;
            check_optional(alias)
        }
        TableFactor::NestedJoin { table_with_joins, alias } => {
            check_joins(table_with_joins)?;
            check_optional(alias)
        }
        TableFactor::TableFunction { expr, alias } => {
            match expr {
                Expr::Function(call) if is_time_window(factor) => {
                    super::function::check_bare(call)?;
                }
                expr => return refuse("this table function", || expr.span()),
            }
            check_optional(alias)
        }
        TableFactor::Function { lateral: _, name, args: _, with_ordinality: _, alias: _ } => {
            refuse(format_args!("the table function {name}"), || name.span())
        }
        TableFactor::JsonTable { .. } => refuse("JSON_TABLE", || factor.span()),
        TableFactor::OpenJsonTable { .. } => refuse("OPENJSON", || factor.span()),
        TableFactor::XmlTable { .. } => refuse("XMLTABLE", || factor.span()),
        TableFactor::SemanticView { .. } => refuse("SEMANTIC_VIEW", || factor.span()),
        TableFactor::Pivot {
            table: _,
            aggregate_functions: _,
            value_column: _,
            value_source,
            default_on_null,
            alias,
        } => {
            none_of(&[(default_on_null, "DEFAULT ON NULL (write coalesce)")], || factor.span())?;
            match value_source {
                PivotValueSource::List(_) => {}
                PivotValueSource::Any(_) | PivotValueSource::Subquery(_) => {
                    let message =
                        "PIVOT needs its values, which are columns: write FOR column IN ('a', 'b')";
                    return Err(Error::new(message, Position::of_span(factor.span())));
                }
            }
            check_optional(alias)
        }
        TableFactor::Unpivot {
            table: _,
            value: _,
            name: _,
            columns: _,
            null_inclusion: _,
            alias,
        } => check_optional(alias),
        TableFactor::MatchRecognize { .. } => refuse("MATCH_RECOGNIZE", || factor.span()),
    }
}

fn check_optional(alias: &Option<TableAlias>) -> Result<()> {
    alias.as_ref().map_or(Ok(()), check_alias)
}

pub(super) fn check_alias(alias: &TableAlias) -> Result<()> {
    let TableAlias { explicit: _, name: _, columns, at } = alias;
    none_of(&[(at, "AT behind the name of a relation")], || alias.span())?;
    for TableAliasColumnDef { name, data_type } in columns {
        none_of(&[(data_type, "a type among the names of columns")], || name.span)?;
    }
    Ok(())
}
