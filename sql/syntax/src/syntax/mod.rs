//! Every part of a statement is used, or refused by name.
//!
//! DataFusion's planner ignores parts of the syntax tree that it has no use for: `TABLESAMPLE`, `FOR UPDATE`,
//! `lower(DISTINCT x)`. This check goes through the tree before anything plans it. It lists every variant and every
//! field by name, without `..` or `_`: a field that a new sqlparser adds is a compile error until it is used or refused here.
//!
//! - `query`: clauses around a SELECT or set operation, `select`: those of a SELECT, `relation`: FROM and joins, `asof`: ASOF joins;
//! - `expression`, `function` and `data_type`: their parts;
//! - `clause` refuses clauses without an effect;
//! - `normalize` rewrites constructs that DataFusion does not understand, before the check, and `balance` those too deep for it;
//! - `schemas` resolves names in schemas;
//! - `calls` puts other expressions in place of some calls, `mod(a, b)`;
//! - `column_names` names computed columns, `function_columns` those of functions in FROM;
//! - `quantified` makes `x > ANY (SELECT …)` IN, EXISTS or a CASE, `rows` comparisons of rows ones of values, `grouped_windows` GROUP BY TUMBLE a relation, `grouped_keys` drops casts of keys, `grouped_sets` expands sets
//!   within sets, `order_names` says what names in ORDER BY mean, `with_ties` FETCH … WITH
//!   TIES a rank, `simple_query` a query;
//! - `nested_with` gives queries of WITH that hide others names of their own, `with_before_change` reads `WITH … INSERT`;
//! - `wildcards` makes `* RENAME` and `(e).*` relations, and names columns beside UNNEST apart;
//! - `lambdas` tells `x -> x + 1` from `json -> 'a'`;
//! - `series` and `time_window` read calls of functions in FROM;
//! - `changing` refuses functions whose results differ for the same arguments;
//! - `shape` and `limits` refuse statements that are too deep or too long;
//! - `table` and `view`: CREATE TABLE and CREATE VIEW; `change`: INSERT, UPDATE and DELETE.
mod asof;
mod balance;
mod calls;
mod change;
mod changing;
mod clause;
mod column_names;
mod data_type;
mod expression;
mod function;
mod function_columns;
mod grouped_keys;
mod grouped_sets;
mod grouped_windows;
mod lambdas;
mod limits;
mod nested_with;
mod normalize;
mod order_names;
mod quantified;
mod query;
mod relation;
mod rows;
mod schemas;
mod select;
mod series;
mod shape;
mod simple_query;
mod table;
mod time_window;
mod view;
mod wildcards;
mod with_before_change;
mod with_ties;

use std::ops::ControlFlow;

use sqlparser::ast::{Expr, Query, Select, TableFactor, Visit, Visitor};
use sqlparser::tokenizer::Span;

pub use self::asof::AsofJoin;
pub use self::calls::{LEVELS, NEGATED, call, is_bare, is_defined, name_of as called};
pub use self::change::replaces;
pub use self::change::{check_delete, check_insert, check_update, name_returned};
pub use self::changing::changing_function;
pub use self::column_names::{name_of as column_name, unnested_name_of};
pub use self::function::check_clauses;
pub use self::normalize::{DOUBLE, normalize};
pub use self::order_names::NAMED;
pub use self::relation::refers;
pub use self::rows::ROW_VALUE;
pub use self::series::SeriesCall;
pub use self::shape::check_type;
pub use self::simple_query::{from_query, from_table, known_as, simple_query};
pub use self::table::check_table;
pub use self::time_window::{
    WindowArguments, WindowFunction, described, windowed, windowed_without_schema,
};
pub use self::view::check_view;
pub use self::wildcards::{COLUMNS, FIELDS};
pub use self::with_before_change::change;
use crate::error::{Error, Position, Result};
use crate::walk::walk;

/// Refuses clauses of a part of a statement that have no effect.
pub fn check(part: &impl Visit) -> Result<()> {
    walk(part, &mut Unused { near: Span::empty() })
}

struct Unused {
    /// The place of the SELECT that was entered last, for nodes without a position.
    near: Span,
}

impl Unused {
    fn flow(&self, checked: Result<()>) -> ControlFlow<Error> {
        match checked {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error.at(Position::of_span(self.near))),
        }
    }
}

impl Visitor for Unused {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Error> {
        self.flow(query::check(query))
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Error> {
        self.near = select.select_token.0.span;
        self.flow(select::check(select))
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<Error> {
        self.flow(relation::check(factor))
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<Error> {
        self.flow(expression::check(expression))
    }
}
