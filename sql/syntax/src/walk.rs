//! A walk over a syntax tree.
//!
//! The walk of sqlparser is generic in its visitor and compiles to thousands of functions. This one is compiled once for all
//! visitors.

use std::ops::ControlFlow;

use sqlparser::ast::{Expr, ObjectName, Query, Select, TableFactor, Visit, Visitor};

use crate::error::Error;

/// Visits the queries, SELECTs, relations, table factors and expressions of a part of a statement, each before its parts,
/// until the visitor breaks with an error. Queries are visited after their parts as well.
pub fn walk(part: &impl Visit, visitor: &mut dyn Visitor<Break = Error>) -> Result<(), Error> {
    match part.visit(&mut Shared(visitor)) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

struct Shared<'a>(&'a mut dyn Visitor<Break = Error>);

impl Visitor for Shared<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Error> {
        self.0.pre_visit_query(query)
    }

    fn post_visit_query(&mut self, query: &Query) -> ControlFlow<Error> {
        self.0.post_visit_query(query)
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Error> {
        self.0.pre_visit_select(select)
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<Error> {
        self.0.pre_visit_relation(relation)
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<Error> {
        self.0.pre_visit_table_factor(factor)
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<Error> {
        self.0.pre_visit_expr(expression)
    }
}
