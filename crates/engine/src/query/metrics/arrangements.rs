//! `alluvium.arrangements`: the state of each table, view and index, per worker.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium_trace::metrics::{Metrics, SpineMetrics};
use arrow::array::{ArrayRef, Float64Array, StringArray, UInt64Array};

use super::{Relations, of_workers};

/// The relation and the id of a state.
pub(in crate::query) type StateKey = (String, String);

/// The spines of all workers that are shown, with the reasons for which they are not pruned.
pub(super) fn columns(
    metrics: &[Arc<Metrics>],
    reasons: &BTreeMap<StateKey, String>,
    relations: &Relations<'_>,
) -> Vec<ArrayRef> {
    let mut spines = of_workers(metrics, Metrics::spines);
    spines.retain(|(_, spine)| relations.shows(&spine.label.relation));
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
    vec![
        Arc::new(UInt64Array::from_iter_values(spines.iter().map(|(worker, _)| *worker))) as _,
        Arc::new(StringArray::from_iter_values(
            spines.iter().map(|(_, it)| relations.name(&it.label.relation)),
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
    ]
}
