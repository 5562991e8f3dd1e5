//! Syntax that DataFusion's planner does not take, or takes for something else.

use std::collections::HashMap;
use std::ops::ControlFlow;

use sqlparser::ast::{
    BinaryOperator, Expr, Fetch, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
    Interval, LimitClause, NamedWindowDefinition, NamedWindowExpr, Query, Select, SetExpr,
    TableFactor, Value, ValueWithSpan, VisitMut, VisitorMut, WindowFrame, WindowFrameBound,
    WindowSpec, WindowType,
};

use super::calls;
use super::column_names::{name_columns, name_order};
use super::function_columns::{name_in_query, name_in_select};
use super::grouped_keys::drop_casts_of_keys;
use super::grouped_sets;
use super::grouped_windows::as_relation;
use super::lambdas::{self, Lambdas};
use super::nested_with;
use super::order_names;
use super::quantified::as_exists;
use super::relation::name_semi_joins;
use super::rows;
use super::schemas;
use super::shape::Shape;
use super::wildcards;
use super::with_ties::with_ties_as_rank;
use crate::error::{Error, Position, Result};
use crate::statement::fold;

/// The operator in front of a number that is DOUBLE: `'1e3' DOUBLE NULL`, as the syntax is rewritten before it is planned.
/// DataFusion takes all numbers that are not integers for DECIMAL.
pub const DOUBLE: &str = "DOUBLE";

