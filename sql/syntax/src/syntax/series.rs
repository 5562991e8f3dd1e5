//! Calls of `generate_series` and `range` in FROM.

use sqlparser::ast::{FunctionArg, ObjectName, TableAlias, TableFactor};

/// A call of one of these functions. The series of `range` ends before its end.
pub struct SeriesCall<'a> {
    /// The function, in lower case.
    pub function: &'static str,
    /// Its name as it is written.
    pub name: &'a ObjectName,
    /// Its arguments.
    pub arguments: &'a [FunctionArg],
    /// The name that its rows are given.
    pub alias: &'a Option<TableAlias>,
}

impl SeriesCall<'_> {
    /// The call that a relation is.
    pub fn of(factor: &TableFactor) -> Option<SeriesCall<'_>> {
        let TableFactor::Table { name, args: Some(arguments), alias, .. } = factor else {
            return None;
        };
        let [part] = &name.0[..] else { return None };
        let written = &part.as_ident()?.value;
        let known = ["generate_series", "range"];
        let function = known.into_iter().find(|known| known.eq_ignore_ascii_case(written))?;
        Some(SeriesCall { function, name, arguments: &arguments.args, alias })
    }
}

/// The name of the function if a relation is a call of one of these.
pub(super) fn series_function(factor: &TableFactor) -> Option<&'static str> {
    SeriesCall::of(factor).map(|call| call.function)
}
