//! Calls that stand for other expressions.
//!
//! - [`DEFINITIONS`] lists functions that are defined by SQL;
//! - `forms` has those that are not calls of functions that SQL could define, as `struct_pack(a := 1)`.
//! - `filtered` gives FILTER to functions that take one row of a frame.
mod filtered;
mod forms;

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::LazyLock;

use alluvium_sql_functions::{DEFINITIONS, FORMS, FUNCTIONS, function_kind};
use sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArgumentList,
    FunctionArguments, Ident, ObjectName, ObjectNamePart, Spanned, Value, VisitMut, VisitorMut,
};
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Span;

pub use self::forms::NEGATED;
use crate::error::{Error, Position, Result};
use crate::statement::{Alluvium, fold};

/// The levels that an expression which stands for a call has beyond those of the call, at most.
pub const LEVELS: usize = 4;

/// The definition behind calls of a name.
struct Defined {
    arguments: usize,
    body: Expr,
}

/// The definitions by name.
static DEFINED: LazyLock<HashMap<&'static str, Vec<Defined>>> = LazyLock::new(|| {
    let mut defined: HashMap<&str, Vec<Defined>> = HashMap::new();
    for (call, body) in DEFINITIONS {
        let Some((name, arguments)) = call.split_once('(') else { continue };
        let parsed = Parser::new(&Alluvium::new(body.len()))
            .try_with_sql(body)
            .and_then(|mut parser| parser.parse_expr());
        if let Ok(body) = parsed {
            let arguments = arguments.matches('$').count();
            defined.entry(name).or_default().push(Defined { arguments, body });
        }
    }
    defined
});

/// Whether calls of this name, folded, stand for other expressions.
pub fn is_defined(name: &str) -> bool {
    DEFINED.contains_key(name) || FORMS.contains(&name)
}

/// Puts the expression that it stands for in place of a call.
///
/// # Errors
/// If the number of arguments is wrong, or they are followed by a clause that this function does not take.
pub(super) fn expand(expression: &mut Expr) -> Result<()> {
    forms::expand(expression)?;
    let Expr::Function(function) = expression else { return Ok(()) };
    if let Some(unfiltered) = filtered::unfiltered(function) {
        *expression = unfiltered;
        return Ok(());
    }
    let Some(name) = name_of(function) else { return Ok(()) };
    let Some(definitions) = DEFINED.get(name.as_str()) else { return Ok(()) };
    let arguments = match &function.args {
        FunctionArguments::None => 0,
        FunctionArguments::List(list) => list.args.len(),
        FunctionArguments::Subquery(_) => return Ok(()),
    };
    let Some(defined) = definitions.iter().find(|defined| defined.arguments == arguments) else {
        if function_kind(&name, function.over.is_some()).is_some() {
            return Ok(());
        }
        let expected: Vec<String> =
            definitions.iter().map(|defined| defined.arguments.to_string()).collect();
        let message = format!("{name}() takes {} arguments", expected.join(" or "));
        return Err(Error::new(message, Position::of(&*function)));
    };
    let span = function.name.span();
    let call = std::mem::replace(function, empty(function));
    *expression = Fill::body(defined, call, span)?;
    forms::expand(expression)
}

