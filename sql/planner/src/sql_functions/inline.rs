//! Replaces calls by their definitions.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use alluvium_sql_syntax::error::{Error, Position, Result};
use alluvium_sql_syntax::stack::{self, DEEPEST};
use alluvium_sql_syntax::statement::fold;
use alluvium_sql_syntax::syntax::{called, is_bare};
use sqlparser::ast::{
    AccessExpr, CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArguments, Ident, LambdaFunction, ObjectNamePart, OneOrManyWithParens, Spanned,
    Subscript, Value, Visit, VisitMut, Visitor, VisitorMut, visit_expressions,
};
use sqlparser::tokenizer::Span;

use super::{SqlFunction, SqlFunctions};
use crate::catalog::Catalog;
use crate::system::{self, SystemSchemas};

/// How many parts the expressions may have together that stand for the calls of a statement.
const LARGEST: usize = 40_000;

/// A part of a statement without calls of functions that SQL defines.
pub(crate) struct Inlined<P> {
    pub(crate) part: P,
    /// The functions that it called, in alphabetical order.
    pub(crate) calls: Vec<String>,
}

/// Plans a part of a statement with expressions in place of its calls.
pub(crate) fn planned<P: Visit + VisitMut + Clone, R>(
    part: &P,
    catalog: &dyn Catalog,
    plan: impl FnOnce(&P) -> Result<R>,
) -> Result<R> {
    let calls_system = catalog.system().is_some_and(|system| system::has_calls(part, system));
    match calls_system || has_calls(part, catalog.functions()) {
        false => plan(part),
        true => stack::with_room(DEEPEST, || plan(&inlined(part, catalog)?.part)),
    }
}

/// The part with expressions in place of its calls.
///
/// # Errors
/// If a call has too many or too few arguments, or if the expressions are too large.
pub(crate) fn inlined<P: Visit + VisitMut + Clone>(
    part: &P,
    catalog: &dyn Catalog,
) -> Result<Inlined<P>> {
    let Some(system) = catalog.system().filter(|system| system::has_calls(part, system)) else {
        return replaced(part.clone(), catalog.functions());
    };
    replaced(without_system_calls(part.clone(), system)?, catalog.functions())
}

/// The part with expressions in place of its calls of functions of the program's schemas.
pub(super) fn without_system_calls<P: Visit + VisitMut>(
    mut part: P,
    system: &SystemSchemas,
) -> Result<P> {
    system::resolve(&mut part, system);
    let mut part = replaced(part, &system.functions)?.part;
    system::flatten(&mut part);
    Ok(part)
}

/// The part with expressions in place of calls of these functions.
fn replaced<P: Visit + VisitMut>(mut part: P, functions: &SqlFunctions) -> Result<Inlined<P>> {
    if !has_calls(&part, functions) {
        return Ok(Inlined { part, calls: Vec::new() });
    }
    stack::with_room(DEEPEST, || {
        let mut calls = Calls { functions, size: 0, called: BTreeSet::new() };
        if let ControlFlow::Break(error) = VisitMut::visit(&mut part, &mut calls) {
            return Err(error);
        }
        let calls = calls.called.into_iter().collect();
        match extent(&part).1 > DEEPEST {
            true => Err(too_deep(None)),
            false => Ok(Inlined { part, calls }),
        }
    })
}

fn has_calls(part: &impl Visit, functions: &SqlFunctions) -> bool {
    !functions.is_empty()
        && visit_expressions(part, |expression| match function_of(expression, functions) {
            Some(_) => ControlFlow::Break(()),
            None => ControlFlow::Continue(()),
        })
        .is_break()
}

/// The function that an expression calls.
fn function_of<'a>(expression: &Expr, functions: &'a SqlFunctions) -> Option<&'a SqlFunction> {
    match expression {
        Expr::Function(call) => functions.get(&called(call)?).map(|function| &**function),
        _ => None,
    }
}

/// The number of expressions in a part of a statement, and of levels that they nest.
pub(super) fn extent(part: &impl Visit) -> (usize, usize) {
    #[derive(Default)]
    struct Extent {
        size: usize,
        level: usize,
        levels: usize,
    }
    impl Visitor for Extent {
        type Break = ();

        fn pre_visit_expr(&mut self, _: &Expr) -> ControlFlow<()> {
            self.size += 1;
            self.level += 1;
            self.levels = self.levels.max(self.level);
            ControlFlow::Continue(())
        }

        fn post_visit_expr(&mut self, _: &Expr) -> ControlFlow<()> {
            self.level -= 1;
            ControlFlow::Continue(())
        }
    }
    let mut extent = Extent::default();
    let _ = part.visit(&mut extent);
    (extent.size, extent.levels)
}

fn too_deep(position: Option<Position>) -> Error {
    let message = format!(
        "with the expressions of its functions this nests more than {DEEPEST} levels deep: split it up, with a materialized \
         view for a part of it"
    );
    Error::new(message, position)
}

struct Calls<'a> {
    functions: &'a SqlFunctions,
    /// How many parts the expressions have so far that stand for calls.
    size: usize,
    called: BTreeSet<String>,
}

impl VisitorMut for Calls<'_> {
    type Break = Error;

    /// Runs after the parts of an expression, so that the arguments of a call have no calls any more.
    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Error> {
        let Some(function) = function_of(expression, self.functions) else {
            return ControlFlow::Continue(());
        };
        let Expr::Function(call) = expression else { return ControlFlow::Continue(()) };
        match self.expression(function, call) {
            Ok(body) => *expression = body,
            Err(error) => return ControlFlow::Break(error.at(Position::of(&call.name))),
        }
        ControlFlow::Continue(())
    }
}

