//! `alluvium.compactions`: the larger merges and moves to files, per worker.

use std::sync::Arc;

use alluvium_trace::metrics::{CompactionKind, Metrics};
use arrow::array::ArrayRef;

use super::{Relations, milliseconds, numbers, of_workers, some_numbers};
use crate::query::objects::texts;

/// Those in progress, and then the last that have ended, of the relations that are shown.
pub(super) fn columns(metrics: &[Arc<Metrics>], relations: &Relations<'_>) -> Vec<ArrayRef> {
    let mut rows = of_workers(metrics, Metrics::compactions);
    rows.retain(|(_, it)| relations.shows(&it.label.relation));
    let state = |written: Option<u64>| if written.is_some() { "done" } else { "running" };
    vec![
        numbers(rows.iter().map(|(worker, _)| *worker)),
        texts(rows.iter().map(|(_, it)| relations.name(&it.label.relation))),
        texts(rows.iter().map(|(_, it)| &it.label.operator)),
        texts(rows.iter().map(|(_, it)| &it.label.id)),
        texts(rows.iter().map(|(_, it)| name(it.kind))),
        texts(rows.iter().map(|(_, it)| state(it.written))),
        numbers(rows.iter().map(|(_, it)| it.rows)),
        numbers(rows.iter().map(|(_, it)| it.bytes)),
        numbers(rows.iter().map(|(_, it)| it.done)),
        some_numbers(rows.iter().map(|(_, it)| it.written)),
        numbers(rows.iter().map(|(_, it)| milliseconds(it.time))),
        numbers(rows.iter().map(|(_, it)| milliseconds(it.age))),
    ]
}

fn name(kind: CompactionKind) -> &'static str {
    match kind {
        CompactionKind::Merge => "merge",
        CompactionKind::MergeForReads => "merge for reads",
        CompactionKind::MergeForChurn => "merge for churn",
        CompactionKind::Prune => "prune",
        CompactionKind::Spill => "move to a file",
    }
}
