//! The shape of syntax trees: chains that [can be](super::balance) become bushy, and trees of more than [`DEEPEST`] levels
//! are refused, as are those that hold more than their [limits](super::limits).

use std::collections::HashMap;
use std::mem;
use std::ops::ControlFlow;

use alluvium_sql_functions::scalar_name;
use sqlparser::ast::{
    ArrayElemTypeDef, DataType, Expr, Function, ObjectNamePart, Query, Select, SetExpr,
};

use super::balance::{balance, balance_unions};
use super::limits::{Counts, relations};
use crate::error::{Error, Position, Result};
use crate::stack::DEEPEST;
use crate::statement::{self, MOST_COLUMNS, fold};

/// The largest number of levels of a type.
const DEEPEST_TYPE: usize = 64;

/// How many relations a common table may read, with those of the common tables that it reads.
const MOST_COPIES: usize = 1_000;

/// The depth of a syntax tree at the place that a walk has reached.
#[derive(Default)]
pub(super) struct Shape {
    depth: usize,
    /// How many functions are around the present expression.
    functions: usize,
    /// How many window functions are around it, up to the query that it is in.
    windows: usize,
    /// The same of the queries around that.
    outer_windows: Vec<usize>,
    counts: Counts,
}

impl Shape {
    fn enter(
        &mut self,
        levels: usize,
        position: impl FnOnce() -> Option<Position>,
    ) -> ControlFlow<Error> {
        self.depth += levels;
        match self.depth > DEEPEST {
            true => ControlFlow::Break(too_deep(position())),
            false => ControlFlow::Continue(()),
        }
    }

    fn leave(&mut self, levels: usize) {
        self.depth -= levels;
    }
}

fn too_deep(position: Option<Position>) -> Error {
    let message = format!(
        "this nests more than {DEEPEST} levels deep, or is a chain of more than {DEEPEST} operators: \
         split it up, with a materialized view for a part of it"
    );
    Error::new(message, position)
}

impl Shape {
    pub(super) fn enter_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        balance_unions(&mut query.body);
        if let Err(error) = self.counts.query(query).and_then(|()| check_tables(query)) {
            return ControlFlow::Break(error);
        }
        self.outer_windows.push(mem::take(&mut self.windows));
        self.enter(query_levels(query), || None)
    }

    pub(super) fn leave_query(&mut self, query: &Query) {
        self.windows = self.outer_windows.pop().unwrap_or(0);
        self.leave(query_levels(query));
    }

    pub(super) fn enter_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        if let Err(error) = self.counts.select(select) {
            return ControlFlow::Break(error);
        }
        self.enter(relations(select), || Position::of_span(select.select_token.0.span))
    }

    pub(super) fn leave_select(&mut self, select: &Select) {
        self.leave(relations(select));
    }

    pub(super) fn enter_table_factor(&mut self) -> ControlFlow<Error> {
        self.enter(1, || None)
    }

    pub(super) fn leave_table_factor(&mut self) {
        self.leave(1);
    }

    pub(super) fn enter_expr(&mut self, expression: &mut Expr) -> ControlFlow<Error> {
        balance(expression);
        if let Expr::Function(function) = expression {
            if self.functions > 0 {
                canonical_name(function);
            }
            self.functions += 1;
            // DataFusion refuses them late, after it has copied each into all others.
            if function.over.is_some() && self.windows > 0 {
                let message =
                    "window functions cannot be nested: select the inner one in a subquery";
                return ControlFlow::Break(Error::new(message, Position::of(&*function)));
            }
            self.windows += usize::from(function.over.is_some());
        }
        if let Err(error) = self.counts.expression(expression) {
            return ControlFlow::Break(error);
        }
        if let Expr::Cast { data_type, .. } = expression
            && let Err(error) = check_type(data_type)
        {
            return ControlFlow::Break(error.at(end_of(expression)));
        }
        self.enter(expression_levels(expression), || end_of(expression))
    }

    pub(super) fn leave_expr(&mut self, expression: &Expr) {
        if let Expr::Function(function) = expression {
            self.functions -= 1;
            self.windows -= usize::from(function.over.is_some());
        }
        self.leave(expression_levels(expression));
    }
}

