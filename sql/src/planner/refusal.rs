//! Unsupported constructs in views, refused by name and position.
//!
//! No optimizer rule turns these constructs into something a view can maintain, so the syntax tree, which has positions, is
//! enough to find them.

use std::ops::ControlFlow;

use datafusion_expr::Volatility;
use sqlparser::ast::{
    self, Expr, GroupByExpr, JoinOperator, LimitClause, Query, Select, SetExpr, SetOperator,
    SetQuantifier, Spanned, TableFactor, Visitor,
};
use sqlparser::tokenizer::Span;

use super::functions::FUNCTIONS;
use super::time_window;
use crate::error::{Error, Position};
use crate::walk::walk;

/// The first positions of constructs that the optimizer may or may not be able to replace.
#[derive(Debug, Default)]
pub(crate) struct Landmarks {
    /// The query's start.
    pub(crate) start: Option<Position>,
    /// The first scalar subquery.
    pub(crate) scalar_subquery: Option<Position>,
    /// The first IN of a subquery.
    pub(crate) in_subquery: Option<Position>,
    /// The first EXISTS.
    pub(crate) exists: Option<Position>,
    /// The first aggregate.
    pub(crate) aggregate: Option<Position>,
    /// The first LIMIT or OFFSET.
    pub(crate) limit: Option<Position>,
    /// The first window function.
    pub(crate) window: Option<Position>,
}

/// Refuses unsupported constructs in a view's query; returns the positions of those that may be unsupported.
pub(crate) fn check_view(query: &Query) -> Result<Landmarks, Error> {
    let mut check =
        Check { landmarks: Landmarks { start: Position::of(query), ..Landmarks::default() } };
    match walk(query, &mut check) {
        Err(error) => Err(error.at(check.landmarks.start)),
        Ok(()) => Ok(check.landmarks),
    }
}

/// Refuses unsupported constructs in a column's DEFAULT.
pub(crate) fn check_default(expression: &Expr) -> Result<(), Error> {
    struct Default;
    impl Visitor for Default {
        type Break = Error;

        fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Error> {
            ControlFlow::Break(Error::not_supported("a query in DEFAULT", Position::of(query)))
        }

        fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<Error> {
            match expression {
                Expr::Function(function) => changing_function(function, "DEFAULT"),
                Expr::Value(value) if matches!(value.value, ast::Value::Placeholder(_)) => {
                    let position = Position::of_span(value.span);
                    ControlFlow::Break(Error::not_supported("a parameter in DEFAULT", position))
                }
                Expr::Identifier(identifier) => ControlFlow::Break(Error::new(
                    format!("DEFAULT cannot refer to a column: \"{identifier}\""),
                    Position::of_span(identifier.span),
                )),
                _ => ControlFlow::Continue(()),
            }
        }
    }
    walk(expression, &mut Default)
}

struct Check {
    landmarks: Landmarks,
}

fn refuse(name: impl std::fmt::Display, span: Span) -> ControlFlow<Error> {
    ControlFlow::Break(Error::not_supported(format!("{name} in a view"), Position::of_span(span)))
}

fn function_name(function: &ast::Function) -> String {
    function.name.to_string().to_lowercase()
}

/// Functions that return different results for the same arguments.
fn changing_function(function: &ast::Function, place: &str) -> ControlFlow<Error> {
    let name = function_name(function);
    let Some(scalar) = FUNCTIONS.scalar.get(&name) else { return ControlFlow::Continue(()) };
    let position = Position::of(&function.name);
    ControlFlow::Break(match scalar.signature().volatility {
        // Stable functions depend on the time, which is constant within an epoch.
        Volatility::Immutable | Volatility::Stable => return ControlFlow::Continue(()),
        Volatility::Volatile => Error::new(
            format!("{name}() gives another value at each call and cannot be used in {place}"),
            position,
        ),
    })
}

impl Check {
    fn function(&mut self, function: &ast::Function) -> ControlFlow<Error> {
        let name = function_name(function);
        let span = function.name.span();
        if function.over.is_some() {
            self.landmarks.window = self.landmarks.window.or_else(|| Position::of_span(span));
            return ControlFlow::Continue(());
        }
        changing_function(function, "a view")?;
        if FUNCTIONS.aggregate.contains_key(&name) {
            self.landmarks.aggregate = self.landmarks.aggregate.or_else(|| Position::of_span(span));
        }
        ControlFlow::Continue(())
    }

    fn set_expression(&mut self, body: &SetExpr) -> ControlFlow<Error> {
        match body {
            SetExpr::SetOperation { op, set_quantifier, left, right } => {
                let by_name = matches!(
                    set_quantifier,
                    SetQuantifier::ByName
                        | SetQuantifier::AllByName
                        | SetQuantifier::DistinctByName
                );
                if matches!(op, SetOperator::Minus) || by_name && *op != SetOperator::Union {
                    let name = format!("{op} {set_quantifier}");
                    return refuse(name.trim_end(), right.span());
                }
                self.set_expression(left)?;
                self.set_expression(right)
            }
            SetExpr::Select(_) | SetExpr::Query(_) | SetExpr::Values(_) => {
                ControlFlow::Continue(())
            }
            SetExpr::Table(_) => refuse("TABLE", body.span()),
            SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => {
                refuse("changing a table", body.span())
            }
        }
    }

