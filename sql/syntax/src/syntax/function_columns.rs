//! Names for the columns of `UNNEST`, `generate_series` and `range` in FROM, as DuckDB gives them.
//!
//! ```sql
//! SELECT * FROM t, UNNEST(t.list)               -- its column is called unnest,
//! SELECT u FROM t, UNNEST(t.list) AS u          -- or as the relation is,
//! SELECT unnest FROM t, UNNEST(t.list) AS u     -- unless the SELECT names it after the function
//! ```

use std::collections::HashSet;
use std::convert::Infallible;
use std::ops::ControlFlow;

use alluvium_sql_functions::FUNCTIONS;
use datafusion_expr::Volatility;
use sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, Query, Select, SetExpr,
    TableAlias, TableAliasColumnDef, TableFactor, TableWithJoins, Visit, Visitor,
    visit_expressions,
};

use super::calls::{call, name_of};
use super::series::series_function;
use crate::statement::fold;

const UNNEST: &str = "unnest";

/// Names the columns of such relations in a query that is a SELECT, whose ORDER BY may name them, too.
pub(super) fn name_in_query(query: &mut Query) {
    let SetExpr::Select(select) = query.body.as_mut() else { return };
    if has_unnamed(&mut select.from) {
        let names = Names::in_part(query);
        if let SetExpr::Select(select) = query.body.as_mut() {
            name_all(&mut select.from, &names);
        }
    }
}

/// Names the columns of such relations in a SELECT.
pub(super) fn name_in_select(select: &mut Select) {
    if has_unnamed(&mut select.from) {
        let names = Names::in_part(select);
        name_all(&mut select.from, &names);
    }
}

/// Calls `visit` with the relations of FROM that are not joins.
fn for_each(from: &mut [TableWithJoins], visit: &mut dyn FnMut(&mut TableFactor)) {
    for TableWithJoins { relation, joins } in from {
        let joined = joins.iter_mut().map(|join| &mut join.relation);
        for factor in std::iter::once(relation).chain(joined) {
            match factor {
                TableFactor::NestedJoin { table_with_joins, .. } => {
                    for_each(std::slice::from_mut(table_with_joins), visit);
                }
                factor => visit(factor),
            }
        }
    }
}

/// Whether there are such relations without names. Makes `LATERAL UNNEST(…)`, which UNNEST is anyway, `UNNEST(…)`.
fn has_unnamed(from: &mut [TableWithJoins]) -> bool {
    let (mut has, mut is_first) = (false, true);
    for_each(from, &mut |factor| {
        unnest_series(factor, is_first);
        unnest_laterally(factor);
        is_first = false;
        has |= Unnamed::of(factor).is_some();
    });
    has
}

/// A series whose bounds are of rows before it, or of the session, is a list that is unnested. In the first relation columns are those of a
/// query outside, which views do not look up.
fn unnest_series(factor: &mut TableFactor, is_first: bool) {
    if series_function(factor).is_none() {
        return;
    }
    let TableFactor::Table { name, args: Some(arguments), alias, with_ordinality, .. } = factor
    else {
        return;
    };
    if !arguments.args.iter().any(|argument| varies(argument, !is_first)) {
        return;
    }
    let mut list = call(Ident::new(UNNEST), []);
    if let Expr::Function(called) = &mut list {
        called.name = name.clone();
        if let FunctionArguments::List(list) = &mut called.args {
            list.args = std::mem::take(&mut arguments.args);
        }
    }
    *factor = TableFactor::UNNEST {
        alias: alias.take(),
        array_exprs: vec![list],
        with_offset: false,
        with_offset_alias: None,
        with_ordinality: *with_ordinality,
    };
}

