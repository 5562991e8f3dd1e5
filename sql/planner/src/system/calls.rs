//! The ways in which only functions of a program can be called.
//!
//! - `x::regclass`, where `regclass` is one of them, is `regclass(x)`, and `x::regtype[]` is `_regtype(x)`, as Postgres calls
//!   the type of a list;
//! - `FROM f(x)` is `FROM UNNEST(f(x))`, and `FROM v()` is `FROM v` for a view `v`; so are `FROM pg_catalog.unnest(x)`, and
//!   `FROM generate_series(1, t.n)` of a column;
//! - where a function stands for a list that is unnested, UNNEST of its call is that of the list.

use std::ops::ControlFlow;

use alluvium_sql_syntax::error::Error;
use alluvium_sql_syntax::name;
use alluvium_sql_syntax::statement::fold;
use alluvium_sql_syntax::syntax::{call, called};
use sqlparser::ast::{
    ArrayElemTypeDef, CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArguments, Ident, ObjectName, TableAlias, TableAliasColumnDef, TableFactor, Value,
    Visit, VisitMut, Visitor, VisitorMut, visit_expressions,
};

use super::SystemSchemas;

/// Whether a part of a statement has such calls, or others of these functions.
pub(crate) fn has_calls(part: &impl Visit, system: &SystemSchemas) -> bool {
    struct Calls<'a>(&'a SystemSchemas);
    impl Visitor for Calls<'_> {
        type Break = ();

        fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
            match is_call(expression, self.0) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        }

        fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
            match is_called(factor, self.0) || is_list(factor) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        }
    }
    part.visit(&mut Calls(system)).is_break()
}

/// Whether a part of a statement names views of these, or calls a function.
pub(crate) fn uses(part: &impl Visit, system: &SystemSchemas) -> bool {
    struct Uses<'a>(&'a SystemSchemas);
    impl Visitor for Uses<'_> {
        type Break = ();

        fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
            match is_call(expression, self.0) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        }

        fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
            match is_called(factor, self.0) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        }

        fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
            match name::of_object(relation).is_ok_and(|name| self.0.has_view(&name)) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        }
    }
    part.visit(&mut Uses(system)).is_break()
}

/// Makes such calls plain ones.
pub(crate) fn resolve(part: &mut impl VisitMut, system: &SystemSchemas) {
    struct Resolve<'a>(&'a SystemSchemas);
    impl VisitorMut for Resolve<'_> {
        type Break = Error;

        fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Error> {
            if let Expr::Cast { kind, expr, data_type, .. } = expression
                && matches!(kind, CastKind::Cast | CastKind::DoubleColon)
                && let Some(name) = cast_function(data_type, self.0)
            {
                let value = std::mem::replace(expr.as_mut(), Expr::value(Value::Null));
                *expression = call(Ident::new(name), [value]);
            }
            ControlFlow::Continue(())
        }

        fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
            if is_called(factor, self.0) || is_list(factor) {
                unnest(factor);
            }
            ControlFlow::Continue(())
        }
    }
    let _ = VisitMut::visit(part, &mut Resolve(system));
}

/// Makes `UNNEST(unnest(x))`, which a call of a function may stand for, `UNNEST(x)`.
pub(crate) fn flatten(part: &mut impl VisitMut) {
    struct Flatten;
    impl VisitorMut for Flatten {
        type Break = Error;

        fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
            if let TableFactor::UNNEST { array_exprs, .. } = factor {
                array_exprs.iter_mut().for_each(|list| {
                    if let Some(inner) = unnested(list) {
                        *list = inner;
                    }
                });
            }
            ControlFlow::Continue(())
        }
    }
    let _ = VisitMut::visit(part, &mut Flatten);
}

/// The list that an expression unnests.
fn unnested(expression: &mut Expr) -> Option<Expr> {
    if let Expr::Nested(inner) = expression {
        return unnested(inner);
    }
    let Expr::Function(call) = expression else { return None };
    if called(call)? != "unnest" {
        return None;
    }
    let FunctionArguments::List(list) = &mut call.args else { return None };
    match &mut list.args[..] {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(list))] => {
            Some(std::mem::replace(list, Expr::value(Value::Null)))
        }
        _ => None,
    }
}

/// Whether an expression calls a function of these.
fn is_call(expression: &Expr, system: &SystemSchemas) -> bool {
    match expression {
        Expr::Function(call) => {
            called(call).is_some_and(|name| system.functions.contains_key(&name))
        }
        Expr::Cast { data_type, .. } => cast_function(data_type, system).is_some(),
        _ => false,
    }
}

