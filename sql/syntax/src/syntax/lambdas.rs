//! `x -> x + 1` and `json -> 'a'`.
//!
//! The parser takes every arrow after a name for a lambda. It is one only as an argument of a function that takes lambdas.

use std::collections::HashSet;

use sqlparser::ast::{
    BinaryOperator, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, LambdaFunction,
    LambdaSyntax, OneOrManyWithParens, Value,
};

use alluvium_sql_functions::FUNCTIONS;

/// Where the lambdas are that are arguments of functions which take them. The tree does not move while it is visited.
pub(super) type Lambdas = HashSet<*const Expr>;

/// Notes the lambdas of a function, and makes other ones the operator `->`. Runs before the parts of the expression.
pub(super) fn separate(expression: &mut Expr, lambdas: &mut Lambdas) {
    match expression {
        Expr::Function(function)
            if FUNCTIONS.higher_order.contains_key(&function.name.to_string().to_lowercase()) =>
        {
            let FunctionArguments::List(list) = &function.args else { return };
            for argument in &list.args {
                if let FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) = argument
                    && matches!(argument, Expr::Lambda(_))
                {
                    lambdas.insert(argument);
                }
            }
        }
        Expr::Lambda(_) if lambdas.remove(&std::ptr::from_ref(expression)) => {}
        Expr::Lambda(LambdaFunction {
            params: OneOrManyWithParens::One(parameter),
            body,
            syntax: LambdaSyntax::Arrow,
        }) if parameter.data_type.is_none() => {
            let left = Expr::Identifier(parameter.name.clone());
            let mut body = std::mem::replace(body.as_mut(), Expr::value(Value::Null));
            let first = leftmost(&mut body);
            let right = std::mem::replace(first, Expr::value(Value::Null));
            *first = Expr::BinaryOp {
                left: Box::new(left),
                op: BinaryOperator::Arrow,
                right: Box::new(right),
            };
            *expression = body;
        }
        _ => {}
    }
}

/// The part that an expression begins with, which is the operand of an arrow in front of it.
fn leftmost(expression: &mut Expr) -> &mut Expr {
    match expression {
        Expr::BinaryOp { left: first, .. }
        | Expr::IsNull(first)
        | Expr::IsNotNull(first)
        | Expr::IsDistinctFrom(first, _)
        | Expr::IsNotDistinctFrom(first, _)
        | Expr::InList { expr: first, .. }
        | Expr::InSubquery { expr: first, .. }
        | Expr::Between { expr: first, .. }
        | Expr::Like { expr: first, .. }
        | Expr::ILike { expr: first, .. }
        | Expr::Cast { kind: sqlparser::ast::CastKind::DoubleColon, expr: first, .. } => {
            leftmost(first)
        }
        other => other,
    }
}
