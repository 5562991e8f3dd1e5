//! The clauses around a SELECT or a set operation.

use sqlparser::ast::{
    Cte, CteAsMaterialized, Fetch, LimitClause, Offset, OrderBy, OrderByKind, Query, SetExpr,
    SetOperator, SetQuantifier, Spanned, Values, With,
};

use super::clause::{Clause, check_order, none_of, refuse};
use super::relation::check_alias;
use crate::error::Result;

pub(super) fn check(query: &Query) -> Result<()> {
    let Query {
        with,
        body,
        order_by,
        limit_clause,
        fetch,
        locks,
        for_clause,
        settings,
        format_clause,
        pipe_operators,
    } = query;
    let refused: &[(&dyn Clause, &str)] = &[
        (locks, "FOR UPDATE or FOR SHARE"),
        (for_clause, "FOR XML, FOR JSON or FOR BROWSE"),
        (settings, "SETTINGS"),
        (format_clause, "FORMAT"),
        (pipe_operators, "a query behind |>"),
    ];
    none_of(refused, || body.span())?;
    if let Some(Fetch { with_ties: _, percent, quantity: _ }) = fetch {
        let refused: &[(&dyn Clause, &str)] =
            &[(percent, "FETCH … PERCENT"), (&true, "FETCH beside LIMIT")];
        none_of(refused, || body.span())?;
    }
    if let Some(With { with_token: _, recursive: _, cte_tables }) = with {
        cte_tables.iter().try_for_each(check_cte)?;
    }
    if let Some(order_by) = order_by {
        check_order_by(order_by, body)?;
    }
    if let Some(limit) = limit_clause {
        check_limit(limit)?;
    }
    check_body(body)
}

fn check_cte(cte: &Cte) -> Result<()> {
    let Cte { alias, query: _, from, materialized, closing_paren_token: _ } = cte;
    none_of(&[(from, "FROM behind a query of WITH")], || alias.span())?;
    match materialized {
        // Advice that does not change the result.
        None | Some(CteAsMaterialized::Materialized | CteAsMaterialized::NotMaterialized) => {}
    }
    check_alias(alias)
}

fn check_order_by(order_by: &OrderBy, body: &SetExpr) -> Result<()> {
    let OrderBy { kind, interpolate } = order_by;
    none_of(&[(interpolate, "INTERPOLATE")], || order_by.span())?;
    match (kind, body) {
        (OrderByKind::Expressions(order), _) => check_order(order),
        (OrderByKind::All(_), SetExpr::Select(_)) => Ok(()),
        (OrderByKind::All(_), body) => {
            refuse("ORDER BY ALL of anything but a SELECT", || body.span())
        }
    }
}

fn check_limit(limit: &LimitClause) -> Result<()> {
    match limit {
        LimitClause::LimitOffset { limit: _, offset, limit_by } => {
            if let Some(Offset { value: _, rows: _ }) = offset {}
            none_of(&[(limit_by, "LIMIT … BY")], || limit.span())
        }
        LimitClause::OffsetCommaLimit { offset: _, limit: _ } => Ok(()),
    }
}

fn check_body(body: &SetExpr) -> Result<()> {
    match body {
        SetExpr::Select(_) | SetExpr::Query(_) => Ok(()),
        SetExpr::SetOperation { left, op, set_quantifier, right } => {
            check_set_operator(*op, *set_quantifier, right)?;
            check_body(left)?;
            check_body(right)
        }
        SetExpr::Values(Values { explicit_row: _, value_keyword, rows: _ }) => {
            none_of(&[(value_keyword, "VALUE (write VALUES)")], || body.span())
        }
        SetExpr::Table(_) => refuse("TABLE (write SELECT * FROM)", || body.span()),
        SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => {
            refuse("changing a table in a query", || body.span())
        }
    }
}

fn check_set_operator(
    operator: SetOperator,
    quantifier: SetQuantifier,
    right: &SetExpr,
) -> Result<()> {
    match (operator, quantifier) {
        (
            SetOperator::Union,
            SetQuantifier::ByName | SetQuantifier::AllByName | SetQuantifier::DistinctByName,
        )
        | (
            SetOperator::Union | SetOperator::Except | SetOperator::Intersect,
            SetQuantifier::All | SetQuantifier::Distinct | SetQuantifier::None,
        ) => Ok(()),
        (SetOperator::Minus, _) => refuse("MINUS (write EXCEPT)", || right.span()),
        (
            SetOperator::Except | SetOperator::Intersect,
            SetQuantifier::ByName | SetQuantifier::AllByName | SetQuantifier::DistinctByName,
        ) => refuse(format!("{operator} {quantifier}"), || right.span()),
    }
}
