//! `alluvium.arrangements`: the state of each table, view and index, per worker.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium_trace::metrics::{Metrics, SpineMetrics};
use arrow::array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};
use datafusion::datasource::{MemTable, TableProvider};

use crate::catalog::{ARRANGEMENTS_SCHEMA, Entries};
use crate::error::Result;

/// The relation and the id of a state.
pub(in crate::query) type StateKey = (String, String);

/// The spines of all workers, with the reasons for which they are not pruned. Indexes go by the names that they were given, if
/// they were. If not all are shown, there are only those of `entries`.
pub(super) fn table(
    metrics: &[Arc<Metrics>],
    reasons: &BTreeMap<StateKey, String>,
    entries: &Entries,
    named: &BTreeMap<String, String>,
    only_these: bool,
) -> Result<Arc<dyn TableProvider>> {
    let mut spines: Vec<(u64, SpineMetrics)> = metrics
        .iter()
        .zip(0..)
        .flat_map(|(metrics, worker)| metrics.spines().into_iter().map(move |it| (worker, it)))
        .collect();
    if only_these {
        spines.retain(|(_, spine)| {
            let relation = &spine.label.relation;
            entries.contains_key(relation) || named.contains_key(relation)
        });
    }
    let texts = |text: fn(&SpineMetrics) -> &str| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(spines.iter().map(|(_, counters)| text(counters))))
    };
    let numbers = |number: fn(&SpineMetrics) -> u64| -> ArrayRef {
        Arc::new(UInt64Array::from_iter_values(spines.iter().map(|(_, counters)| number(counters))))
    };
    let reason = |spine: &SpineMetrics| {
        let key = (spine.label.relation.clone(), spine.label.id.clone());
        reasons.get(&key).map(String::as_str)
    };
    let columns = vec![
        Arc::new(UInt64Array::from_iter_values(spines.iter().map(|(worker, _)| *worker))) as _,
        Arc::new(StringArray::from_iter_values(
            spines
                .iter()
                .map(|(_, it)| named.get(&it.label.relation).unwrap_or(&it.label.relation)),
        )) as _,
        texts(|counters| &counters.label.operator),
        texts(|counters| &counters.label.key),
        texts(|counters| &counters.label.id),
        texts(|counters| &counters.label.fingerprint),
        numbers(|counters| counters.rows),
        numbers(|counters| counters.memory),
        numbers(|counters| counters.disk),
        Arc::new(StringArray::from_iter(spines.iter().map(|(_, it)| it.bound.as_deref()))) as _,
        Arc::new(UInt64Array::from_iter(spines.iter().map(|(_, it)| it.below))) as _,
        Arc::new(StringArray::from_iter(spines.iter().map(|(_, it)| reason(it)))) as _,
        numbers(|counters| counters.batches),
        numbers(|counters| counters.merges),
        numbers(|counters| counters.merges_for_reads),
        numbers(|counters| counters.merges_for_churn),
        numbers(|counters| counters.seeks),
        numbers(|counters| counters.jobs),
        numbers(|counters| counters.debt),
        numbers(|counters| counters.written),
        Arc::new(Float64Array::from_iter(
            spines.iter().map(|(_, counters)| counters.write_amplification()),
        )),
    ];
    let rows = RecordBatch::try_new(ARRANGEMENTS_SCHEMA.clone(), columns)?;
    Ok(Arc::new(MemTable::try_new(ARRANGEMENTS_SCHEMA.clone(), vec![vec![rows]])?))
}
