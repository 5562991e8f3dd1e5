//! Constructs that queries support and views do not, refused by name and position.
//!
//! No optimizer rule turns these constructs into something a view can maintain, so the syntax tree, which has positions, is
//! enough to find them.

use std::ops::ControlFlow;

use alluvium_sql_functions::FUNCTIONS;
use alluvium_sql_syntax::error::{Error, Position};
use alluvium_sql_syntax::syntax::{called, changing_function};
use alluvium_sql_syntax::walk::walk;
use datafusion_expr::Volatility;
use sqlparser::ast::{self, Expr, Query, Spanned, Visitor};
use sqlparser::tokenizer::Span;

use crate::registered::RegisteredFunctions;

/// The first positions of constructs that the optimizer may or may not be able to replace.
#[derive(Debug, Default)]
pub struct Landmarks {
    /// The query's start.
    pub start: Option<Position>,
    /// The first scalar subquery.
    pub scalar_subquery: Option<Position>,
    /// The first IN of a subquery.
    pub in_subquery: Option<Position>,
    /// The first EXISTS.
    pub exists: Option<Position>,
    /// The first aggregate.
    pub aggregate: Option<Position>,
    /// The first LIMIT or OFFSET.
    pub limit: Option<Position>,
    /// The first WITH RECURSIVE.
    pub recursion: Option<Position>,
    /// The first window function.
    pub window: Option<Position>,
}

/// Refuses unsupported constructs in a view's query; returns the positions of those that may be unsupported.
pub fn check_view(query: &Query, registered: &RegisteredFunctions) -> Result<Landmarks, Error> {
    let landmarks = Landmarks { start: Position::of(query), ..Landmarks::default() };
    let mut check = Check { landmarks, registered };
    match walk(query, &mut check) {
        Err(error) => Err(error.at(check.landmarks.start)),
        Ok(()) => Ok(check.landmarks),
    }
}

struct Check<'a> {
    landmarks: Landmarks,
    registered: &'a RegisteredFunctions,
}

fn refuse(name: impl std::fmt::Display, span: Span) -> ControlFlow<Error> {
    ControlFlow::Break(Error::not_supported(format!("{name} in a view"), Position::of_span(span)))
}

impl Check<'_> {
    /// Functions of the program whose results depend on anything but their arguments.
    fn changing_registered(&self, function: &ast::Function) -> ControlFlow<Error> {
        let Some(name) = called(function) else { return ControlFlow::Continue(()) };
        match self.registered.volatility(&name) {
            None | Some(Volatility::Immutable) => ControlFlow::Continue(()),
            Some(volatility @ (Volatility::Stable | Volatility::Volatile)) => {
                let message = format!(
                    "{name}() is registered as {volatility:?} and cannot be used in a view: only a function that is Immutable, \
                     whose results depend on its arguments alone, can"
                );
                ControlFlow::Break(Error::new(message, Position::of(&function.name)))
            }
        }
    }

    fn function(&mut self, function: &ast::Function) -> ControlFlow<Error> {
        let Some(name) = called(function) else { return ControlFlow::Continue(()) };
        let span = function.name.span();
        self.changing_registered(function)?;
        if function.over.is_some() {
            self.landmarks.window = self.landmarks.window.or_else(|| Position::of_span(span));
            return ControlFlow::Continue(());
        }
        changing_function(function, "a view")?;
        if FUNCTIONS.aggregate.contains_key(&name) || self.registered.aggregate(&name).is_some() {
            self.landmarks.aggregate = self.landmarks.aggregate.or_else(|| Position::of_span(span));
        }
        ControlFlow::Continue(())
    }
}

/// Records the first position of a construct.
fn first_here(place: &mut Option<Position>, span: Span) -> ControlFlow<Error> {
    *place = place.or_else(|| Position::of_span(span));
    ControlFlow::Continue(())
}

/// The nearest known position: the syntax tree does not have one for every construct.
fn first_known(span: Span, otherwise: Span) -> Span {
    if span.start.line > 0 { span } else { otherwise }
}

impl Visitor for Check<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Error> {
        let span = query.body.span();
        if let Some(with) = query.with.as_ref().filter(|with| with.recursive) {
            let first = with.cte_tables.first();
            let position = first.and_then(|cte| Position::of_span(cte.alias.name.span));
            self.landmarks.recursion = self.landmarks.recursion.or(position);
        }
        match &query.limit_clause {
            None => {}
            Some(clause) => {
                let position = Position::of_span(first_known(clause.span(), span));
                self.landmarks.limit = self.landmarks.limit.or(position);
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<Error> {
        match expression {
            Expr::Function(function) => self.function(function),
            Expr::Subquery(query) => first_here(&mut self.landmarks.scalar_subquery, query.span()),
            Expr::InSubquery { expr, .. } => {
                first_here(&mut self.landmarks.in_subquery, expr.span())
            }
            Expr::Exists { subquery, .. } => {
                first_here(&mut self.landmarks.exists, subquery.span())
            }
            Expr::AnyOp { left, right, .. } if matches!(**right, Expr::Subquery(_)) => {
                refuse("ANY (SELECT …) with this operator", left.span())
            }
            Expr::AllOp { left, right, .. } if matches!(**right, Expr::Subquery(_)) => {
                refuse("ALL (SELECT …) with this operator", left.span())
            }
            Expr::Value(value) if matches!(value.value, ast::Value::Placeholder(_)) => {
                refuse("a parameter", value.span)
            }
            _ => ControlFlow::Continue(()),
        }
    }
}
