//! Forms of syntax that stand for other expressions.

use std::ops::ControlFlow;

use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{
    AccessExpr, BinaryOperator, CaseWhen, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgOperator, FunctionArgumentClause, FunctionArguments, Ident, Interval, ObjectName,
    OrderBy, OrderByExpr, OrderByKind, Query, SelectItem, SetExpr, Spanned, Subscript,
    UnaryOperator, Value, Visit, Visitor,
};
use sqlparser::tokenizer::Span;

use super::super::quantified::{as_in, as_value};
use super::super::simple_query::{from_query, simple_query, text, with_columns};
use super::{call, name_of};
use crate::error::{Error, Position, Result};

/// The operator after an expression that is negated: `(a - b) NEGATED NULL`.
pub const NEGATED: &str = "NEGATED";

/// The name of the values of a list, as a relation and as a column of it.
const LISTED: &str = "listed values";

/// Parts of a time that functions of their names return.
const LONG: [&str; 9] = [
    "decade",
    "century",
    "millennium",
    "julian",
    "era",
    "yearweek",
    "timezone",
    "timezone_hour",
    "timezone_minute",
];

/// - `ARRAY(SELECT x …)` becomes a subquery with `array_agg`;
/// - `struct_pack(a := 1)` becomes `named_struct('a', 1)`, `struct_insert(s, a := 1)` `struct_concat(s, named_struct('a', 1))`, and `list_aggregate(l, 'sum')` becomes `list_sum(l)`;
/// - `x LIKE p ESCAPE 'c'` becomes `x LIKE like_pattern(p, 'c')`, where a backslash escapes;
/// - `INTERVAL (n) DAY` becomes `INTERVAL '1' DAY * n`;
/// - `x[2:]` becomes `x[2:-1]`, `(x).a` becomes `x['a']`, and `t AT TIME ZONE z` becomes `timezone(z, t)`;
/// - `s COLLATE "C"` is `s`: text is ordered by its bytes; `x = ANY (SELECT …)` becomes `x IN (SELECT …)`, and
///   others become a CASE over the subquery's extremes;
/// - `EXTRACT(decade FROM t)` becomes `decade(t)`, and so does `date_part('decade', t)`;
/// - `switch(x, MAP {k: v}, d)` becomes a CASE; `@n`, `n!` and `t ^@ p` become `abs(n)`, `factorial(n)` and `starts_with(t, p)`;
/// - `[t.a, 1]` becomes `make_array(t.a, 1)`, which can name columns of queries around;
/// - `-(a - b)` becomes `(a - b) NEGATED NULL`, because of differences of times;
/// - `~n` becomes `n # -1`, `-INTERVAL '1 day'` becomes `INTERVAL '1 day' * -1`, and `m // n` becomes `m / n`.
pub(super) fn expand(expression: &mut Expr) -> Result<()> {
    match expression {
        Expr::Function(function) => match name_of(function).as_deref() {
            Some("array") => {
                if let Some(list) = list_of_query(function)? {
                    *expression = list;
                }
                Ok(())
            }
            Some("struct_pack") => struct_pack(function),
            Some("switch") => {
                if let Some(case) = switch(function) {
                    *expression = case;
                }
                Ok(())
            }
            Some("struct_insert") => with_fields(function, "struct_concat"),
            Some("struct_update") => with_fields(function, "struct_update"),
            Some(
                "list_aggregate" | "array_aggregate" | "list_aggr" | "array_aggr" | "aggregate",
            ) => list_aggregate(function),
            Some("array_extract" | "list_extract" | "array_slice" | "list_slice") => {
                if let Some(access) = subscript(function) {
                    *expression = access;
                }
                Ok(())
            }
            Some("date_part" | "datepart") => {
                if let Some(part) = long_part(function) {
                    *expression = part;
                }
                Ok(())
            }
            Some("xor") => {
                if let Some(operator) = exclusive_or(function) {
                    *expression = operator;
                }
                Ok(())
            }
            _ => Ok(()),
        },
        Expr::Array(array) if names_columns(&array.elem) => {
            let elements = std::mem::take(&mut array.elem);
            *expression = call(Ident::new("make_array"), elements);
            Ok(())
        }
        Expr::Extract { field, expr, .. } => {
            if let Some(name) =
                LONG.into_iter().find(|name| field.to_string().eq_ignore_ascii_case(name))
            {
                let time = std::mem::replace(expr.as_mut(), null());
                *expression = call(Ident::new(name), [time]);
            }
            Ok(())
        }
        Expr::Like { pattern, escape_char, .. } | Expr::ILike { pattern, escape_char, .. } => {
            escape(pattern, escape_char);
            Ok(())
        }
        Expr::Collate { expr, collation } if is_bytewise(collation) => {
            *expression = std::mem::replace(expr.as_mut(), null());
            Ok(())
        }
        Expr::AnyOp { .. } | Expr::AllOp { .. } => {
            if let Some(compared) = as_in(expression).or_else(|| as_value(expression)) {
                *expression = compared;
            }
            Ok(())
        }
        Expr::Interval(interval) if !is_constant(&interval.value) => {
            *expression = times(interval);
            Ok(())
        }
        Expr::CompoundFieldAccess { root, access_chain } => {
            // After a name, the field may be a column: `t.c['a']`.
            let is_name = matches!(**root, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
            access_chain.iter_mut().for_each(|access| complete(access, is_name));
            Ok(())
        }
        Expr::AtTimeZone { timestamp, time_zone } => {
            let time = std::mem::replace(timestamp.as_mut(), null());
            let zone = std::mem::replace(time_zone.as_mut(), null());
            *expression = call(Ident::new("timezone"), [zone, time]);
            Ok(())
        }
        Expr::UnaryOp { .. } | Expr::BinaryOp { .. } => {
            operator(expression);
            Ok(())
        }
        _ => Ok(()),
    }
}

/// An operator by another one, or by a function.
fn operator(expression: &mut Expr) {
    match expression {
        Expr::UnaryOp { op: UnaryOperator::BitwiseNot, expr } => {
            let number = std::mem::replace(expr.as_mut(), null());
            *expression = Expr::BinaryOp {
                left: Box::new(number),
                op: BinaryOperator::PGBitwiseXor,
                right: Box::new(Expr::UnaryOp {
                    op: UnaryOperator::Minus,
                    expr: Box::new(Expr::value(Value::Number("1".to_owned(), false))),
                }),
            };
        }
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } if matches!(**expr, Expr::Interval(_)) => {
            let interval = std::mem::replace(expr.as_mut(), null());
            *expression = Expr::BinaryOp {
                left: Box::new(interval),
                op: BinaryOperator::Multiply,
                right: Box::new(Expr::UnaryOp {
                    op: UnaryOperator::Minus,
                    expr: Box::new(Expr::value(Value::Number("1".to_owned(), false))),
                }),
            };
        }
        Expr::UnaryOp { op: UnaryOperator::PGAbs, expr } => {
            let number = std::mem::replace(expr.as_mut(), null());
            *expression = call(Ident::new("abs"), [number]);
        }
        Expr::UnaryOp { op: UnaryOperator::PGPostfixFactorial, expr } => {
            let number = std::mem::replace(expr.as_mut(), null());
            *expression = call(Ident::new("factorial"), [number]);
        }
        Expr::BinaryOp { left, op: BinaryOperator::PGStartsWith, right } => {
            let operands = [left, right].map(|side| std::mem::replace(side.as_mut(), null()));
            *expression = call(Ident::new("starts_with"), operands);
        }
        // The negated expression may be a difference of times, which only the plan knows.
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } if may_be_difference(expr) => {
            let operand = std::mem::replace(expr.as_mut(), null());
            *expression = Expr::BinaryOp {
                left: Box::new(operand),
                op: BinaryOperator::Custom(NEGATED.to_owned()),
                right: Box::new(null()),
            };
        }
        Expr::BinaryOp { op, .. } if *op == BinaryOperator::DuckIntegerDivide => {
            *op = BinaryOperator::Divide;
        }
        _ => {}
    }
}

