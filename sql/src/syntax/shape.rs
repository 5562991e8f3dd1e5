//! The shape of syntax trees: long chains become bushy, and deep trees are refused.
//!
//! The parser makes `a OR b OR c OR …` a tree as deep as the chain is long, and everything after it recurses. Programs
//! write chains of thousands of OR, AND and UNION, so these are balanced, which changes neither their result nor their
//! order. Other trees have at most [`DEEPEST`] levels.

use std::collections::HashMap;
use std::mem;
use std::ops::ControlFlow;

use sqlparser::ast::{
    ArrayElemTypeDef, BinaryOperator, DataType, Expr, Function, GroupByExpr, GroupByWithModifier,
    ObjectNamePart, Query, Select, SetExpr, SetOperator, SetQuantifier, Value,
};

use crate::error::{Error, Position, Result};
use crate::planner::functions::scalar_name;
use crate::stack::DEEPEST;
use crate::statement::{fold, relations};

/// The largest number of levels of a type.
const DEEPEST_TYPE: usize = 64;

/// The largest number of grouping sets of a SELECT.
const MOST_GROUPING_SETS: usize = 4_096;

/// The largest number of relations that a SELECT joins.
const MOST_RELATIONS: usize = 100;

/// How many relations a common table may read, with those of the common tables that it reads.
const MOST_COPIES: usize = 1_000;

/// Chains up to this length keep their shape.
const SHORT_CHAIN: usize = 64;