/// Rewrites a part of a statement:
///
/// - `OVER w` to the window that the SELECT defines as `w`: DataFusion looks for it among the selected columns only, and
///   takes `sum(x) OVER w` for `sum(x)` elsewhere;
/// - bounds of frames: `INTERVAL 6 HOURS` becomes `INTERVAL '6' HOURS`;
/// - long chains of OR, AND and UNION to trees of little depth;
/// - columns that are computed and have no alias, and those of functions in FROM, to columns that have one;
/// - windows of time in GROUP BY, and columns with other names, to relations in FROM;
/// - SEMI and ANTI joins to left ones, and keys of GROUP BY to fewer;
/// - FETCH to LIMIT or, WITH TIES, to QUALIFY, and comparisons with ANY and ALL to IN, EXISTS or CASE;
/// - comparisons of rows to those of their values;
/// - names in schemas to names without, and those of queries of WITH to ones that hide no others;
/// - calls that stand for other expressions;
/// - numbers that are DOUBLE, which are those with an exponent or with more digits than a DECIMAL has.
///
/// # Errors
/// If a window that is named is not defined, or if the tree is too deep.
pub fn normalize(part: &mut impl VisitMut) -> Result<()> {
    nested_with::rename(part);
    schemas::resolve(part)?;
    match part.visit(&mut Normalize {
        shape: Shape::default(),
        windows: Vec::new(),
        lambdas: Lambdas::default(),
        subqueries: 0,
    }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Normalize {
    shape: Shape,
    /// The windows of each query and SELECT around an expression, by name.
    windows: Vec<HashMap<String, WindowSpec>>,
    /// The lambdas that are arguments of the functions around.
    lambdas: Lambdas,
    /// How many subqueries of expressions are around.
    subqueries: usize,
}

impl Normalize {
    fn enter(&mut self, select: Option<&Select>) {
        let mut windows = HashMap::new();
        for definition in select.iter().flat_map(|select| &select.named_window) {
            if let NamedWindowDefinition(name, NamedWindowExpr::WindowSpec(window)) = definition {
                windows.insert(fold(name), window.clone());
            }
        }
        self.windows.push(windows);
    }

    fn leave(&mut self) -> ControlFlow<Error> {
        self.windows.pop();
        ControlFlow::Continue(())
    }
}

impl VisitorMut for Normalize {
    type Break = Error;

    /// The ORDER BY of a query may name the windows of its SELECT.
    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        order_names::resolve(query);
        self.shape.enter_query(query)?;
        name_in_query(query);
        if let Err(error) = with_ties_as_rank(query) {
            return ControlFlow::Break(error);
        }
        fetch_as_limit(query);
        if let SetExpr::Select(select) = query.body.as_mut()
            && let Err(error) = wildcards::as_relation(select, query.order_by.as_mut())
        {
            return ControlFlow::Break(error);
        }
        if self.subqueries == 0 {
            name_order(query);
        }
        match query.body.as_ref() {
            SetExpr::Select(select) => self.enter(Some(select)),
            _ => self.enter(None),
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        self.shape.leave_query(query);
        self.leave()
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        grouped_sets::expand(select);
        self.shape.enter_select(select)?;
        name_semi_joins(&mut select.from);
        drop_casts_of_keys(select);
        name_in_select(select);
        as_exists(select);
        // The columns of a subquery of an expression cannot be named.
        if self.subqueries == 0 {
            name_columns(select);
        }
        if let Err(error) = wildcards::as_relation(select, None).and_then(|()| as_relation(select))
        {
            return ControlFlow::Break(error);
        }
        self.enter(Some(select));
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        self.shape.leave_select(select);
        self.leave()
    }

    fn pre_visit_table_factor(&mut self, _: &mut TableFactor) -> ControlFlow<Error> {
        self.shape.enter_table_factor()
    }

    fn post_visit_table_factor(&mut self, _: &mut TableFactor) -> ControlFlow<Error> {
        self.shape.leave_table_factor();
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Error> {
        self.shape.leave_expr(expression);
        self.subqueries -= usize::from(is_subquery(expression));
        match calls::expand(expression).and_then(|()| rows::expand(expression)) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Error> {
        lambdas::separate(expression, &mut self.lambdas);
        self.shape.enter_expr(expression)?;
        self.subqueries += usize::from(is_subquery(expression));
        match expression {
            Expr::Function(function) => {
                take_null_treatment(function);
                if let Some(WindowType::NamedWindow(name)) = &function.over {
                    let windows = self.windows.last();
                    let Some(window) = windows.and_then(|windows| windows.get(&fold(name))) else {
                        let message = format!("no window \"{name}\" in this SELECT");
                        let position = Position::of_span(name.span);
                        return ControlFlow::Break(Error::new(message, position));
                    };
                    function.over = Some(WindowType::WindowSpec(window.clone()));
                }
                if let Some(WindowType::WindowSpec(window)) = &mut function.over
                    && let Some(frame) = &mut window.window_frame
                {
                    normalize_frame(frame);
                }
            }
            Expr::Value(ValueWithSpan { value: Value::Number(number, _), span })
                if is_double(number) =>
            {
                let value = Value::SingleQuotedString(std::mem::take(number));
                *expression = Expr::BinaryOp {
                    left: Box::new(Expr::Value(value.with_span(*span))),
                    op: BinaryOperator::Custom(DOUBLE.to_string()),
                    right: Box::new(Expr::Value(Value::Null.with_span(*span))),
                };
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// `FETCH FIRST n ROWS ONLY` as `LIMIT n`. Other forms of FETCH are refused later.
fn fetch_as_limit(query: &mut Query) {
    let Some(Fetch { with_ties: false, percent: false, quantity }) = &query.fetch else { return };
    let one = || Expr::value(Value::Number("1".to_owned(), false));
    let count = quantity.clone().unwrap_or_else(one);
    match &mut query.limit_clause {
        None => {
            let clause =
                LimitClause::LimitOffset { limit: Some(count), offset: None, limit_by: Vec::new() };
            query.limit_clause = Some(clause);
        }
        Some(LimitClause::LimitOffset { limit: limit @ None, .. }) => *limit = Some(count),
        // It stays, and is refused.
        Some(_) => return,
    }
    query.fetch = None;
}

/// `last_value(f(a) IGNORE NULLS) OVER …`, of which the parser takes `IGNORE NULLS` for a part of the call of `f`.
fn take_null_treatment(function: &mut Function) {
    if function.over.is_none() || function.null_treatment.is_some() {
        return;
    }
    if let FunctionArguments::List(list) = &mut function.args
        && let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Function(argument)))) =
            list.args.first_mut()
        && argument.over.is_none()
    {
        function.null_treatment = argument.null_treatment.take();
    }
}

fn is_subquery(expression: &Expr) -> bool {
    matches!(expression, Expr::Subquery(_) | Expr::InSubquery { .. } | Expr::Exists { .. })
}

fn normalize_frame(frame: &mut WindowFrame) {
    for bound in [Some(&mut frame.start_bound), frame.end_bound.as_mut()].into_iter().flatten() {
        if let WindowFrameBound::Preceding(Some(offset)) | WindowFrameBound::Following(Some(offset)) =
            bound
            && let Expr::Interval(Interval { value, .. }) = offset.as_mut()
            && let Expr::Value(ValueWithSpan { value, .. }) = value.as_mut()
            && let Value::Number(number, _) = value
        {
            *value = Value::SingleQuotedString(std::mem::take(number));
        }
    }
}

/// Whether a number is DOUBLE: it has an exponent, or more digits than a DECIMAL.
fn is_double(number: &str) -> bool {
    if number.contains(['e', 'E']) {
        return true;
    }
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| text.bytes().filter(u8::is_ascii_digit).count();
    let whole = digits(whole.trim_start_matches(['0', '_']));
    whole + digits(fraction) > usize::from(arrow::datatypes::DECIMAL128_MAX_PRECISION)
}