fn null() -> Expr {
    Expr::value(Value::Null)
}

fn unnamed(argument: Expr) -> FunctionArg {
    FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))
}

fn rename(function: &mut Function, name: &str, span: Span) {
    let mut name = Ident::new(name);
    name.span = span;
    function.name = ObjectName::from(vec![name]);
}

fn struct_pack(function: &mut Function) -> Result<()> {
    let span = function.name.span();
    let FunctionArguments::List(list) = &mut function.args else { return Ok(()) };
    list.args = fields(list.args.drain(..), span, "struct_pack(name := value)")?;
    rename(function, "named_struct", span);
    Ok(())
}

/// `struct_concat(s, named_struct('a', 1))` for `struct_insert(s, a := 1)`.
fn with_fields(function: &mut Function, name: &str) -> Result<()> {
    let span = function.name.span();
    let written = format!("{}(struct, name := value)", function.name);
    let FunctionArguments::List(list) = &mut function.args else { return Ok(()) };
    if list.args.len() < 2
        || matches!(list.args[1], FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Function(_))))
    {
        return Ok(());
    }
    let given = fields(list.args.drain(1..), span, &written)?;
    let mut made = call(Ident::new("named_struct"), []);
    if let Expr::Function(Function { args: FunctionArguments::List(list), .. }) = &mut made {
        list.args = given;
    }
    list.args.push(unnamed(made));
    rename(function, name, span);
    Ok(())
}

