//! The functions that a program has registered.
//!
//! Each is called through a guard, [`scalar`] or [`aggregate`], so that its mistakes are errors of the statement or
//! of the row: a panic, and a result of another type or length than was announced. The guards pass on all that decides the
//! result, and nothing that only makes it cheaper: hints for the optimizer, and accumulators of several groups at once. With
//! DISTINCT an aggregate is given each row once, by [`distinct`].

mod aggregate;
mod distinct;
mod scalar;

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use alluvium_dataflow::panic_text;
use alluvium_sql_functions::{FunctionKind, function_kind};
use alluvium_sql_syntax::error::Error;
use alluvium_sql_syntax::statement::Alluvium;
use alluvium_sql_syntax::syntax::{called, check_clauses, is_defined};
use alluvium_sql_syntax::walk::walk;
use arrow::datatypes::DataType;
use datafusion_common::{Result as DataFusionResult, exec_err};
use datafusion_expr::{AggregateUDF, ScalarUDF, Volatility};
use sqlparser::ast::{self, Expr, Visit, Visitor, visit_expressions};
use sqlparser::parser::Parser;

use self::aggregate::GuardedAggregate;
use self::scalar::GuardedScalar;
use crate::rules::canonical_floats::{NAN_FUNCTION, ZERO_FUNCTION};

/// Functions of a program, by name.
#[derive(Clone, Debug, Default)]
pub struct RegisteredFunctions {
    scalar: HashMap<String, Arc<ScalarUDF>>,
    aggregate: HashMap<String, Arc<AggregateUDF>>,
}

impl RegisteredFunctions {
    /// Adds a scalar function, under its name and its aliases.
    ///
    /// # Errors
    /// Why it cannot be called by one of them: another function is, or SQL cannot write it.
    pub fn add_scalar(&mut self, function: Arc<ScalarUDF>) -> Result<(), String> {
        if function.as_async().is_some() {
            let name = function.name();
            return Err(format!("the function {name}() is async, which functions cannot be here"));
        }
        for name in names(function.name(), function.aliases()) {
            self.check_name(name)?;
            let guarded = GuardedScalar::new(name, Arc::clone(&function));
            self.scalar.insert(name.to_owned(), Arc::new(ScalarUDF::from(guarded)));
        }
        Ok(())
    }

    /// Adds an aggregate, under its name and its aliases.
    ///
    /// # Errors
    /// As for [`RegisteredFunctions::add_scalar`].
    pub fn add_aggregate(&mut self, function: Arc<AggregateUDF>) -> Result<(), String> {
        for name in names(function.name(), function.aliases()) {
            self.check_name(name)?;
            let guarded = GuardedAggregate::new(name, Arc::clone(&function));
            self.aggregate.insert(name.to_owned(), Arc::new(AggregateUDF::from(guarded)));
        }
        Ok(())
    }

    fn check_name(&self, name: &str) -> Result<(), String> {
        if is_built_in(name) {
            return Err(format!(
                "the name of the function {name}() is that of a built-in function; register it under another one"
            ));
        }
        if self.kind(name).is_some() {
            return Err(format!("two functions of the name {name}() are registered"));
        }
        if !is_written_as_call(name) {
            return Err(format!(
                "SQL cannot call a function of the name \"{name}\"; take a word of lower-case letters, digits and \
                 underscores that means nothing else"
            ));
        }
        Ok(())
    }

    /// The scalar function of a name.
    pub fn scalar(&self, name: &str) -> Option<&Arc<ScalarUDF>> {
        self.scalar.get(name)
    }

    /// The aggregate of a name.
    pub fn aggregate(&self, name: &str) -> Option<&Arc<AggregateUDF>> {
        self.aggregate.get(name)
    }

    /// The names of scalar functions.
    pub fn scalar_names(&self) -> impl Iterator<Item = &String> {
        self.scalar.keys()
    }

    /// The names of aggregates.
    pub fn aggregate_names(&self) -> impl Iterator<Item = &String> {
        self.aggregate.keys()
    }

    fn is_empty(&self) -> bool {
        self.scalar.is_empty() && self.aggregate.is_empty()
    }

