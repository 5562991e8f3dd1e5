//! `alluvium.memory`: what memory and files are used for, beside the budget.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium_trace::memory::MemoryBudget;
use alluvium_trace::metrics::Metrics;
use arrow::array::{ArrayRef, StringArray, UInt64Array};

use super::Relations;

/// A kind of memory, the relation whose it is, and the bytes.
type Row = (&'static str, Option<String>, u64);

/// The state of each relation, and, if all is shown, what the engine uses beside it.
pub(super) fn columns(
    budget: &MemoryBudget,
    metrics: &[Arc<Metrics>],
    relations: &Relations<'_>,
) -> Vec<ArrayRef> {
    let mut state: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for spine in metrics.iter().flat_map(|metrics| metrics.spines()) {
        let (memory, disk) = state.entry(spine.label.relation).or_default();
        (*memory, *disk) = (*memory + spine.memory, *disk + spine.disk);
    }
    let in_memory: u64 = state.values().map(|(memory, _)| memory).sum();
    let mut rows: Vec<Row> = Vec::new();
    if !relations.only_these {
        let used = budget.used() as u64;
        rows.extend([
            ("counted", None, used),
            ("peak", None, budget.peak() as u64),
            ("other", None, used.saturating_sub(in_memory)),
            ("free", None, budget.kept() as u64),
            ("mapped", None, budget.resident() as u64),
            ("spilled", None, budget.written()),
        ]);
    }
    for (relation, (memory, disk)) in state {
        if !relations.shows(&relation) {
            continue;
        }
        let relation = relations.name(&relation).to_owned();
        rows.push(("state", Some(relation.clone()), memory));
        rows.push(("files", Some(relation), disk));
    }
    let limit = budget.policy().limit;
    let limit = (limit != usize::MAX).then_some(limit as u64);
    // What counts against the budget.
    let limit = |kind: &str| limit.filter(|_| matches!(kind, "counted" | "peak"));
    vec![
        Arc::new(StringArray::from_iter_values(rows.iter().map(|(kind, ..)| *kind))) as _,
        Arc::new(StringArray::from_iter(rows.iter().map(|(_, relation, _)| relation.as_deref())))
            as _,
        Arc::new(UInt64Array::from_iter_values(rows.iter().map(|(.., bytes)| *bytes))) as _,
        Arc::new(UInt64Array::from_iter(rows.iter().map(|(kind, ..)| limit(kind)))) as _,
    ]
}