/// The names and values of fields that are written `name := value`, or as a column of the name.
fn fields(
    arguments: impl Iterator<Item = FunctionArg>,
    span: Span,
    written: &str,
) -> Result<Vec<FunctionArg>> {
    let mut fields = Vec::new();
    for argument in arguments {
        match argument {
            FunctionArg::Named {
                name,
                arg: FunctionArgExpr::Expr(value),
                operator: FunctionArgOperator::Assignment | FunctionArgOperator::RightArrow,
            } => fields.extend([unnamed(text(&name.value)), unnamed(value)]),
            FunctionArg::ExprNamed {
                name: Expr::Identifier(name),
                arg: FunctionArgExpr::Expr(value),
                operator: FunctionArgOperator::Assignment | FunctionArgOperator::RightArrow,
            } => fields.extend([unnamed(text(&name.value)), unnamed(value)]),
            FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Identifier(name))) => {
                fields.extend([unnamed(text(&name.value)), unnamed(Expr::Identifier(name))]);
            }
            _ => {
                let function = written.split('(').next().unwrap_or_default();
                let message = format!("the fields of {function}() are written {written}");
                return Err(Error::new(message, Position::of_span(span)));
            }
        }
    }
    Ok(fields)
}

/// Fills in the bounds of a slice, and makes a field a subscript.
fn complete(access: &mut AccessExpr, behind_name: bool) {
    let number = |number: &str| Expr::value(Value::Number(number.to_owned(), false));
    match access {
        AccessExpr::Dot(Expr::Identifier(name)) if !behind_name => {
            *access = AccessExpr::Subscript(Subscript::Index { index: text(&name.value) });
        }
        AccessExpr::Subscript(Subscript::Slice { lower_bound, upper_bound, .. }) => {
            lower_bound.get_or_insert_with(|| number("1"));
            let last = || Expr::UnaryOp { op: UnaryOperator::Minus, expr: Box::new(number("1")) };
            upper_bound.get_or_insert_with(last);
        }
        AccessExpr::Dot(_) | AccessExpr::Subscript(_) => {}
    }
}

/// `x[i]` for `array_extract(x, i)`, and `x[a:b]` for `array_slice(x, a, b)`: of lists and texts.
fn subscript(function: &mut Function) -> Option<Expr> {
    let is_slice = name_of(function)?.ends_with("_slice");
    let FunctionArguments::List(list) = &mut function.args else { return None };
    if list.args.len() != if is_slice { 3 } else { 2 } {
        return None;
    }
    let mut values = Vec::with_capacity(3);
    for argument in &mut list.args {
        let FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) = argument else { return None };
        values.push(value);
    }
    let mut values = values.into_iter().map(|value| std::mem::replace(value, null()));
    let root = Box::new(values.next()?);
    let first = values.next()?;
    let subscript = match values.next() {
        None => Subscript::Index { index: first },
        Some(last) => {
            Subscript::Slice { lower_bound: Some(first), upper_bound: Some(last), stride: None }
        }
    };
    let access_chain = vec![AccessExpr::Subscript(subscript)];
    Some(Expr::CompoundFieldAccess { root, access_chain })
}

