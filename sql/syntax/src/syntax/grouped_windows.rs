//! `GROUP BY TUMBLE(ts, size)`, `HOP(ts, slide, size)` and `SESSION(ts, gap)`, as Calcite and Flink have them.
//!
//! ```sql
//! SELECT k, TUMBLE_START(ts, INTERVAL '1' HOUR), COUNT(*) FROM t WHERE n > 0 GROUP BY k, TUMBLE(ts, INTERVAL '1' HOUR)
//! SELECT k, window_start, COUNT(*)
//! FROM TUMBLE((SELECT * FROM t WHERE n > 0), DESCRIPTOR(ts), INTERVAL '1' HOUR) AS t GROUP BY k, window_start, window_end
//! ```
//!
//! are the same. The sessions of a group are those of its other keys.

use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, Ident,
    ObjectName, Select, SelectItem, Spanned, TableAlias, TableFactor, TableFunctionArgs,
    TableWithJoins, VisitMut, VisitorMut, WildcardAdditionalOptions,
};

use super::calls::call;
use super::simple_query::known_as;
use super::simple_query::simple_query;
use crate::error::{Error, Position, Result};
use crate::statement::fold;

/// The functions, with the columns that stand for their bounds.
const FUNCTIONS: [&str; 3] = ["tumble", "hop", "session"];
const START: &str = "window_start";
const END: &str = "window_end";

/// Makes the windows among the keys of GROUP BY a relation in FROM.
///
/// # Errors
/// If FROM has more than one relation, or the windows have other arguments elsewhere.
pub(super) fn as_relation(select: &mut Select) -> Result<()> {
    let GroupByExpr::Expressions(keys, _) = &mut select.group_by else { return Ok(()) };
    let Some(place) = keys.iter().position(|key| window(key).is_some()) else { return Ok(()) };
    let windows = keys.remove(place);
    let Some((name, arguments)) = window(&windows) else { return Ok(()) };
    let at = Position::of(&windows);
    if let Some(other) = keys.iter().find(|key| window(key).is_some()) {
        let what = "GROUP BY several windows of time";
        return Err(Error::not_supported(what, Position::of(other)));
    }
    let sessions_of = keys.clone();
    keys.extend([START, END].map(|bound| Expr::Identifier(Ident::new(bound))));
    let mut bounds = Bounds { name, arguments: &arguments };
    let visited = [
        select.projection.visit(&mut bounds),
        select.having.visit(&mut bounds),
        select.qualify.visit(&mut bounds),
    ];
    for visited in visited {
        if let ControlFlow::Break(error) = visited {
            return Err(error);
        }
    }
    let (relation, alias) = match select.from.as_mut_slice() {
        [
            TableWithJoins { relation: TableFactor::Table { name, alias, args: None, .. }, joins },
        ] if joins.is_empty() => {
            let alias = match alias {
                Some(alias) => alias.clone(),
                None => named(name),
            };
            (std::mem::take(&mut select.from), alias)
        }
        _ => {
            let message = format!(
                "GROUP BY {name}(…) takes its rows from one table: name it in FROM {name}(TABLE t, …), and GROUP BY \
                 {START}, {END}",
                name = name.to_uppercase()
            );
            return Err(Error::new(message, at));
        }
    };
    let all = vec![SelectItem::Wildcard(WildcardAdditionalOptions::default())];
    let rows = simple_query(all, relation, select.selection.take());
    let mut given = vec![Expr::Subquery(Box::new(rows))];
    let mut arguments = arguments.into_iter();
    given.extend(arguments.next().map(|time| call(Ident::new("DESCRIPTOR"), [time])));
    if name == "session" {
        given.push(call(Ident::new("DESCRIPTOR"), sessions_of));
    }
    given.extend(arguments);
    let argument = |value| FunctionArg::Unnamed(FunctionArgExpr::Expr(value));
    let args = given.into_iter().map(argument).collect();
    let relation = TableFactor::Table {
        name: ObjectName::from(vec![Ident::with_span(windows.span(), name)]),
        alias: Some(alias),
        args: Some(TableFunctionArgs { args, settings: None }),
        with_hints: Vec::new(),
        version: None,
        with_ordinality: false,
        partitions: Vec::new(),
        json_path: None,
        sample: None,
        index_hints: Vec::new(),
    };
    select.from = vec![TableWithJoins { relation, joins: Vec::new() }];
    Ok(())
}

/// A relation's own name as an alias.
fn named(relation: &ObjectName) -> TableAlias {
    let name = relation.0.last().and_then(|part| part.as_ident()).cloned();
    let name = name.unwrap_or_else(|| Ident::new("rows"));
    known_as(name)
}

/// The name and the arguments of a function that makes windows.
fn window(expression: &Expr) -> Option<(&'static str, Vec<Expr>)> {
    let (name, arguments) = called(expression)?;
    let name = FUNCTIONS.into_iter().find(|known| *known == name)?;
    Some((name, arguments))
}

fn called(expression: &Expr) -> Option<(String, Vec<Expr>)> {
    let Expr::Function(Function { name, args: FunctionArguments::List(list), over: None, .. }) =
        expression
    else {
        return None;
    };
    let [name] = name.0.as_slice() else { return None };
    let arguments = list.args.iter().map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(value.clone()),
        _ => None,
    });
    Some((fold(name.as_ident()?), arguments.collect::<Option<Vec<_>>>()?))
}

/// Puts columns in the places of `TUMBLE_START(…)` and `TUMBLE_END(…)`.
struct Bounds<'a> {
    name: &'a str,
    arguments: &'a [Expr],
}

impl VisitorMut for Bounds<'_> {
    type Break = Error;

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Error> {
        let Some((name, arguments)) = called(expression) else { return ControlFlow::Continue(()) };
        let bound = name.strip_prefix(self.name).and_then(|rest| match rest {
            "_start" => Some(START),
            "_end" => Some(END),
            _ => None,
        });
        let Some(bound) = bound else { return ControlFlow::Continue(()) };
        if arguments
            .iter()
            .map(ToString::to_string)
            .ne(self.arguments.iter().map(ToString::to_string))
        {
            let message = format!(
                "{} is of other windows than those of GROUP BY: write it with the same arguments",
                name.to_uppercase()
            );
            return ControlFlow::Break(Error::new(message, Position::of(expression)));
        }
        let span = expression.span();
        *expression = Expr::Identifier(Ident::with_span(span, bound));
        ControlFlow::Continue(())
    }
}