    /// The kind of the function of this name, if there is one.
    pub fn kind(&self, name: &str) -> Option<FunctionKind> {
        match (self.scalar.contains_key(name), self.aggregate.contains_key(name)) {
            (true, _) => Some(FunctionKind::Scalar),
            (false, true) => Some(FunctionKind::Aggregate),
            (false, false) => None,
        }
    }

    /// Whether the results of the function of this name depend on its arguments alone; `None` without such a function.
    pub fn volatility(&self, name: &str) -> Option<Volatility> {
        let scalar = self.scalar(name).map(|function| function.signature());
        let signature =
            scalar.or_else(|| self.aggregate(name).map(|function| function.signature()));
        signature.map(|signature| signature.volatility)
    }
}

/// Functions that are recognized by their names, and cannot be called, or only in one place.
const RESERVED: [&str; 7] =
    [NAN_FUNCTION, ZERO_FUNCTION, "by_length", "tumble", "hop", "session", "descriptor"];

/// A function that DataFusion's planner makes without looking for it.
const MAKE_MAP: &str = "make_map";

/// Whether a function was registered by a program.
pub fn is_registered(function: &ScalarUDF) -> bool {
    function.inner().is::<GuardedScalar>()
}

/// Refuses clauses that calls of these functions do not have: a statement is read before they are known.
pub fn check_calls(
    statement: &ast::Statement,
    registered: &RegisteredFunctions,
) -> Result<(), Error> {
    struct Calls<'a>(&'a RegisteredFunctions);
    impl Visitor for Calls<'_> {
        type Break = Error;

        fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<Error> {
            if let Expr::Function(call) = expression
                && let Some(kind) = called(call).and_then(|name| self.0.kind(&name))
                && let Err(error) = check_clauses(call, Some(kind))
            {
                return ControlFlow::Break(error);
            }
            ControlFlow::Continue(())
        }
    }
    match registered.is_empty() {
        true => Ok(()),
        false => walk(statement, &mut Calls(registered)),
    }
}

/// The first function that a query or an expression calls and that is neither built in nor among these. Joins that stand in a
/// query as calls have names that no function has.
pub fn unknown(
    part: &impl Visit,
    registered: &RegisteredFunctions,
    is_defined: &dyn Fn(&str) -> bool,
) -> Option<String> {
    let found = visit_expressions(part, |expression| {
        if let Expr::Function(call) = expression
            && let Some(name) = called(call)
            && !is_built_in(&name)
            && registered.kind(&name).is_none()
            && !is_defined(&name)
            && is_written_as_call(&name)
        {
            return ControlFlow::Break(name);
        }
        ControlFlow::Continue(())
    });
    found.break_value()
}

/// Whether a name means something without a program's functions.
pub fn is_built_in(name: &str) -> bool {
    is_defined(name)
        || RESERVED.contains(&name)
        || name == MAKE_MAP
        || name.starts_with("regexp_")
        || function_kind(name, false).is_some()
        || function_kind(name, true).is_some()
}

fn names<'a>(name: &'a str, aliases: &'a [String]) -> impl Iterator<Item = &'a str> {
    std::iter::once(name).chain(aliases.iter().map(String::as_str))
}

/// Whether `name(1)` calls the function of this name.
pub fn is_written_as_call(name: &str) -> bool {
    let is_word = name.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
    let text = format!("{name}(1)");
    let parsed = Parser::new(&Alluvium::new(text.len()))
        .try_with_sql(&text)
        .and_then(|mut parser| parser.parse_expr());
    match parsed {
        Ok(Expr::Function(call)) => is_word && called(&call).as_deref() == Some(name),
        _ => false,
    }
}

/// Calls a registered function, and makes its panics errors.
fn guarded<T>(name: &str, call: impl FnOnce() -> DataFusionResult<T>) -> DataFusionResult<T> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        let text = panic_text(&*panic).unwrap_or("without a message");
        exec_err!("{name}() panicked: {text}")
    })
}

/// Fails if a function has returned a value of another type than it had announced.
fn check_type(name: &str, found: &DataType, announced: &DataType) -> DataFusionResult<()> {
    match found == announced {
        true => Ok(()),
        false => exec_err!("{name}() returned {found} where it had announced {announced}"),
    }
}
