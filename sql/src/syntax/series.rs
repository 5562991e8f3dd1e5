//! Calls of `generate_series` and `range` in FROM.

use sqlparser::ast::{FunctionArg, ObjectName, TableAlias, TableFactor};

/// A call of one of these functions. The series of `range` ends before its end.
pub(crate) struct SeriesCall<'a> {
    pub(crate) function: &'static str,
    pub(crate) name: &'a ObjectName,
    pub(crate) arguments: &'a [FunctionArg],
    pub(crate) alias: &'a Option<TableAlias>,
}

impl SeriesCall<'_> {
    pub(crate) fn of(factor: &TableFactor) -> Option<SeriesCall<'_>> {
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
