//! `alluvium.arrangements`: the state of each table, view and index, per worker.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium_trace::metrics::{Metrics, SpineMetrics};
use arrow::array::{ArrayRef, Float64Array};

use super::{Relations, numbers, of_workers, some_numbers};
use crate::query::objects::{some_texts, texts};

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
    let reason = |spine: &SpineMetrics| {
        let key = (spine.label.relation.clone(), spine.label.id.clone());
        reasons.get(&key).map(String::as_str)
    };
    vec![
        numbers(spines.iter().map(|(worker, _)| *worker)),
        texts(spines.iter().map(|(_, it)| relations.name(&it.label.relation))),
        texts(spines.iter().map(|(_, it)| &it.label.operator)),
        texts(spines.iter().map(|(_, it)| &it.label.key)),
        texts(spines.iter().map(|(_, it)| &it.label.id)),
        texts(spines.iter().map(|(_, it)| &it.label.fingerprint)),
        numbers(spines.iter().map(|(_, it)| it.rows)),
        numbers(spines.iter().map(|(_, it)| it.memory)),
        numbers(spines.iter().map(|(_, it)| it.disk)),
        some_texts(spines.iter().map(|(_, it)| it.bound.as_deref())),
        some_numbers(spines.iter().map(|(_, it)| it.below)),
        some_texts(spines.iter().map(|(_, it)| reason(it))),
        numbers(spines.iter().map(|(_, it)| it.batches)),
        numbers(spines.iter().map(|(_, it)| it.merges)),
        numbers(spines.iter().map(|(_, it)| it.merges_for_reads)),
        numbers(spines.iter().map(|(_, it)| it.merges_for_churn)),
        numbers(spines.iter().map(|(_, it)| it.seeks)),
        numbers(spines.iter().map(|(_, it)| it.jobs)),
        numbers(spines.iter().map(|(_, it)| it.debt)),
        numbers(spines.iter().map(|(_, it)| it.written)),
        Arc::new(Float64Array::from_iter(spines.iter().map(|(_, it)| it.write_amplification()))),
    ]
}
