//! Comparisons of rows, `(a, b) < (c, d)` and `(a, b) IN (SELECT …)`.
//!
//! They become comparisons of values, as the standard and Postgres define them: a NULL makes a result NULL unless values in
//! front of it decide. A subquery selects one column, a struct of the row's values, whose fields are called
//! [`ROW_VALUE`] and a number: by these names the planner knows the row again.

use sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr,
    Ident, Query, SelectItem, SetExpr, Spanned, UnaryOperator,
};

use super::calls::{call, name_of};
use super::simple_query::{binary, field, from_query, simple_query, text, with_columns};
use crate::error::{Error, Position, Result};
use crate::fault::{self, Fault};

/// How the names of the fields begin that hold a row's values.
pub const ROW_VALUE: &str = "row value ";

/// The name of a subquery's rows.
const ROWS: &str = "rows";

/// Puts comparisons of values in the place of one of rows.
///
/// # Errors
/// If the rows have different numbers of values.
pub(super) fn expand(expression: &mut Expr) -> Result<()> {
    let compared = match expression {
        Expr::BinaryOp { left, op, right } if is_comparison(op) => {
            let (left, right) = match (row(left), row(right)) {
                (Some(left), Some(right)) => (left, right),
                (Some(values), None) => match subquery(right) {
                    Some(query) => {
                        let selected = selected(query, values.len())?;
                        (values, selected)
                    }
                    None => return Ok(()),
                },
                (None, Some(values)) => match subquery(left) {
                    Some(query) => (selected(query, values.len())?, values),
                    None => return Ok(()),
                },
                (None, None) => return Ok(()),
            };
            compared(&left, op, &right)?
        }
        Expr::InList { expr, list, negated } => {
            let Some(values) = row(expr) else { return Ok(()) };
            let Some(rows) = list.iter().map(row).collect::<Option<Vec<_>>>() else {
                return Ok(());
            };
            let equal = |row: &Vec<Expr>| compared(&values, &BinaryOperator::Eq, row);
            let equal = rows.iter().map(equal).collect::<Result<Vec<_>>>()?;
            match any_of(equal) {
                Some(found) => negated_if(*negated, found),
                None => return Ok(()),
            }
        }
        Expr::Between { expr, negated, low, high } => {
            let (Some(values), Some(low), Some(high)) = (row(expr), row(low), row(high)) else {
                return Ok(());
            };
            let low = compared(&values, &BinaryOperator::GtEq, &low)?;
            let high = compared(&values, &BinaryOperator::LtEq, &high)?;
            negated_if(*negated, binary(low, BinaryOperator::And, high))
        }
        Expr::InSubquery { expr, subquery, negated: _ } => {
            if let Some(values) = row(expr) {
                select_row(subquery, values.len())?;
                **expr = structure(values);
            }
            return Ok(());
        }
        _ => return Ok(()),
    };
    *expression = Expr::Nested(Box::new(compared));
    Ok(())
}

fn is_comparison(operator: &BinaryOperator) -> bool {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    matches!(operator, Eq | NotEq | Lt | LtEq | Gt | GtEq)
}

/// The values of a row that is written out: `(a, b)` or `ROW(a, b)`.
fn row(expression: &Expr) -> Option<Vec<Expr>> {
    match expression {
        Expr::Nested(inner) => row(inner),
        Expr::Tuple(values) => Some(values.clone()),
        Expr::Function(function) if name_of(function).as_deref() == Some("row") => {
            arguments(function)
        }
        _ => None,
    }
}

fn arguments(function: &Function) -> Option<Vec<Expr>> {
    let FunctionArguments::List(list) = &function.args else { return None };
    let value = |argument: &FunctionArg| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(value.clone()),
        _ => None,
    };
    list.args.iter().map(value).collect()
}

fn subquery(expression: &Expr) -> Option<&Query> {
    match expression {
        Expr::Nested(inner) => subquery(inner),
        Expr::Subquery(query) => Some(query),
        _ => None,
    }
}

fn negated_if(negated: bool, condition: Expr) -> Expr {
    match negated {
        false => condition,
        true => {
            let expr = Box::new(Expr::Nested(Box::new(condition)));
            Expr::UnaryOp { op: UnaryOperator::Not, expr }
        }
    }
}

/// The disjunction of conditions, as a tree of little depth.
fn any_of(mut conditions: Vec<Expr>) -> Option<Expr> {
    while conditions.len() > 1 {
        let mut rest = conditions.into_iter();
        let mut halved = Vec::with_capacity(rest.len().div_ceil(2));
        while let Some(first) = rest.next() {
            halved.push(match rest.next() {
                Some(second) => Expr::Nested(Box::new(binary(first, BinaryOperator::Or, second))),
                None => first,
            });
        }
        conditions = halved;
    }
    conditions.pop()
}