/// The function that a cast to a type calls.
fn cast_function(data_type: &DataType, system: &SystemSchemas) -> Option<String> {
    let name = type_name(data_type)?;
    system.functions.contains_key(&name).then_some(name)
}

/// The name of a type that is not one of the dialect's.
fn type_name(data_type: &DataType) -> Option<String> {
    match data_type {
        DataType::Regclass => Some("regclass".to_owned()),
        DataType::Custom(name, modifiers) if modifiers.is_empty() => match &name.0[..] {
            [name] => name.as_ident().map(fold),
            _ => None,
        },
        DataType::Array(
            ArrayElemTypeDef::AngleBracket(element)
            | ArrayElemTypeDef::SquareBracket(element, _)
            | ArrayElemTypeDef::Parenthesis(element),
        ) => type_name(element).map(|element| format!("_{element}")),
        _ => None,
    }
}

/// The name of a relation that is a call.
fn name_of(factor: &TableFactor) -> Option<(String, bool)> {
    let (name, has_arguments) = match factor {
        TableFactor::Table { name, args: Some(arguments), .. } => {
            (name, !arguments.args.is_empty())
        }
        TableFactor::Function { name, args, .. } => (name, !args.is_empty()),
        _ => return None,
    };
    match &name.0[..] {
        [part] => Some((fold(part.as_ident()?), has_arguments)),
        _ => None,
    }
}

/// Whether a relation is a call of a function or a view of these.
fn is_called(factor: &TableFactor, system: &SystemSchemas) -> bool {
    name_of(factor).is_some_and(|(called, has_arguments)| {
        system.functions.contains_key(&called)
            || !has_arguments && system.has_view(&name::qualified(None, &called))
    })
}

/// Whether a relation is a call that lists values, and that is no relation yet: of UNNEST in a schema, or of a series up to the value of a
/// column.
fn is_list(factor: &TableFactor) -> bool {
    let arguments = match factor {
        TableFactor::Table { args: Some(arguments), .. } => &arguments.args,
        TableFactor::Function { args, .. } => args,
        _ => return false,
    };
    let reads_column = || {
        let found = visit_expressions(arguments, |part| match part {
            Expr::Identifier(_) | Expr::CompoundIdentifier(_) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        });
        found.is_break()
    };
    name_of(factor).is_some_and(|(called, _)| match called.as_str() {
        "unnest" => true,
        "generate_series" => reads_column(),
        _ => false,
    })
}

/// Makes a call in FROM an UNNEST of it, or without arguments a relation.
fn unnest(factor: &mut TableFactor) {
    let Some((called, has_arguments)) = name_of(factor) else { return };
    let (name, given, alias, with_ordinality) = match factor {
        TableFactor::Table { args, .. } if !has_arguments => {
            *args = None;
            return;
        }
        TableFactor::Table { name, args, alias, with_ordinality, .. } => {
            let args = args.take().map(|arguments| arguments.args).unwrap_or_default();
            (name.clone(), args, alias.take(), *with_ordinality)
        }
        TableFactor::Function { name, args, alias, with_ordinality, .. } => {
            (name.clone(), std::mem::take(args), alias.take(), *with_ordinality)
        }
        _ => return,
    };
    let mut list = call(Ident::new(&called), []);
    if let Expr::Function(Function { name: written, args: FunctionArguments::List(list), .. }) =
        &mut list
    {
        (*written, list.args) = (name, given);
    }
    *factor = TableFactor::UNNEST {
        alias: Some(named(alias, called, with_ordinality)),
        array_exprs: vec![list],
        with_offset: false,
        with_offset_alias: None,
        with_ordinality,
    };
}

/// The name of the rows of a function, whose column has it, too, unless it is given another.
fn named(alias: Option<TableAlias>, function: String, with_ordinality: bool) -> TableAlias {
    let mut alias = alias.unwrap_or_else(|| TableAlias {
        explicit: true,
        name: Ident::new(function),
        columns: Vec::new(),
        at: None,
    });
    if alias.columns.is_empty() {
        let ordinality = with_ordinality.then(|| Ident::new("ordinality"));
        let columns = [alias.name.clone()].into_iter().chain(ordinality);
        let columns = columns.map(|name| TableAliasColumnDef { name, data_type: None });
        alias.columns = columns.collect();
    }
    alias
}
