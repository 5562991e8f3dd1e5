//! The uses that queries make of floats, wall clocks and moving thresholds.

use std::collections::BTreeSet;

use super::visit::{self, Visitor};
use super::{Body, Distinct, Expr, From, Group, JoinKind, Kind, Op, Query, Select, Units};

/// The start of the names of constructs that concern NaN and -0.0, if these are among the floats.
pub(crate) const FLOATS: &str = "floats: ";

/// The uses that a query makes of floats.
pub(super) fn of_floats_in_query(query: &Query) -> Vec<&'static str> {
    let is_float = |place: usize| query.columns()[place].1.is_float();
    let mut found = Vec::new();
    if let Body::Set(_, all, left, _) = &query.body
        && left.columns().iter().any(|(_, kind)| kind.is_float())
        && !(*all && matches!(query.body, Body::Set(super::SetOperation::Union, ..)))
    {
        found.push("floats: set operation");
    }
    if query.top.as_ref().is_some_and(|top| top.order.iter().any(|(place, ..)| is_float(*place))) {
        found.push("floats: order by");
    }
    found
}

/// The uses that a SELECT makes of floats.
pub(super) fn of_floats(select: &Select) -> Vec<&'static str> {
    let mut found = Vec::new();
    let has_float = |exprs: &[Expr]| exprs.iter().any(|expr| expr.kind().is_float());
    if let Group::Keys(keys) | Group::Sets(keys, _) = &select.group
        && has_float(keys)
    {
        found.push("floats: group by");
    }
    match &select.distinct {
        Distinct::Rows if select.items.iter().any(|item| item.expr.kind().is_float()) => {
            found.push("floats: distinct");
        }
        Distinct::On(on, _) if has_float(on) => found.push("floats: distinct"),
        _ => {}
    }
    found
}

/// The uses that an expression makes of floats.
pub(super) fn of_floats_in(expr: &Expr) -> Vec<&'static str> {
    let mut found = Vec::new();
    match expr {
        Expr::Aggregate(aggregate) => {
            let float = aggregate.arguments.first().is_some_and(|first| first.kind().is_float());
            match aggregate.function {
                "min" | "max" if float => found.push("floats: min, max"),
                "count" if float && aggregate.distinct => found.push("floats: count distinct"),
                "sum" | "avg" if float => found.push("floats: sum, avg"),
                _ => {}
            }
        }
        Expr::Window(window) => {
            let float = |exprs: &[Expr]| exprs.iter().any(|expr| expr.kind().is_float());
            if float(&window.partition) {
                found.push("floats: group by");
            }
            if window.order.iter().any(|order| order.expr.kind().is_float()) {
                found.push("floats: order by");
                if window.function.contains("rank") {
                    found.push("floats: rank");
                }
                if window.frame.is_some_and(|frame| frame.units == Units::Range) {
                    found.push("floats: frame of a range");
                }
            }
        }
        Expr::In(inner, ..) | Expr::Among(inner, ..) if inner.kind().is_float() => {
            found.push("floats: in");
        }
        Expr::RowAmong(row, ..) if row.iter().any(|expr| expr.kind().is_float()) => {
            found.push("floats: in");
        }
        Expr::Between(inner, ..) if inner.kind().is_float() => found.push("floats: between"),
        Expr::Binary(
            left,
            Op::Equal
            | Op::Unequal
            | Op::Less
            | Op::LessEqual
            | Op::Greater
            | Op::GreaterEqual
            | Op::Same
            | Op::Differs,
            _,
        ) if left.kind().is_float() => found.push("floats: comparison"),
        _ => {}
    }
    found
}

/// Whether a join compares floats for equality.
pub(super) fn joins_floats(on: &[&Expr]) -> bool {
    on.iter().any(|part| {
        matches!(part, Expr::Binary(left, Op::Equal | Op::Same, _) if left.kind().is_float())
    })
}

/// Whether the type is that of a time, and an expression names a clock of a zone.
fn is_clock(expr: &Expr) -> bool {
    struct Finder(bool);
    impl Visitor for Finder {
        fn expr(&mut self, expr: &Expr) {
            self.0 |= matches!(expr, Expr::AtZone(inner, _) if inner.kind() == Kind::Zoned);
        }
    }
    let mut finder = Finder(false);
    visit::expr(expr, &mut finder);
    finder.0
}

/// The columns of queries in FROM that are computed from clocks of zones.
fn clocks(from: &From, found: &mut BTreeSet<(String, String)>) {
    match from {
        From::Derived(query, alias) => {
            if let Body::Select(select) = &query.body {
                let items = select.items.iter().filter(|item| is_clock(&item.expr));
                found.extend(items.map(|item| (alias.clone(), item.name.clone())));
            }
        }
        From::Join(join) => {
            clocks(&join.left, found);
            clocks(&join.right, found);
        }
        _ => {}
    }
}

/// The uses that a SELECT makes of wall clocks that come from FROM.
pub(super) fn of_clocks(select: &Select) -> Vec<&'static str> {
    let mut columns = BTreeSet::new();
    select.from.iter().for_each(|from| clocks(from, &mut columns));
    let names = |expr: &Expr| {
        matches!(expr, Expr::Column(alias, name, _) if columns.contains(&(alias.clone(), name.clone())))
            || is_clock(expr)
    };
    let mut found = Vec::new();
    if let Group::Keys(keys) | Group::Sets(keys, _) = &select.group
        && keys.iter().any(names)
    {
        found.push("wall clock as a key");
    }
    if let Some(From::Join(join)) = &select.from
        && let Some(Expr::Binary(left, ..)) = &join.on
        && names(left)
    {
        found.push("wall clock in a join");
    }
    for item in &select.items {
        if let Expr::Window(window) = &item.expr
            && (window.partition.iter().any(names)
                || window.order.iter().any(|order| names(&order.expr)))
        {
            found.push("wall clock in a window");
        }
    }
    found
}

/// Whether a query is an aggregate of all of its rows.
fn is_aggregate(query: &Query) -> bool {
    matches!(&query.body, Body::Select(select)
        if select.group == Group::None
            && select.items.iter().all(|item| matches!(item.expr, Expr::Aggregate(_))))
}

/// How a part of a condition compares a value of the row with aggregates of others.
pub(super) fn of_thresholds(part: &Expr) -> Option<&'static str> {
    match part {
        Expr::Binary(value, Op::Less | Op::LessEqual | Op::Greater | Op::GreaterEqual, other) => {
            let Expr::Scalar(query, _) = &**other else { return None };
            let is_column = matches!(**value, Expr::Column(..));
            (is_column && is_aggregate(query)).then(|| match &query.body {
                Body::Select(select) if select.filter.is_some() => "threshold of a group",
                _ => "threshold",
            })
        }
        Expr::Between(_, low, high, _) => {
            let is_moving =
                |end: &Expr| matches!(end, Expr::Scalar(query, _) if is_aggregate(query));
            (is_moving(low) && is_moving(high)).then_some("between thresholds")
        }
        _ => None,
    }
}

/// Whether a join compares with the aggregates of a query in FROM.
pub(super) fn joins_thresholds(join: &super::Join) -> bool {
    let of_aggregates = matches!(&join.right, From::Derived(query, _)
        if matches!(&query.body, Body::Select(select)
            if matches!(select.items[0].expr, Expr::Aggregate(_))));
    let orders = matches!(
        join.on,
        Some(Expr::Binary(_, Op::Less | Op::LessEqual | Op::Greater | Op::GreaterEqual, _))
    );
    of_aggregates && orders && matches!(join.kind, JoinKind::Inner | JoinKind::Left)
}