/// Gives a function its own name instead of an alias. DataFusion names what an alias returns by printing it twice, so that
/// names of nested aliases would take exponential space.
fn canonical_name(function: &mut Function) {
    let [ObjectNamePart::Identifier(name)] = function.name.0.as_mut_slice() else { return };
    if let Some(canonical) = scalar_name(&fold(name)) {
        name.value = canonical.to_owned();
    }
}

/// The levels of a query's own operations: of its set operations, and of its common tables, each of which may read
/// the one before.
fn query_levels(query: &Query) -> usize {
    let mut levels = 1;
    let mut rest = vec![(&*query.body, 1)];
    while let Some((body, level)) = rest.pop() {
        levels = levels.max(level);
        if let SetExpr::SetOperation { left, right, .. } = body {
            rest.extend([(&**left, level + 1), (&**right, level + 1)]);
        }
    }
    levels + query.with.as_ref().map_or(0, |with| with.cte_tables.len())
}

/// The levels of an expression above its parts: each of `a[1][2]` becomes a function of the one before.
fn expression_levels(expression: &Expr) -> usize {
    match expression {
        Expr::CompoundFieldAccess { access_chain, .. } => 1 + access_chain.len(),
        _ => 1,
    }
}

/// Refuses common tables that read each other so often that they stand for too many copies.
fn check_tables(query: &Query) -> Result<()> {
    let Some(with) = &query.with else { return Ok(()) };
    let mut copies: HashMap<String, usize> = HashMap::new();
    for table in &with.cte_tables {
        let read = statement::relations(&*table.query);
        let of_one = |relation: &String| copies.get(relation).copied().unwrap_or(1);
        let count = read.iter().map(of_one).fold(1, usize::saturating_add);
        if count > MOST_COPIES {
            let message = format!(
                "common table \"{}\" reads others more than {MOST_COPIES} times",
                table.alias.name
            );
            return Err(Error::new(message, Position::of_span(table.alias.name.span)));
        }
        copies.insert(table.alias.name.to_string(), count);
    }
    Ok(())
}

/// A position near the end of an expression, found without a walk over all of it.
pub(super) fn end_of(mut expression: &Expr) -> Option<Position> {
    loop {
        expression = match expression {
            Expr::BinaryOp { right, .. } => right,
            Expr::Nested(inner)
            | Expr::UnaryOp { expr: inner, .. }
            | Expr::Cast { expr: inner, .. }
            | Expr::Like { pattern: inner, .. }
            | Expr::ILike { pattern: inner, .. } => inner,
            Expr::Value(value) => return Position::of_span(value.span),
            Expr::CompoundFieldAccess { root, .. } => root,
            Expr::Identifier(name) => return Position::of_span(name.span),
            Expr::CompoundIdentifier(names) => return Position::of_span(names.first()?.span),
            _ => return None,
        }
    }
}

/// Refuses a type of more than [`DEEPEST_TYPE`] levels or more than [`MOST_COLUMNS`] fields and elements.
pub fn check_type(data_type: &DataType) -> Result<()> {
    let mut rest = vec![(data_type, 1)];
    let mut types = 0;
    while let Some((data_type, level)) = rest.pop() {
        types += 1;
        if types > MOST_COLUMNS {
            return Err(Error::new(format!("a type has at most {MOST_COLUMNS} fields"), None));
        }
        if level > DEEPEST_TYPE {
            return Err(Error::new(
                format!("this type nests more than {DEEPEST_TYPE} levels deep"),
                None,
            ));
        }
        match data_type {
            DataType::Array(
                ArrayElemTypeDef::AngleBracket(element)
                | ArrayElemTypeDef::SquareBracket(element, _)
                | ArrayElemTypeDef::Parenthesis(element),
            )
            | DataType::Nullable(element)
            | DataType::LowCardinality(element) => rest.push((element, level + 1)),
            DataType::Map(key, value) => rest.extend([(&**key, level + 1), (&**value, level + 1)]),
            DataType::Struct(fields, _) | DataType::Tuple(fields) => {
                rest.extend(fields.iter().map(|field| (&field.field_type, level + 1)));
            }
            DataType::Nested(columns) | DataType::Table(Some(columns)) => {
                rest.extend(columns.iter().map(|column| (&column.data_type, level + 1)));
            }
            _ => {}
        }
    }
    Ok(())
}
