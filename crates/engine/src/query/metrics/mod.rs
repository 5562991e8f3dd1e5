//! System relations of metrics: `alluvium.arrangements` and `alluvium.operators`.

mod arrangements;
mod operators;

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium_trace::metrics::Metrics;
use datafusion::datasource::TableProvider;

pub(super) use self::arrangements::StateKey;
use crate::catalog::{ARRANGEMENTS, Entries, OPERATORS};
use crate::error::Result;

/// Those of them that are among the names, of all workers. The reasons are those for which state is not pruned. If not all are
/// shown, there are only the relations that are `entries`.
pub(super) fn tables_named(
    names: &[String],
    metrics: &[Arc<Metrics>],
    reasons: impl Fn() -> Result<BTreeMap<StateKey, String>>,
    entries: &Entries,
    only_these: bool,
) -> Result<Vec<(String, Arc<dyn TableProvider>)>> {
    let mut found = Vec::new();
    for name in names {
        let indexes = || index_names(entries);
        let table = match name.as_str() {
            ARRANGEMENTS => {
                arrangements::table(metrics, &reasons()?, entries, &indexes(), only_these)?
            }
            OPERATORS => operators::table(metrics, entries, &indexes(), only_these)?,
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