impl Calls<'_> {
    /// The expression that a call stands for.
    fn expression(&mut self, function: &SqlFunction, call: &mut Function) -> Result<Expr> {
        let span = call.name.span();
        let name = &function.name;
        if !is_bare(call) {
            let what = format!("what is behind the arguments of {name}()");
            return Err(Error::not_supported(what, None));
        }
        let mut arguments = values(call)?;
        while function.pads && arguments.len() < function.parameters.len() {
            arguments.push(Expr::value(Value::Null));
        }
        if arguments.len() != function.parameters.len() {
            let expected = match function.parameters.len() {
                1 => "1 argument".to_owned(),
                number => format!("{number} arguments"),
            };
            let message = format!("{name}() takes {expected}, and not {}", arguments.len());
            return Err(Error::new(message, None));
        }
        let extents: Vec<(usize, usize)> = arguments.iter().map(extent).collect();
        // That of a cast, too.
        let levels = extents.iter().map(|(_, levels)| levels + 1).max().unwrap_or(0);
        if function.levels.saturating_add(levels) > DEEPEST {
            return Err(too_deep(None));
        }
        let arguments = arguments.into_iter().zip(&function.parameters);
        let arguments: Vec<Expr> =
            arguments.map(|(value, (_, data_type))| cast(value, data_type.as_ref())).collect();
        let mut fill =
            Fill { function, arguments: &arguments, sizes: &extents, size: &mut self.size, span };
        let mut body = function.body.clone();
        if let ControlFlow::Break(error) = VisitMut::visit(&mut body, &mut fill) {
            return Err(error);
        }
        self.called.insert(name.clone());
        Ok(body)
    }
}

/// The values of the arguments of a call.
fn values(call: &mut Function) -> Result<Vec<Expr>> {
    let FunctionArguments::List(list) = &mut call.args else { return Ok(Vec::new()) };
    let values = list.args.drain(..).map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Ok(value),
        _ => Err(Error::new(format!("arguments of {}() are values", call.name), None)),
    });
    values.collect()
}

/// A value as one of a type that is declared.
pub(super) fn cast(value: Expr, data_type: Option<&DataType>) -> Expr {
    match data_type {
        None => value,
        Some(data_type) => Expr::Cast {
            kind: CastKind::Cast,
            expr: Box::new(value),
            data_type: data_type.clone(),
            array: false,
            format: None,
        },
    }
}

/// Puts arguments in the places of parameters. Everything else is at the call.
struct Fill<'a> {
    function: &'a SqlFunction,
    arguments: &'a [Expr],
    sizes: &'a [(usize, usize)],
    size: &'a mut usize,
    span: Span,
}

impl Fill<'_> {
    fn grow(&mut self, by: usize) -> ControlFlow<Error> {
        *self.size += by;
        if *self.size <= LARGEST {
            return ControlFlow::Continue(());
        }
        let message = format!(
            "the calls of functions in this statement stand for more than {LARGEST} columns, operators and calls"
        );
        ControlFlow::Break(Error::new(message, Position::of_span(self.span)))
    }

    fn argument(&mut self, name: &Ident) -> ControlFlow<Error, Option<Expr>> {
        let name = fold(name);
        let place = self.function.parameters.iter().position(|(known, _)| *known == name);
        let Some(place) = place else { return ControlFlow::Continue(None) };
        self.grow(1 + self.sizes[place].0)?;
        ControlFlow::Continue(Some(self.arguments[place].clone()))
    }
}

impl VisitorMut for Fill<'_> {
    type Break = Error;

    /// Runs before the parts of an expression: an argument, which goes in after them, stays where it is.
    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Error> {
        self.grow(1)?;
        match expression {
            Expr::Value(value) => value.span = self.span,
            Expr::Identifier(name) => name.span = self.span,
            Expr::CompoundIdentifier(names) => {
                names.iter_mut().for_each(|name| name.span = self.span);
            }
            Expr::Case { case_token, end_token, .. } => {
                (case_token.0.span, end_token.0.span) = (self.span, self.span);
            }
            Expr::Function(function) => {
                for part in &mut function.name.0 {
                    if let ObjectNamePart::Identifier(name) = part {
                        name.span = self.span;
                    }
                }
            }
            Expr::Lambda(lambda) => {
                lambda_parameters(lambda).for_each(|name| name.span = self.span);
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Error> {
        match expression {
            Expr::Identifier(name) => {
                if let Some(argument) = self.argument(name)? {
                    *expression = argument;
                }
            }
            // A field of a parameter that is a struct.
            Expr::CompoundIdentifier(names) => {
                if let [name, fields @ ..] = &names[..]
                    && let Some(argument) = self.argument(name)?
                {
                    let fields = fields.iter().map(|field| {
                        let name = Value::SingleQuotedString(fold(field)).with_span(field.span);
                        AccessExpr::Subscript(Subscript::Index { index: Expr::Value(name) })
                    });
                    *expression = Expr::CompoundFieldAccess {
                        access_chain: fields.collect(),
                        root: Box::new(Expr::Nested(Box::new(argument))),
                    };
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// The names of the parameters of a lambda.
pub(super) fn lambda_parameters(lambda: &mut LambdaFunction) -> impl Iterator<Item = &mut Ident> {
    let parameters = match &mut lambda.params {
        OneOrManyWithParens::One(parameter) => std::slice::from_mut(parameter),
        OneOrManyWithParens::Many(parameters) => parameters.as_mut_slice(),
    };
    parameters.iter_mut().map(|parameter| &mut parameter.name)
}