    fn join(&mut self, join: &ast::Join) -> ControlFlow<Error> {
        let span = join.relation.span();
        match &join.join_operator {
            JoinOperator::Join(_)
            | JoinOperator::Inner(_)
            | JoinOperator::CrossJoin(_)
            | JoinOperator::Left(_)
            | JoinOperator::LeftOuter(_)
            | JoinOperator::Right(_)
            | JoinOperator::RightOuter(_)
            | JoinOperator::FullOuter(_)
            | JoinOperator::Semi(_)
            | JoinOperator::LeftSemi(_)
            | JoinOperator::RightSemi(_)
            | JoinOperator::Anti(_)
            | JoinOperator::LeftAnti(_)
            | JoinOperator::RightAnti(_) => ControlFlow::Continue(()),
            JoinOperator::AsOf { .. } => refuse("ASOF JOIN", span),
            _ => refuse("this kind of join", span),
        }
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

impl Visitor for Check {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Error> {
        let span = query.body.span();
        if let Some(with) = &query.with
            && with.recursive
        {
            return refuse("WITH RECURSIVE", with.span());
        }
        match &query.limit_clause {
            None => {}
            Some(LimitClause::LimitOffset { limit_by, .. }) if !limit_by.is_empty() => {
                return refuse("LIMIT … BY", first_known(limit_by[0].span(), span));
            }
            Some(clause) => {
                let position = Position::of_span(first_known(clause.span(), span));
                self.landmarks.limit = self.landmarks.limit.or(position);
            }
        }
        if query.fetch.is_some() {
            return refuse("FETCH", span);
        }
        if !query.locks.is_empty() {
            return refuse("FOR UPDATE", span);
        }
        if query.for_clause.is_some()
            || query.settings.is_some()
            || query.format_clause.is_some()
            || !query.pipe_operators.is_empty()
        {
            return refuse("a clause after the query", span);
        }
        self.set_expression(&query.body)
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Error> {
        let span = select.select_token.0.span;
        if let GroupByExpr::Expressions(_, modifiers) | GroupByExpr::All(modifiers) =
            &select.group_by
            && let Some(modifier) = modifiers.first()
        {
            return refuse(modifier, span);
        }
        if select.top.is_some() {
            return refuse("TOP", span);
        }
        if select.into.is_some() {
            return refuse("INTO", span);
        }
        if !select.lateral_views.is_empty() {
            return refuse("LATERAL VIEW", span);
        }
        if select.prewhere.is_some()
            || !select.connect_by.is_empty()
            || !select.cluster_by.is_empty()
            || !select.distribute_by.is_empty()
            || !select.sort_by.is_empty()
            || select.value_table_mode.is_some()
        {
            return refuse("a clause of this SELECT", span);
        }
        for table in &select.from {
            for join in &table.joins {
                self.join(join)?;
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<Error> {
        let span = factor.span();
        match factor {
            _ if time_window::is_time_window(factor) => ControlFlow::Continue(()),
            TableFactor::Table { args: Some(_), name, .. } => {
                refuse(format_args!("the table function {name}"), span)
            }
            TableFactor::Table { sample: Some(_), .. }
            | TableFactor::Derived { sample: Some(_), .. } => refuse("TABLESAMPLE", span),
            TableFactor::Derived { lateral: true, .. } => refuse("LATERAL", span),
            TableFactor::Table { .. }
            | TableFactor::Derived { .. }
            | TableFactor::UNNEST { .. } => ControlFlow::Continue(()),
            TableFactor::NestedJoin { table_with_joins, .. } => {
                for join in &table_with_joins.joins {
                    self.join(join)?;
                }
                ControlFlow::Continue(())
            }
            TableFactor::Pivot { .. } => refuse("PIVOT", span),
            TableFactor::Unpivot { .. } => refuse("UNPIVOT", span),
            TableFactor::MatchRecognize { .. } => refuse("MATCH_RECOGNIZE", span),
            TableFactor::TableFunction { .. } | TableFactor::Function { .. } => {
                refuse("a table function", span)
            }
            _ => refuse("this kind of relation", span),
        }
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
            Expr::AnyOp { left, .. } => refuse("ANY", left.span()),
            Expr::AllOp { left, .. } => refuse("ALL", left.span()),
            Expr::Value(value) if matches!(value.value, ast::Value::Placeholder(_)) => {
                refuse("a parameter", value.span)
            }
            _ => ControlFlow::Continue(()),
        }
    }
}
