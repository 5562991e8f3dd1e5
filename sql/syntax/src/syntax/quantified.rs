//! `x > ANY (SELECT …)` and `x > ALL (SELECT …)`.
//!
//! - `x = ANY (…)` is `x IN (…)`, and `x <> ALL (…)` is `x NOT IN (…)`, wherever they stand.
//! - As one of the conditions of WHERE that must all be true, `x > ANY (…)` says that there is a row with a smaller value,
//!   and `x > ALL (…)` that there is none for which the comparison is not true. So they become semi and anti joins.
//! - Elsewhere the result may be NULL, which EXISTS never is. It follows from the subquery's least and greatest value,
//!   whether it has rows, and whether it has NULLs.

use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{
    BinaryOperator, CaseWhen, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
    Ident, Query, Select, SelectItem, TableWithJoins, UnaryOperator, Value,
};

use super::calls::call;
use super::simple_query::{binary, field, from_query, simple_query, text, with_columns};

/// The name of the values that are compared, as a relation and as a column of it.
const VALUES: &str = "compared values";

/// The name of their number, with NULLs.
const ROWS: &str = "rows";

/// The expression as one with IN; `None` if it is not one of the two that mean the same.
pub(super) fn as_in(expression: &mut Expr) -> Option<Expr> {
    let (left, right, negated) = match expression {
        Expr::AnyOp { left, compare_op: BinaryOperator::Eq, right, is_some: _ } => {
            (left, right, false)
        }
        Expr::AllOp { left, compare_op: BinaryOperator::NotEq, right } => (left, right, true),
        _ => return None,
    };
    let Expr::Subquery(subquery) = right.as_mut() else { return None };
    let expr = Box::new(std::mem::replace(left.as_mut(), Expr::value(Value::Null)));
    let subquery = std::mem::replace(subquery.as_mut(), simple_query(Vec::new(), Vec::new(), None));
    Some(Expr::InSubquery { expr, subquery: Box::new(subquery), negated })
}

/// Puts EXISTS in the place of comparisons among the conditions of WHERE.
pub(super) fn as_exists(select: &mut Select) {
    let Some(condition) = &mut select.selection else { return };
    let mut waiting = vec![condition];
    while let Some(condition) = waiting.pop() {
        match condition {
            Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
                waiting.extend([left.as_mut(), right.as_mut()]);
            }
            Expr::Nested(inner) => waiting.push(inner),
            Expr::AnyOp { left, compare_op, right, is_some: _ }
                if *compare_op != BinaryOperator::Eq =>
            {
                if let Expr::Subquery(query) = right.as_ref() {
                    let value = compared(left, compare_op);
                    *condition = exists(query, value, false);
                }
            }
            Expr::AllOp { left, compare_op, right } if *compare_op != BinaryOperator::NotEq => {
                if let Expr::Subquery(query) = right.as_ref() {
                    let value = Expr::IsNotTrue(Box::new(compared(left, compare_op)));
                    *condition = exists(query, value, true);
                }
            }
            _ => {}
        }
    }
}

/// The comparison as a value; `None` if it is not one with a subquery.
pub(super) fn as_value(expression: &Expr) -> Option<Expr> {
    use BinaryOperator::{And, Eq, Gt, GtEq, Lt, LtEq, NotEq, Or};
    let (left, op, right, is_all) = match expression {
        Expr::AnyOp { left, compare_op, right, is_some: _ } => (left, compare_op, right, false),
        Expr::AllOp { left, compare_op, right } => (left, compare_op, right, true),
        _ => return None,
    };
    let Expr::Subquery(query) = right.as_ref() else { return None };
    let value = || Expr::CompoundIdentifier(vec![name(), name()]);
    let over_values = |aggregate: &str| call(Ident::new(aggregate), [value()]);
    let extremes: &[&str] = match (op, is_all) {
        (Gt | GtEq, false) | (Lt | LtEq, true) => &["min"],
        (Lt | LtEq, false) | (Gt | GtEq, true) => &["max"],
        (NotEq, false) | (Eq, true) => &["min", "max"],
        _ => return None,
    };
    // One subquery for all that is asked about its values: the planner joins equal ones once.
    let mut fields = vec![(ROWS, count_of_rows()), (VALUES, over_values("count"))];
    fields.extend(extremes.iter().map(|extreme| (*extreme, over_values(extreme))));
    let fields = fields.into_iter().flat_map(|(name, value)| [text(name), value]);
    let summary = of_values(query, call(Ident::new("named_struct"), fields));
    let asked = |name: &str| field(summary.clone(), name);
    let compared = extremes
        .iter()
        .map(|extreme| binary(left.as_ref().clone(), op.clone(), asked(extreme)))
        .reduce(|one, other| binary(one, if is_all { And } else { Or }, other))?;
    let compared = Expr::Nested(Box::new(compared));
    let decided = match is_all {
        true => Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(compared.clone()) },
        false => compared.clone(),
    };
    let when = |condition, result| CaseWhen { condition, result };
    let boolean = |value| Expr::value(Value::Boolean(value));
    let zero = Expr::value(Value::Number("0".to_owned(), false));
    Some(Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: vec![
            when(binary(asked(ROWS), Eq, zero), boolean(is_all)),
            when(decided, boolean(!is_all)),
            when(binary(asked(ROWS), NotEq, asked(VALUES)), Expr::value(Value::Null)),
        ],
        else_result: Some(Box::new(compared)),
    })
}

fn count_of_rows() -> Expr {
    let mut count = call(Ident::new("count"), []);
    if let Expr::Function(Function { args: FunctionArguments::List(list), .. }) = &mut count {
        list.args = vec![FunctionArg::Unnamed(FunctionArgExpr::Wildcard)];
    }
    count
}

/// `(SELECT aggregate FROM (query) AS values (value))`
fn of_values(query: &Query, aggregate: Expr) -> Expr {
    let selected = SelectItem::UnnamedExpr(aggregate);
    Expr::Subquery(Box::new(simple_query(vec![selected], vec![values(query)], None)))
}

fn name() -> Ident {
    Ident::with_quote('"', VALUES)
}

/// `(left op value)`
fn compared(left: &Expr, op: &BinaryOperator) -> Expr {
    let value = Expr::CompoundIdentifier(vec![name(), name()]);
    Expr::Nested(Box::new(binary(left.clone(), op.clone(), value)))
}

/// `EXISTS (SELECT 1 FROM (query) AS values (value) WHERE condition)`
fn exists(query: &Query, condition: Expr, negated: bool) -> Expr {
    let one = SelectItem::UnnamedExpr(Expr::value(Value::Number("1".to_owned(), false)));
    let subquery = simple_query(vec![one], vec![values(query)], Some(condition));
    Expr::Exists { subquery: Box::new(subquery), negated }
}

/// `(query) AS values (value)`
fn values(query: &Query) -> TableWithJoins {
    from_query(query.clone(), with_columns(name(), [name()]))
}
