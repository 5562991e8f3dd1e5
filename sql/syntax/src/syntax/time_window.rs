//! Calls of `TUMBLE`, `HOP` and `SESSION`, and their arguments.

use sqlparser::ast::{
    self, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName, TableFactor,
};

use super::simple_query::from_table;
use crate::error::{Error, Position, Result};

/// A function that adds the windows of their times to rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowFunction {
    /// Windows that follow each other.
    Tumble,
    /// Windows that overlap.
    Hop,
    /// Windows that end where no row follows for a time.
    Session,
}

impl WindowFunction {
    /// The function of a name, unless it is quoted.
    pub fn of(name: &ObjectName) -> Option<WindowFunction> {
        let [part] = name.0.as_slice() else { return None };
        let name = part.as_ident().filter(|name| name.quote_style.is_none())?;
        match name.value.to_ascii_uppercase().as_str() {
            "TUMBLE" => Some(WindowFunction::Tumble),
            "HOP" => Some(WindowFunction::Hop),
            "SESSION" => Some(WindowFunction::Session),
            _ => None,
        }
    }

    /// Its name in SQL.
    pub fn name(self) -> &'static str {
        match self {
            WindowFunction::Tumble => "TUMBLE",
            WindowFunction::Hop => "HOP",
            WindowFunction::Session => "SESSION",
        }
    }
}

/// Whether a relation is a call of one of these functions.
pub(super) fn is_time_window(factor: &TableFactor) -> bool {
    windowed(factor).is_some()
}

/// The name of the relation that such a call is about, if it has no schema.
pub fn windowed_without_schema(factor: &TableFactor) -> Option<&ast::Ident> {
    let (function, name, arguments) = windowed(factor)?;
    match WindowArguments::read(function, arguments, Position::of(name)).ok()?.relation() {
        ast::Expr::Identifier(name) => Some(name),
        _ => None,
    }
}

/// The function that a relation calls, its name as it is written, and its arguments.
pub fn windowed(
    factor: &TableFactor,
) -> Option<(WindowFunction, &ObjectName, &[ast::FunctionArg])> {
    match factor {
        TableFactor::TableFunction { expr: ast::Expr::Function(call), .. } => {
            let ast::FunctionArguments::List(list) = &call.args else { return None };
            Some((WindowFunction::of(&call.name)?, &call.name, &list.args))
        }
        TableFactor::Table { name, args: Some(arguments), .. } => {
            Some((WindowFunction::of(name)?, name, &arguments.args))
        }
        _ => None,
    }
}

/// The arguments of a call, by their names in calls with named arguments: `DATA => TABLE bid`.
pub struct WindowArguments<'a> {
    /// The function.
    pub function: WindowFunction,
    /// Where the function is named.
    pub at: Option<Position>,
    table: &'a ast::Expr,
    named: Vec<(&'static str, &'a ast::Expr)>,
}

impl WindowFunction {
    /// The arguments after the relation, in order; OFFSET is optional.
    fn parameters(self) -> &'static [&'static str] {
        match self {
            WindowFunction::Tumble => &["TIMECOL", "SIZE", "OFFSET"],
            WindowFunction::Hop => &["TIMECOL", "SLIDE", "SIZE", "OFFSET"],
            WindowFunction::Session => &["TIMECOL", "KEY", "SIZE"],
        }
    }

    fn usage(self) -> &'static str {
        match self {
            WindowFunction::Tumble => "TUMBLE(TABLE t, DESCRIPTOR(time), INTERVAL size)",
            WindowFunction::Hop => "HOP(TABLE t, DESCRIPTOR(time), INTERVAL slide, INTERVAL size)",
            WindowFunction::Session => {
                "SESSION(TABLE t, DESCRIPTOR(time), DESCRIPTOR(key), INTERVAL gap)"
            }
        }
    }
}

impl<'a> WindowArguments<'a> {
    /// Reads the arguments of a call that is `at` a place.
    ///
    /// # Errors
    /// If they are not those of the function.
    pub fn read(
        function: WindowFunction,
        arguments: &'a [FunctionArg],
        at: Option<Position>,
    ) -> Result<WindowArguments<'a>> {
        let usage = || Error::new(format!("write {}", function.usage()), at);
        let parameters = function.parameters();
        let mut table = None;
        let mut named: Vec<(&str, &ast::Expr)> = Vec::with_capacity(parameters.len());
        for (number, argument) in arguments.iter().enumerate() {
            let (name, value) = match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => {
                    let name = if number == 0 {
                        "DATA"
                    } else {
                        parameters.get(number - 1).ok_or_else(usage)?
                    };
                    (name, value)
                }
                FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. } => {
                    let name = name.value.to_ascii_uppercase();
                    let mut known = parameters.iter().chain(&["DATA"]);
                    (*known.find(|known| **known == name).ok_or_else(usage)?, value)
                }
                _ => return Err(usage()),
            };
            let is_twice = match name {
                "DATA" => table.replace(value).is_some(),
                name => {
                    let is_twice = named.iter().any(|(other, _)| *other == name);
                    named.push((name, value));
                    is_twice
                }
            };
            if is_twice {
                return Err(usage());
            }
        }
        let required = parameters.iter().filter(|parameter| **parameter != "OFFSET");
        let is_complete =
            required.into_iter().all(|parameter| named.iter().any(|(name, _)| name == parameter));
        match table {
            Some(table) if is_complete => Ok(WindowArguments { function, at, table, named }),
            _ => Err(usage()),
        }
    }

    /// The argument of a name in upper case, if it is given.
    pub fn get(&self, name: &str) -> Option<&'a ast::Expr> {
        self.named.iter().find(|(other, _)| *other == name).map(|(_, value)| *value)
    }

    /// The relation, as it is written after TABLE.
    pub fn relation(&self) -> &'a ast::Expr {
        match self.table {
            ast::Expr::Prefixed { value, .. } => value,
            named => named,
        }
    }

    /// The relation, as FROM names it.
    pub fn table(&self) -> TableFactor {
        let parts: Vec<Ident> = match self.relation() {
            ast::Expr::Identifier(name) => vec![name.clone()],
            ast::Expr::CompoundIdentifier(parts) => parts.clone(),
            ast::Expr::Subquery(query) => {
                return TableFactor::Derived {
                    lateral: false,
                    subquery: query.clone(),
                    alias: None,
                    sample: None,
                };
            }
            // The catalog reports a relation that does not exist, with its position.
            other => vec![Ident::with_quote('"', other.to_string())],
        };
        let alias = parts.last().filter(|_| parts.len() > 1).cloned();
        from_table(ObjectName::from(parts), alias).relation
    }
}

/// The columns inside `DESCRIPTOR(…)`, which is optional around a single column.
pub fn described(expression: &ast::Expr) -> Vec<&ast::Expr> {
    if let ast::Expr::Function(call) = expression
        && call.name.to_string().eq_ignore_ascii_case("descriptor")
        && let FunctionArguments::List(list) = &call.args
    {
        return list
            .args
            .iter()
            .filter_map(|argument| match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(column)) => Some(column),
                _ => None,
            })
            .collect();
    }
    vec![expression]
}
