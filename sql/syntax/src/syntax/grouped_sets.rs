//! Grouping sets that are written within others, `GROUPING SETS (ROLLUP (a, b), (c))`, or with a column twice, `ROLLUP (a, a)`.
//!
//! Both become GROUPING SETS that are lists of columns, each once.

use sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, Select,
};

use super::calls::name_of;
use crate::statement::fold;

/// The most columns of a CUBE that is expanded; a longer one stays, and has too many grouping sets.
const MOST_COLUMNS: usize = 12;

/// Expands such grouping sets.
pub(super) fn expand(select: &mut Select) {
    let GroupByExpr::Expressions(keys, _) = &mut select.group_by else { return };
    for key in keys {
        let sets = match key {
            Expr::GroupingSets(sets) => match sets.iter().any(|set| inner(set).is_some()) {
                true => {
                    sets.iter().flat_map(|set| inner(set).unwrap_or(vec![set.clone()])).collect()
                }
                false => sets.clone(),
            },
            Expr::Rollup(groups) if has_twice(groups) => rollup(groups),
            Expr::Cube(groups) if has_twice(groups) && groups.len() <= MOST_COLUMNS => cube(groups),
            _ => continue,
        };
        *key = Expr::GroupingSets(sets.into_iter().map(once).collect());
    }
}

/// The sets of a ROLLUP or CUBE within GROUPING SETS.
fn inner(set: &[Expr]) -> Option<Vec<Vec<Expr>>> {
    let [Expr::Function(function)] = set else { return None };
    let groups = groups(function)?;
    match name_of(function)?.as_str() {
        "rollup" => Some(rollup(&groups)),
        "cube" if groups.len() <= MOST_COLUMNS => Some(cube(&groups)),
        _ => None,
    }
}

/// The columns, or lists of them, that a ROLLUP or CUBE has.
fn groups(function: &Function) -> Option<Vec<Vec<Expr>>> {
    let FunctionArguments::List(list) = &function.args else { return None };
    let group = |argument: &FunctionArg| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Tuple(columns))) => Some(columns.clone()),
        FunctionArg::Unnamed(FunctionArgExpr::Expr(column)) => Some(vec![column.clone()]),
        _ => None,
    };
    list.args.iter().map(group).collect()
}

/// All beginnings of the list, the longest first.
fn rollup(groups: &[Vec<Expr>]) -> Vec<Vec<Expr>> {
    (0..=groups.len()).rev().map(|length| groups[..length].concat()).collect()
}

/// All parts of the list, in the order of Postgres.
fn cube(groups: &[Vec<Expr>]) -> Vec<Vec<Expr>> {
    let sets = 1_usize << groups.len();
    let chosen = |set: usize| {
        let is_in = move |place: usize| set >> (groups.len() - 1 - place) & 1 == 1;
        let groups = groups.iter().enumerate().filter(move |(place, _)| is_in(*place));
        groups.flat_map(|(_, group)| group.iter().cloned()).collect()
    };
    (0..sets).rev().map(chosen).collect()
}

fn has_twice(groups: &[Vec<Expr>]) -> bool {
    let columns = groups.concat();
    let length = columns.len();
    once(columns).len() < length
}

/// The columns, each where it is first.
fn once(columns: Vec<Expr>) -> Vec<Expr> {
    let mut found: Vec<Expr> = Vec::with_capacity(columns.len());
    for column in columns {
        if !found.iter().any(|other| is_same(other, &column)) {
            found.push(column);
        }
    }
    found
}

fn is_same(one: &Expr, other: &Expr) -> bool {
    match (one, other) {
        (Expr::Nested(one), other) | (other, Expr::Nested(one)) => is_same(one, other),
        (Expr::Identifier(one), Expr::Identifier(other)) => fold(one) == fold(other),
        (one, other) => one == other,
    }
}