/// `CASE x WHEN k THEN v ELSE d END` for `switch(x, MAP {k: v}, d)`.
fn switch(function: &mut Function) -> Option<Expr> {
    let FunctionArguments::List(list) = &mut function.args else { return None };
    let mut arguments = list.args.iter_mut().map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) => Some(argument),
        _ => None,
    });
    let (operand, Expr::Map(map)) = (arguments.next()??, arguments.next()??) else { return None };
    let else_result = match arguments.next() {
        None => None,
        Some(default) => Some(Box::new(std::mem::replace(default?, null()))),
    };
    let conditions = std::mem::take(&mut map.entries).into_iter();
    let conditions =
        conditions.map(|entry| CaseWhen { condition: *entry.key, result: *entry.value });
    Some(Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: Some(Box::new(std::mem::replace(operand, null()))),
        conditions: conditions.collect(),
        else_result,
    })
}

/// `a # b` for `xor(a, b)`.
fn exclusive_or(function: &mut Function) -> Option<Expr> {
    let FunctionArguments::List(list) = &mut function.args else { return None };
    let mut operands = list.args.iter_mut().map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(operand)) => Some(operand),
        _ => None,
    });
    let (left, right, None) = (operands.next()??, operands.next()??, operands.next()) else {
        return None;
    };
    let [left, right] = [left, right].map(|operand| Box::new(std::mem::replace(operand, null())));
    Some(Expr::BinaryOp { left, op: BinaryOperator::PGBitwiseXor, right })
}

fn list_aggregate(function: &mut Function) -> Result<()> {
    let span = function.name.span();
    let FunctionArguments::List(list) = &mut function.args else { return Ok(()) };
    let name = match list.args.get(1) {
        Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(name)))) => {
            name.value.clone().into_string()
        }
        _ => None,
    };
    let Some(name) = name else {
        let message = "the second argument of list_aggregate() is the name of an aggregate, \
                       as in list_aggregate(list, 'sum')";
        return Err(Error::new(message, Position::of_span(span)));
    };
    list.args.remove(1);
    rename(function, &format!("list_{}", name.to_lowercase()), span);
    Ok(())
}

/// Replaces the escape character of a pattern by a backslash.
fn escape(pattern: &mut Expr, escape_char: &mut Option<sqlparser::ast::ValueWithSpan>) {
    let is_backslash = |value: &Value| value.clone().into_string().as_deref() == Some("\\");
    let Some(character) = escape_char.take_if(|character| !is_backslash(&character.value)) else {
        return;
    };
    let written = std::mem::replace(pattern, null());
    *pattern = call(Ident::new("like_pattern"), [written, Expr::Value(character)]);
}

fn is_constant(expression: &Expr) -> bool {
    match expression {
        Expr::Value(_) => true,
        Expr::UnaryOp { expr, .. } => is_constant(expr),
        // Numbers that are added to texts, which is what `INTERVAL '1' DAY + …` may parse to, are DataFusion's to read.
        Expr::BinaryOp { left, right, .. } => is_constant(left) && is_constant(right),
        _ => false,
    }
}

/// Whether an expression may be a difference of times.
fn may_be_difference(expression: &Expr) -> bool {
    match expression {
        Expr::Nested(inner) => may_be_difference(inner),
        Expr::BinaryOp { op, .. } => {
            *op == BinaryOperator::Minus
                || matches!(op, BinaryOperator::Custom(operator) if operator == NEGATED)
        }
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Function(_) => true,
        _ => false,
    }
}

