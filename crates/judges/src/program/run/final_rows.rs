//! Final rows of the views of a program.
//!
//! A view whose rows become final by one of its columns gets a sibling that emits only those. With any bound, two
//! things hold after every epoch: the rows of the sibling are rows of the view, and it has all that it had before.

use std::collections::BTreeMap;

use super::bench::Bench;
use super::text;
use crate::answers::deltas::Watch;
use crate::answers::row::{Row, line};
use crate::program::Keeping;

/// The sibling of a view.
pub(super) struct FinalRows {
    name: String,
    watch: Watch,
    /// The rows it had when it was last looked at.
    rows: Vec<Row>,
}

impl Bench<'_> {
    /// Creates the sibling of a view, by the first column that the engine takes.
    pub(super) fn create_sibling(&self, view: usize) -> Result<Option<FinalRows>, String> {
        let definition = &self.program.views[view];
        let has_lateness = self.program.tables.iter().any(|table| table.lateness.is_some())
            || self.program.views.iter().any(|view| view.lateness.is_some());
        // Its sibling would have what comes too late.
        if !has_lateness || definition.lateness.is_some() || definition.keeping == Keeping::Local {
            return Ok(None);
        }
        let name = format!("{}_final", definition.name);
        for (column, _) in definition.query.columns() {
            match self.engine.execute(&definition.sql_of_final(&name, &column)) {
                Ok(_) => {
                    let watch = Watch::new(self.engine.subscribe(&name).map_err(text)?);
                    return Ok(Some(FinalRows { name, watch, rows: Vec::new() }));
                }
                Err(error @ alluvium::Error::Poisoned { .. }) => return Err(text(error)),
                Err(_) => {}
            }
        }
        Ok(None)
    }

    /// Drops the sibling of a view.
    pub(super) fn drop_sibling(&self, sibling: &FinalRows) -> Result<(), String> {
        self.engine.execute(&format!("DROP VIEW {}", sibling.name)).map(drop).map_err(text)
    }

    /// Compares the sibling of a view, which holds these rows, with it.
    pub(super) fn judge_sibling(&mut self, view: usize, held: &[Row]) {
        let epoch = self.epoch;
        let sibling = self.views.get_mut(&view).and_then(|watched| watched.sibling.as_mut());
        let Some(FinalRows { watch, rows: before, .. }) = sibling else { return };
        let objection = match watch.catch_up(epoch) {
            Err(reason) => Some(reason),
            Ok(()) => {
                let rows = watch.sum.rows();
                let wrong = first_of(&rows, held)
                    .map(|row| format!("[{}] is final and not in the view", line(&row)));
                let gone = first_of(before, &rows)
                    .map(|row| format!("[{}] was final and is taken back", line(&row)));
                *before = rows;
                wrong.or(gone)
            }
        };
        if let Some(objection) = objection {
            self.wrong(view, format!("as final rows: {objection}"));
        }
    }
}

impl FinalRows {
    /// Subscribes to it in another engine.
    pub(super) fn again(&mut self, engine: &alluvium::Engine) -> Result<(), String> {
        self.watch = Watch::new(engine.subscribe(&self.name).map_err(text)?);
        Ok(())
    }
}

/// The first of some rows of which there are more than among others.
fn first_of(rows: &[Row], others: &[Row]) -> Option<Row> {
    let mut counts: BTreeMap<&Row, usize> = BTreeMap::new();
    others.iter().for_each(|row| *counts.entry(row).or_default() += 1);
    let is_more = |row: &&Row| match counts.get_mut(*row) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        _ => true,
    };
    rows.iter().find(is_more).cloned()
}