/// The depth of a syntax tree at the place that a walk has reached.
#[derive(Default)]
pub(super) struct Shape {
    depth: usize,
    /// How many functions are around the present expression.
    functions: usize,
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
        if let Err(error) = check_tables(query) {
            return ControlFlow::Break(error);
        }
        self.enter(query_levels(query), || None)
    }

    pub(super) fn leave_query(&mut self, query: &Query) {
        self.leave(query_levels(query));
    }

    pub(super) fn enter_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        let position = Position::of_span(select.select_token.0.span);
        let sets = grouping_sets(&select.group_by);
        if sets > MOST_GROUPING_SETS {
            let message = format!("GROUP BY has more than {MOST_GROUPING_SETS} grouping sets");
            return ControlFlow::Break(Error::new(message, position));
        }
        let joins = joins(select);
        if joins > MOST_RELATIONS {
            let message = format!("a SELECT reads more than {MOST_RELATIONS} relations");
            return ControlFlow::Break(Error::new(message, position));
        }
        self.enter(joins, || position)
    }

    pub(super) fn leave_select(&mut self, select: &Select) {
        self.leave(joins(select));
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
        }
        if let Expr::Cast { data_type, .. } = expression
            && let Err(error) = check_type(data_type)
        {
            return ControlFlow::Break(error.at(end_of(expression)));
        }
        self.enter(expression_levels(expression), || end_of(expression))
    }

    pub(super) fn leave_expr(&mut self, expression: &Expr) {
        self.functions -= usize::from(matches!(expression, Expr::Function(_)));
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

/// The joins of a SELECT, which are planned one above the other.
fn joins(select: &Select) -> usize {
    select.from.iter().map(|relation| 1 + relation.joins.len()).sum()
}

/// Refuses common tables that read each other so often that they stand for too many copies.
fn check_tables(query: &Query) -> Result<()> {
    let Some(with) = &query.with else { return Ok(()) };
    let mut copies: HashMap<String, usize> = HashMap::new();
    for table in &with.cte_tables {
        let read = relations(&*table.query);
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

/// The number of grouping sets, which multiply if several lists of them are side by side.
fn grouping_sets(group_by: &GroupByExpr) -> usize {
    let GroupByExpr::Expressions(groups, modifiers) = group_by else { return 1 };
    let of_group = |group: &Expr| match group {
        Expr::Cube(columns) => 1_usize.checked_shl(columns.len() as u32).unwrap_or(usize::MAX),
        Expr::Rollup(columns) => columns.len() + 1,
        Expr::GroupingSets(sets) => sets.len(),
        _ => 1,
    };
    let of_modifier = |modifier: &GroupByWithModifier| match modifier {
        GroupByWithModifier::Cube => 1_usize.checked_shl(groups.len() as u32).unwrap_or(usize::MAX),
        GroupByWithModifier::Rollup => groups.len() + 1,
        _ => 1,
    };
    let all = groups.iter().map(of_group).chain(modifiers.iter().map(of_modifier));
    all.fold(1, usize::saturating_mul)
}

/// A position near the end of an expression, found without a walk over all of it.
fn end_of(mut expression: &Expr) -> Option<Position> {
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

/// Refuses a type of more than [`DEEPEST_TYPE`] levels.
pub(crate) fn check_type(data_type: &DataType) -> Result<()> {
    let mut rest = vec![(data_type, 1)];
    while let Some((data_type, level)) = rest.pop() {
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

/// Balances a long chain of AND or of OR, which group in any way.
fn balance(expression: &mut Expr) {
    let Expr::BinaryOp { op: operator @ (BinaryOperator::And | BinaryOperator::Or), .. } =
        expression
    else {
        return;
    };
    let operator = operator.clone();
    let mut length = 0;
    let mut first = &*expression;
    while let Expr::BinaryOp { left, op, .. } = first
        && *op == operator
    {
        (first, length) = (left, length + 1);
    }
    if length <= SHORT_CHAIN {
        return;
    }
    let mut operands = Vec::with_capacity(length + 1);
    let mut rest = mem::replace(expression, Expr::value(Value::Null));
    loop {
        match rest {
            Expr::BinaryOp { left, op, right } if op == operator => {
                operands.push(*right);
                rest = *left;
            }
            first => {
                operands.push(first);
                break;
            }
        }
    }
    let length = operands.len();
    let mut operands = operands.into_iter().rev();
    let join = |left, right| Expr::BinaryOp {
        left: Box::new(left),
        op: operator.clone(),
        right: Box::new(right),
    };
    if let Some(balanced) = joined(&mut operands, length, &join) {
        *expression = balanced;
    }
}

/// Balances a long chain of UNION.
///
/// UNION ALL groups in any way. The last UNION of a chain that removes duplicates removes those of all before it too.
fn balance_unions(body: &mut SetExpr) {
    let mut length = 0;
    let mut first = &*body;
    while let Some(left) = union(first) {
        (first, length) = (left, length + 1);
    }
    if length <= SHORT_CHAIN {
        return;
    }
    let nothing = || {
        SetExpr::Values(sqlparser::ast::Values {
            explicit_row: false,
            value_keyword: false,
            rows: Vec::new(),
        })
    };
    let mut terms = Vec::with_capacity(length + 1);
    let mut distinct = 0;
    let mut rest = mem::replace(body, nothing());
    while union(&rest).is_some() {
        let SetExpr::SetOperation { left, set_quantifier, right, .. } = rest else { break };
        // The chain is taken apart from its end: the first that is found is the last one.
        if set_quantifier != SetQuantifier::All && distinct == 0 {
            distinct = length + 1 - terms.len();
        }
        terms.push(*right);
        rest = *left;
    }
    terms.push(rest);
    terms.reverse();
    let all = |left, right| united(SetQuantifier::All, left, right);
    let mut repeated = terms.split_off(distinct);
    let half = terms.len() / 2;
    let mut terms = terms.into_iter();
    if let (Some(left), Some(right)) =
        (joined(&mut terms, half, &all), joined(&mut terms, distinct - half, &all))
    {
        repeated.insert(0, united(SetQuantifier::Distinct, left, right));
    }
    let length = repeated.len();
    if let Some(balanced) = joined(&mut repeated.into_iter(), length, &all) {
        *body = balanced;
    }
}

/// The left side of a UNION whose columns are paired by position.
fn union(body: &SetExpr) -> Option<&SetExpr> {
    match body {
        SetExpr::SetOperation {
            left,
            op: SetOperator::Union,
            set_quantifier: SetQuantifier::All | SetQuantifier::Distinct | SetQuantifier::None,
            ..
        } => Some(left),
        _ => None,
    }
}

fn united(set_quantifier: SetQuantifier, left: SetExpr, right: SetExpr) -> SetExpr {
    let (left, right) = (Box::new(left), Box::new(right));
    SetExpr::SetOperation { left, op: SetOperator::Union, set_quantifier, right }
}

/// The next `length` operands in a tree of the least depth; none if there are none.
fn joined<T>(
    operands: &mut impl Iterator<Item = T>,
    length: usize,
    join: &impl Fn(T, T) -> T,
) -> Option<T> {
    if length < 2 {
        return if length == 1 { operands.next() } else { None };
    }
    let left = joined(operands, length / 2, join)?;
    let right = joined(operands, length - length / 2, join)?;
    Some(join(left, right))
}