/// As many units as an interval counts.
fn times(interval: &mut Interval) -> Expr {
    let number = std::mem::replace(interval.value.as_mut(), text("1"));
    Expr::BinaryOp {
        left: Box::new(Expr::Interval(interval.clone())),
        op: BinaryOperator::Multiply,
        right: Box::new(number),
    }
}

/// Whether a collation is the order of bytes.
fn is_bytewise(collation: &ObjectName) -> bool {
    let name = collation.0.last().and_then(|part| part.as_ident());
    let is = |known: &&str| name.is_some_and(|name| name.value.eq_ignore_ascii_case(known));
    ["C", "POSIX", "ucs_basic", "binary", "default"].iter().any(is)
}

/// `ARRAY(SELECT x … ORDER BY x)` as `(SELECT coalesce(array_agg(x ORDER BY x), []) FROM (SELECT …))`.
fn list_of_query(function: &mut Function) -> Result<Option<Expr>> {
    let FunctionArguments::Subquery(query) = &mut function.args else { return Ok(None) };
    let column = Ident::with_quote('"', LISTED);
    let value = || Expr::CompoundIdentifier(vec![column.clone(), column.clone()]);
    let mut aggregate = call(Ident::new("array_agg"), [value()]);
    if query.limit_clause.is_none()
        && query.fetch.is_none()
        && let Some(order) = query.order_by.take()
        && let Expr::Function(Function { args: FunctionArguments::List(list), .. }) = &mut aggregate
    {
        list.clauses.push(FunctionArgumentClause::OrderBy(vec![by_value(order, query, value())?]));
    }
    let query = std::mem::replace(query.as_mut(), simple_query(Vec::new(), Vec::new(), None));
    let empty = call(Ident::new("make_array"), []);
    let selected = SelectItem::UnnamedExpr(call(Ident::new("coalesce"), [aggregate, empty]));
    let from = from_query(query, with_columns(column.clone(), [column]));
    Ok(Some(Expr::Subquery(Box::new(simple_query(vec![selected], vec![from], None)))))
}

/// The order of a list by its values, if that of the query is this.
fn by_value(order: OrderBy, query: &Query, value: Expr) -> Result<OrderByExpr> {
    let position = Position::of_span(order.span());
    let refused =
        || Error::not_supported("ARRAY(SELECT …) in another order than its own", position);
    let OrderByKind::Expressions(by) = order.kind else { return Err(refused()) };
    let [by] = <[OrderByExpr; 1]>::try_from(by).map_err(|_| refused())?;
    let selected = match query.body.as_ref() {
        SetExpr::Select(select) => match &select.projection[..] {
            [SelectItem::UnnamedExpr(selected)] => Some(selected),
            [SelectItem::ExprWithAlias { expr, alias }] => match &by.expr {
                Expr::Identifier(name) if name == alias => Some(&by.expr),
                _ => Some(expr),
            },
            _ => None,
        },
        _ => None,
    };
    let is_first = matches!(&by.expr, Expr::Value(place) if place.value.to_string() == "1");
    match is_first || selected == Some(&by.expr) {
        true => Ok(OrderByExpr { expr: value, ..by }),
        false => Err(refused()),
    }
}

/// `date_part('decade', t)` as `decade(t)`.
fn long_part(function: &Function) -> Option<Expr> {
    let FunctionArguments::List(list) = &function.args else { return None };
    let [
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(part))),
        FunctionArg::Unnamed(FunctionArgExpr::Expr(time)),
    ] = &list.args[..]
    else {
        return None;
    };
    let Value::SingleQuotedString(part) = &part.value else { return None };
    let name = LONG.into_iter().find(|name| part.eq_ignore_ascii_case(name))?;
    Some(call(Ident::new(name), [time.clone()]))
}

/// Whether a column occurs in one of some expressions.
fn names_columns(expressions: &[Expr]) -> bool {
    struct Names;
    impl Visitor for Names {
        type Break = ();

        fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
            match expression {
                Expr::Identifier(_) | Expr::CompoundIdentifier(_) => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        }
    }
    expressions.iter().any(|expression| expression.visit(&mut Names).is_break())
}
