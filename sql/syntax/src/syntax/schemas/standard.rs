//! Names of functions, types, operators and collations that clients write in a schema.
//!
//! These are in no schema here. Clients of Postgres write `pg_catalog.lower(t)`, `x::pg_catalog.text` and
//! `x OPERATOR(pg_catalog.~) 'a'` so that no search path gives them another meaning: that is the meaning without.

use sqlparser::ast::{
    ArrayElemTypeDef, BinaryOperator, DataType, Expr, ObjectName, TableFactor, TypedString,
};
use sqlparser::parser::Parser;

use crate::statement::{Alluvium, fold};

/// The schemas in which other systems have functions and types that are always there.
const STANDARD: [&str; 2] = ["pg_catalog", "information_schema"];

/// Takes the schemas from names that an expression itself writes.
pub(super) fn leave_out(expression: &mut Expr) {
    match expression {
        Expr::Function(call) => leave_out_of_name(&mut call.name),
        Expr::Cast { data_type, .. } | Expr::TypedString(TypedString { data_type, .. }) => {
            leave_out_of_type(data_type);
        }
        Expr::BinaryOp { op, .. }
        | Expr::AnyOp { compare_op: op, .. }
        | Expr::AllOp { compare_op: op, .. } => leave_out_of_operator(op),
        _ => {}
    }
}

/// Takes the schema from the name of a function in FROM.
pub(super) fn leave_out_in_from(factor: &mut TableFactor) {
    if let TableFactor::Table { name, args: Some(_), .. } | TableFactor::Function { name, .. } =
        factor
    {
        leave_out_of_name(name);
    }
}

fn leave_out_of_name(name: &mut ObjectName) {
    let [.., schema, _] = &name.0[..] else { return };
    let is_standard = schema.as_ident().is_some_and(|schema| STANDARD.contains(&&*fold(schema)));
    if is_standard {
        name.0.drain(..name.0.len() - 1);
    }
}

fn leave_out_of_type(data_type: &mut DataType) {
    match data_type {
        DataType::Custom(name, modifiers) if name.0.len() > 1 => {
            leave_out_of_name(name);
            let [part] = &name.0[..] else { return };
            let Some(name) = part.as_ident() else { return };
            // Drivers write quotes around the names of all types. Only the type "char" is another one without.
            let name = match name.value.as_str() {
                "char" => name.to_string(),
                _ => fold(name),
            };
            let text = match modifiers.is_empty() {
                true => name.clone(),
                false => format!("{name}({})", modifiers.join(", ")),
            };
            // The type of arrays of int4 is _int4.
            let element = name.strip_prefix('_').and_then(parsed);
            let element = element.filter(|element| !matches!(element, DataType::Custom(..)));
            if let Some(element) = element {
                let element = ArrayElemTypeDef::SquareBracket(Box::new(element), None);
                *data_type = DataType::Array(element);
            } else if let Some(parsed) = parsed(&text) {
                *data_type = parsed;
            }
        }
        DataType::Array(
            ArrayElemTypeDef::AngleBracket(element)
            | ArrayElemTypeDef::SquareBracket(element, _)
            | ArrayElemTypeDef::Parenthesis(element),
        ) => leave_out_of_type(element),
        _ => {}
    }
}

/// The type that a text is.
fn parsed(text: &str) -> Option<DataType> {
    let dialect = Alluvium::new(text.len());
    let parser = Parser::new(&dialect).try_with_sql(text);
    parser.and_then(|mut parser| parser.parse_data_type()).ok()
}

/// `OPERATOR(pg_catalog.~)` as `~`. One of another schema stays, and is refused.
fn leave_out_of_operator(operator: &mut BinaryOperator) {
    let BinaryOperator::PGCustomBinaryOperator(parts) = operator else { return };
    let written = match &parts[..] {
        [written] => written,
        [schema, written] if STANDARD.contains(&schema.as_str()) => written,
        _ => return,
    };
    let text = format!("1 {written} 1");
    let parsed = Parser::new(&Alluvium::new(text.len()))
        .try_with_sql(&text)
        .and_then(|mut parser| parser.parse_expr());
    if let Ok(Expr::BinaryOp { op, .. }) = parsed {
        *operator = op;
    }
}
