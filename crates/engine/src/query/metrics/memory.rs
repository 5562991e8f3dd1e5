//! `alluvium.memory`: what memory and files are used for, beside the budget.

use std::sync::Arc;

use alluvium_trace::memory::MemoryBudget;
use alluvium_trace::metrics::{Metrics, SpineMetrics};
use arrow::array::ArrayRef;

use super::{Relations, numbers, some_numbers, state_by_dataflow};
use crate::query::objects::{some_texts, texts};

/// A kind of memory, the relation whose it is, and the bytes.
type Row = (&'static str, Option<String>, u64);

/// The state of each relation, and, if all is shown, what the engine uses beside it.
pub(super) fn columns(
    budget: &MemoryBudget,
    metrics: &[Arc<Metrics>],
    relations: &Relations<'_>,
) -> Vec<ArrayRef> {
    let state = state_by_dataflow(metrics);
    let in_memory: u64 = state.values().map(|state| state.memory).sum();
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
    for (dataflow, SpineMetrics { memory, disk, .. }) in state {
        if !relations.shows(&dataflow) {
            continue;
        }
        let relation = relations.name(&dataflow).to_owned();
        rows.push(("state", Some(relation.clone()), memory));
        rows.push(("files", Some(relation), disk));
    }
    let limit = budget.policy().limit;
    let limit = (limit != usize::MAX).then_some(limit as u64);
    // What counts against the budget.
    let limit = |kind: &str| limit.filter(|_| matches!(kind, "counted" | "peak"));
    vec![
        texts(rows.iter().map(|(kind, ..)| *kind)),
        some_texts(rows.iter().map(|(_, relation, _)| relation.as_deref())),
        numbers(rows.iter().map(|(.., bytes)| *bytes)),
        some_numbers(rows.iter().map(|(kind, ..)| limit(kind))),
    ]
}