/// A call of a function.
pub fn call(name: Ident, arguments: impl IntoIterator<Item = Expr>) -> Expr {
    let argument = |argument| FunctionArg::Unnamed(FunctionArgExpr::Expr(argument));
    let list = FunctionArgumentList {
        duplicate_treatment: None,
        args: arguments.into_iter().map(argument).collect(),
        clauses: Vec::new(),
    };
    Expr::Function(Function {
        name: ObjectName::from(vec![name]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(list),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

/// The folded name of a function that is not in a schema.
pub fn name_of(function: &Function) -> Option<String> {
    match function.name.0.as_slice() {
        [ObjectNamePart::Identifier(name)] => Some(fold(name)),
        _ => None,
    }
}

/// A call of the same function without anything else.
fn empty(function: &Function) -> Function {
    Function {
        name: function.name.clone(),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::None,
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    }
}

/// Puts the parts of a call into the body of a definition.
struct Fill {
    /// The arguments that have no place yet.
    arguments: Vec<Option<Expr>>,
    /// The call without them, until it has met the aggregate that its clauses belong to.
    call: Option<Function>,
    span: Span,
}

impl Fill {
    fn body(defined: &Defined, mut call: Function, span: Span) -> Result<Expr> {
        let mut arguments = Vec::with_capacity(defined.arguments);
        if let FunctionArguments::List(list) = &mut call.args {
            for argument in list.args.drain(..) {
                match argument {
                    FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) => {
                        arguments.push(Some(argument));
                    }
                    _ => {
                        let message = format!("arguments of {}() are values", call.name);
                        return Err(Error::new(message, Position::of_span(span)));
                    }
                }
            }
        }
        let mut fill = Fill { arguments, call: Some(call), span };
        let mut body = defined.body.clone();
        let ControlFlow::Continue(()) = body.visit(&mut fill);
        match fill.call {
            Some(call) if !is_bare(&call) => {
                let message = format!("what is behind the arguments of {}()", call.name);
                Err(Error::not_supported(message, Position::of_span(span)))
            }
            _ => Ok(body),
        }
    }
}

/// Whether a call has nothing but arguments.
pub fn is_bare(call: &Function) -> bool {
    let is_plain =
        |list: &FunctionArgumentList| list.duplicate_treatment.is_none() && list.clauses.is_empty();
    call.filter.is_none()
        && call.null_treatment.is_none()
        && call.over.is_none()
        && call.within_group.is_empty()
        && matches!(call.parameters, FunctionArguments::None)
        && match &call.args {
            FunctionArguments::List(list) => is_plain(list),
            _ => true,
        }
}

impl VisitorMut for Fill {
    type Break = std::convert::Infallible;

    /// Runs before the parts of an expression, so that an argument, which goes in after them, is not looked into.
    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Self::Break> {
        match expression {
            Expr::Value(value) => value.span = self.span,
            Expr::Function(function) => {
                for part in &mut function.name.0 {
                    if let ObjectNamePart::Identifier(name) = part {
                        name.span = self.span;
                    }
                }
                let is_aggregate = name_of(function)
                    .is_some_and(|name| FUNCTIONS.aggregate.contains_key(name.as_str()));
                if is_aggregate && let Some(call) = self.call.take() {
                    move_clauses(call, function);
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Self::Break> {
        if let Expr::Value(value) = expression
            && let Value::Placeholder(place) = &value.value
            && let Ok(place) = place.trim_start_matches('$').parse::<usize>()
            && let Some(argument) = self.arguments.get_mut(place.wrapping_sub(1))
            && let Some(argument) = argument.take()
        {
            *expression = argument;
        }
        ControlFlow::Continue(())
    }
}

/// Moves the clauses after the arguments of a call to another call.
fn move_clauses(call: Function, to: &mut Function) {
    to.filter = call.filter;
    to.null_treatment = call.null_treatment;
    to.over = call.over;
    let within_group = call.within_group;
    let has_groups = name_of(to)
        .and_then(|name| FUNCTIONS.aggregate.get(name.as_str()))
        .is_some_and(|aggregate| aggregate.supports_within_group_clause());
    if let (FunctionArguments::List(from), FunctionArguments::List(to)) = (call.args, &mut to.args)
    {
        to.duplicate_treatment = from.duplicate_treatment;
        to.clauses = from.clauses;
        // `LISTAGG(x, ',') WITHIN GROUP (ORDER BY y)` is `STRING_AGG(x, ',' ORDER BY y)`.
        if !has_groups && !within_group.is_empty() {
            to.clauses.push(FunctionArgumentClause::OrderBy(within_group));
            return;
        }
    }
    to.within_group = within_group;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_definition_is_read_and_has_each_argument_once() {
        for (call, body) in DEFINITIONS {
            let (name, arguments) = call.split_once('(').unwrap();
            let arguments = arguments.matches('$').count();
            let defined = &DEFINED[name];
            assert!(defined.iter().any(|defined| defined.arguments == arguments), "{call}");
            for argument in 1..=arguments {
                let place = format!("${argument}");
                assert_eq!(body.matches(&place).count(), 1, "{place} of {call}");
            }
        }
    }
}