/// The comparison of two rows, value by value.
fn compared(left: &[Expr], operator: &BinaryOperator, right: &[Expr]) -> Result<Expr> {
    let position = || left.iter().chain(right).find_map(|value| Position::of_span(value.span()));
    if left.len() != right.len() {
        let message = format!(
            "rows of {} and of {} values cannot be compared: they have to have as many",
            left.len(),
            right.len()
        );
        return Err(Error::new(message, position()));
    }
    let pair = |(left, right): (&Expr, &Expr), operator: &BinaryOperator| {
        binary(left.clone(), operator.clone(), right.clone())
    };
    let values = if fault::armed(Fault::FirstValueOnly) { 1 } else { left.len() };
    let mut pairs = left.iter().zip(right).take(values).rev();
    let Some(last) = pairs.next() else {
        return Err(Error::new("a row without values cannot be compared", position()));
    };
    let mut condition = pair(last, operator);
    for values in pairs {
        condition = match operator {
            BinaryOperator::Eq => binary(pair(values, operator), BinaryOperator::And, condition),
            BinaryOperator::NotEq => binary(pair(values, operator), BinaryOperator::Or, condition),
            operator => {
                let strict = match operator {
                    BinaryOperator::Lt | BinaryOperator::LtEq => BinaryOperator::Lt,
                    _ => BinaryOperator::Gt,
                };
                let equal = pair(values, &BinaryOperator::Eq);
                let rest = binary(equal, BinaryOperator::And, Expr::Nested(Box::new(condition)));
                let rest = Expr::Nested(Box::new(rest));
                binary(pair(values, &strict), BinaryOperator::Or, rest)
            }
        };
    }
    Ok(Expr::Nested(Box::new(condition)))
}

/// The name of a value of a row.
fn name_of_value(place: usize) -> String {
    format!("{ROW_VALUE}{place}")
}

/// The row as a struct.
fn structure(values: Vec<Expr>) -> Expr {
    let fields = values.into_iter().enumerate();
    call(
        Ident::new("named_struct"),
        fields.flat_map(|(place, value)| [text(&name_of_value(place)), value]),
    )
}

/// The values of the one row that a subquery selects.
fn selected(query: &Query, values: usize) -> Result<Vec<Expr>> {
    let mut query = query.clone();
    select_row(&mut query, values)?;
    let row = Expr::Subquery(Box::new(query));
    let value = |place| field(row.clone(), &name_of_value(place));
    Ok((0..values).map(value).collect())
}

/// Has a subquery select its so many columns as one struct.
fn select_row(query: &mut Query, values: usize) -> Result<()> {
    if let SetExpr::Select(select) = query.body.as_ref()
        && !select.projection.iter().any(is_wildcard)
        && select.projection.len() != values
    {
        let message = format!(
            "this subquery must select {values} columns, as many as the row beside it has values, and selects {}",
            select.projection.len()
        );
        return Err(Error::new(message, Position::of(&*query)));
    }
    if let Some(columns) = plain_columns(query) {
        *columns = vec![SelectItem::UnnamedExpr(structure(
            columns.drain(..).filter_map(of_item).collect(),
        ))];
        return Ok(());
    }
    let names = (0..values).map(|place| Ident::with_quote('"', name_of_value(place)));
    let rows = Ident::with_quote('"', ROWS);
    let column = |name| Expr::CompoundIdentifier(vec![rows.clone(), name]);
    let selected = SelectItem::UnnamedExpr(structure(names.clone().map(column).collect()));
    let inside = std::mem::replace(query, simple_query(Vec::new(), Vec::new(), None));
    let from = from_query(inside, with_columns(rows.clone(), names));
    *query = simple_query(vec![selected], vec![from], None);
    Ok(())
}

/// The columns of a query whose other clauses cannot refer to them.
fn plain_columns(query: &mut Query) -> Option<&mut Vec<SelectItem>> {
    let is_plain =
        query.order_by.is_none() && query.limit_clause.is_none() && query.fetch.is_none();
    let SetExpr::Select(select) = query.body.as_mut() else { return None };
    let is_number = |key: &Expr| matches!(key, Expr::Value(_));
    let by_place = match &select.group_by {
        GroupByExpr::All(_) => true,
        GroupByExpr::Expressions(keys, _) => keys.iter().any(is_number),
    };
    let are_unnamed =
        select.projection.iter().all(|item| matches!(item, SelectItem::UnnamedExpr(_)));
    let is_plain = is_plain && !by_place && are_unnamed && select.distinct.is_none();
    is_plain.then_some(&mut select.projection)
}

fn of_item(item: SelectItem) -> Option<Expr> {
    match item {
        SelectItem::UnnamedExpr(expression) => Some(expression),
        _ => None,
    }
}

fn is_wildcard(item: &SelectItem) -> bool {
    matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..))
}
