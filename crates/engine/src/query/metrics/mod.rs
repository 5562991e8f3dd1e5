//! System relations of metrics: `alluvium.arrangements`, `operators`, `epochs` and `memory`.

mod arrangements;
mod epochs;
mod memory;
mod operators;

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::datasource::TableProvider;

pub(super) use self::arrangements::StateKey;
use crate::catalog::{ARRANGEMENTS, EPOCHS, Entries, MEMORY, OPERATORS};
use crate::error::Result;
use crate::sequencer::Sequencer;
use crate::worker::Progress;

/// Where the metrics are, and of what they are shown.
pub(super) struct Shown<'a> {
    pub(super) progress: &'a Progress,
    pub(super) sequencer: &'a Sequencer,
    /// The relations that are there.
    pub(super) entries: &'a Entries,
    /// Whether only these are shown, and not all that the engine does.
    pub(super) only_these: bool,
}

/// Those of them that are among the names. The reasons are those for which state is not pruned.
pub(super) fn tables_named(
    names: &[String],
    shown: &Shown<'_>,
    reasons: impl Fn() -> Result<BTreeMap<StateKey, String>>,
) -> Result<Vec<(String, Arc<dyn TableProvider>)>> {
    let Shown { progress, sequencer, entries, only_these } = *shown;
    let (workers, indexes) = (progress.metrics(), || index_names(entries));
    let mut found = Vec::new();
    for name in names {
        let table = match name.as_str() {
            ARRANGEMENTS => {
                arrangements::table(workers, &reasons()?, entries, &indexes(), only_these)?
            }
            OPERATORS => operators::table(workers, entries, &indexes(), only_these)?,
            EPOCHS => epochs::table(progress, sequencer.last(), entries)?,
            MEMORY => memory::table(sequencer.budget(), workers, entries, &indexes(), only_these)?,
            _ => continue,
        };
        found.push((name.clone(), table));
    }
    Ok(found)
}

/// The names that were given to indexes, by those of their dataflows.
fn index_names(entries: &Entries) -> BTreeMap<String, String> {
    let mut named: BTreeMap<String, String> = BTreeMap::new();
    for index in entries.values().flat_map(|entry| &entry.indexes) {
        let Some(id) = index.id else { continue };
        // Two by the same columns are one.
        let names = named.entry(id.of_index()).or_default();
        let comma = if names.is_empty() { "" } else { ", " };
        *names += &format!("{comma}{}", index.name);
    }
    named
}
