//! Warnings about rows whose expressions failed, and which are therefore missing in views.

use std::io::Write;

use alluvium::arrow::array::AsArray;
use alluvium::arrow::datatypes::Int64Type;

use super::contents::query;
use crate::shell::{Shell, Stop, failed};

/// Prints a warning for each view with errors, with one of the messages.
pub(crate) fn warn<W: Write>(shell: &Shell<W>) -> Result<(), Stop> {
    let relations = shell.engine().relations().map_err(|error| failed(None, error))?;
    let sql =
        "SELECT view, COUNT(*), MIN(message) FROM alluvium.errors GROUP BY view ORDER BY view";
    for batch in query(shell, sql)? {
        let (views, messages) =
            (batch.column(0).as_string::<i32>(), batch.column(2).as_string::<i32>());
        let counts = batch.column(1).as_primitive::<Int64Type>();
        for row in 0..batch.num_rows() {
            let view = views.value(row);
            // Refused input rows have been reported already.
            let is_view = |kind| !matches!(kind, alluvium::RelationKind::Table);
            if relations.iter().any(|relation| relation.name == view && is_view(relation.kind)) {
                let rows = match counts.value(row) {
                    1 => "1 row is".to_string(),
                    count => format!("{count} rows are"),
                };
                let message = messages.value(row);
                eprintln!("warning: {rows} in alluvium.errors instead of {view}: {message}");
            }
        }
    }
    Ok(())
}
