//! Warnings about rows whose expressions failed, and which are therefore missing in views.

use std::collections::BTreeMap;
use std::io::Write;

use alluvium::arrow::array::AsArray;
use alluvium::arrow::datatypes::Int64Type;
use alluvium::{Engine, RelationKind, Result};

use super::Shell;
use super::backend::{Backend, ended};
use super::stop::Stop;
use crate::console::{self, escaped};

/// The errors of views that the user has been told of.
#[derive(Default)]
pub(super) struct ErrorRows {
    /// The engine's count of changes to errors when they were last looked at.
    updates: u64,
    /// The number of rows of each view that were reported.
    reported: BTreeMap<String, i64>,
}

impl ErrorRows {
    /// The views that have gained errors since the last call: how many rows they have now, and one of the messages.
    pub(super) fn gained(&mut self, engine: &Engine) -> Result<Vec<(String, i64, String)>> {
        let updates = engine.error_updates()?;
        if std::mem::replace(&mut self.updates, updates) == updates {
            return Ok(Vec::new());
        }
        let relations = engine.relations()?;
        let mut gained = Vec::new();
        let mut present = BTreeMap::new();
        let sql =
            "SELECT view, COUNT(*), MIN(message) FROM alluvium.errors GROUP BY view ORDER BY view";
        for batch in engine.query(sql)? {
            let views = batch.column(0).as_string::<i32>();
            let counts = batch.column(1).as_primitive::<Int64Type>();
            let messages = batch.column(2).as_string::<i32>();
            for row in 0..batch.num_rows() {
                let (view, count) = (views.value(row), counts.value(row));
                // Refused input rows are reported elsewhere.
                let is_view = relations.iter().any(|relation| {
                    relation.name == view && !matches!(relation.kind, RelationKind::Table)
                });
                if is_view {
                    present.insert(view.to_owned(), count);
                    if self.reported.get(view).is_none_or(|reported| *reported < count) {
                        gained.push((view.to_owned(), count, messages.value(row).to_owned()));
                    }
                }
            }
        }
        self.reported = present;
        Ok(gained)
    }
}

impl<W: Write, B: Backend> Shell<W, B> {
    /// Warns of each view that has gained errors since the last call, as of what is complete now, or of all that is
    /// committed if it `waits` for that.
    pub(crate) fn warn_of_errors(&mut self, waits: bool) -> std::result::Result<(), Stop> {
        for (view, count, message) in self.backend.gained_errors(waits).map_err(ended)? {
            let rows = match count {
                1 => "1 row is".to_owned(),
                count => format!("{count} rows are"),
            };
            let message = escaped(&message, &[]);
            self.line.aside(|| {
                console::report(format_args!(
                    "warning: {rows} in alluvium.errors instead of {view}: {message}"
                ));
            });
        }
        Ok(())
    }
}