/// Whether an argument names columns, if these count, or calls a function whose result is not always the same.
fn varies(argument: &FunctionArg, columns: bool) -> bool {
    let varies = visit_expressions(argument, |expression| {
        let varies = match expression {
            Expr::Identifier(_) | Expr::CompoundIdentifier(_) => columns,
            Expr::Function(called) => name_of(called).is_some_and(|name| {
                let function = FUNCTIONS.scalar.get(name.as_str());
                function.is_some_and(|it| it.signature().volatility != Volatility::Immutable)
            }),
            _ => false,
        };
        if varies { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    varies.is_break()
}

fn unnest_laterally(factor: &mut TableFactor) {
    let TableFactor::Function { lateral: true, name, args, with_ordinality, alias } = factor else {
        return;
    };
    let lists = args.iter().map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(list)) => Some(list.clone()),
        _ => None,
    });
    if name.to_string().eq_ignore_ascii_case(UNNEST)
        && let Some(array_exprs) = lists.collect()
    {
        *factor = TableFactor::UNNEST {
            alias: alias.take(),
            array_exprs,
            with_offset: false,
            with_offset_alias: None,
            with_ordinality: *with_ordinality,
        };
    }
}

fn name_all(from: &mut [TableWithJoins], names: &Names) {
    let mut nameless = 0;
    for_each(from, &mut |factor| {
        if let Some(unnamed) = Unnamed::of(factor) {
            unnamed.name(names, &mut nameless);
        }
    });
}

/// Such a relation whose columns have no names.
struct Unnamed<'a> {
    function: &'static str,
    /// How many lists UNNEST has side by side.
    lists: usize,
    with_ordinality: bool,
    alias: &'a mut Option<TableAlias>,
}

impl Unnamed<'_> {
    fn of(factor: &mut TableFactor) -> Option<Unnamed<'_>> {
        let series = series_function(factor);
        let unnamed = match factor {
            TableFactor::UNNEST { alias, array_exprs, with_ordinality, .. } => Unnamed {
                function: UNNEST,
                lists: array_exprs.len(),
                with_ordinality: *with_ordinality,
                alias,
            },
            // One without an alias is named after the function where it is planned.
            TableFactor::Table { alias: alias @ Some(_), .. } => {
                Unnamed { function: series?, lists: 1, with_ordinality: false, alias }
            }
            _ => return None,
        };
        unnamed.alias.as_ref().is_none_or(|alias| alias.columns.is_empty()).then_some(unnamed)
    }

    /// Names its columns; and the relation `unnest`, `unnest_1`, …, if it has no alias.
    fn name(self, names: &Names, nameless: &mut usize) {
        let Unnamed { function, lists, with_ordinality, alias } = self;
        let first = match alias {
            Some(alias) if lists == 1 && !names.last_parts.contains(function) => alias.name.clone(),
            _ => Ident::new(function),
        };
        let others = (1..lists).map(|number| Ident::new(numbered(function, number)));
        let ordinality = with_ordinality.then(|| Ident::new("ordinality"));
        let columns = std::iter::once(first).chain(others).chain(ordinality);
        let columns = columns.map(|name| TableAliasColumnDef { name, data_type: None }).collect();
        match alias {
            Some(alias) => alias.columns = columns,
            None => {
                let name = Ident::new(numbered(function, *nameless));
                *nameless += 1;
                *alias = Some(TableAlias { explicit: true, name, columns, at: None });
            }
        }
    }
}

fn numbered(name: &str, number: usize) -> String {
    if number == 0 { name.to_owned() } else { format!("{name}_{number}") }
}

/// The names in a part of a statement, without qualifiers.
#[derive(Default)]
struct Names {
    last_parts: HashSet<String>,
}

impl Names {
    fn in_part(part: &impl Visit) -> Names {
        let mut names = Names::default();
        let ControlFlow::Continue(()) = part.visit(&mut names);
        names
    }
}

impl Visitor for Names {
    type Break = Infallible;

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<Infallible> {
        match expression {
            Expr::Identifier(name) => {
                self.last_parts.insert(fold(name));
            }
            Expr::CompoundIdentifier(parts) => self.last_parts.extend(parts.last().map(fold)),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}
