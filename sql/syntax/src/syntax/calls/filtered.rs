//! FILTER of functions that take a value of one row of a frame: `last_value(v) FILTER (WHERE c) OVER w`.
//!
//! Rows that are left out are those without a struct around the value, which IGNORE NULLS passes over:
//! `(last_value(CASE WHEN c THEN named_struct('value', v) END) IGNORE NULLS OVER w)['value']`.

use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{
    CaseWhen, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    NullTreatment, ObjectName, Spanned, Value,
};

use super::super::simple_query::{field, text};
use super::{call, name_of};

/// These functions, and the names that DataFusion knows them by.
const OF_ONE_ROW: [(&str, &str); 6] = [
    ("first", "first_value"),
    ("arbitrary", "first_value"),
    ("first_value", "first_value"),
    ("last", "last_value"),
    ("last_value", "last_value"),
    ("nth_value", "nth_value"),
];

/// The name of the field.
const VALUE: &str = "value";

/// The call without FILTER; `None` if it is not one of these functions, or has none.
pub(super) fn unfiltered(function: &mut Function) -> Option<Expr> {
    if function.over.is_none() || function.filter.is_none() {
        return None;
    }
    let called = name_of(function)?;
    let (_, name) = OF_ONE_ROW.into_iter().find(|(name, _)| *name == called)?;
    let FunctionArguments::List(list) = &mut function.args else { return None };
    let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))) = list.args.first_mut() else {
        return None;
    };
    let condition = *function.filter.take()?;
    let value = std::mem::replace(argument, Expr::value(Value::Null));
    // NULLs that are passed over anyway need no struct.
    let ignores_nulls = function.null_treatment == Some(NullTreatment::IgnoreNulls);
    let value = match ignores_nulls {
        true => value,
        false => call(Ident::new("named_struct"), [text(VALUE), value]),
    };
    *argument = Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: vec![CaseWhen { condition, result: value }],
        else_result: None,
    };
    function.null_treatment = Some(NullTreatment::IgnoreNulls);
    let name = Ident { span: function.name.span(), ..Ident::new(name) };
    function.name = ObjectName::from(vec![name]);
    let call = Expr::Function(function.clone());
    Some(match ignores_nulls {
        true => call,
        false => field(call, VALUE),
    })
}
