//! `alluvium.operators`: what the operators of tables, views and indexes have done, per worker.

use std::sync::Arc;

use alluvium_trace::metrics::{Metrics, Work};
use arrow::array::ArrayRef;

use super::{Relations, numbers, of_workers, some_numbers};
use crate::query::objects::some_texts;

/// The work of the operators that are shown on all workers, and of the workers themselves if all is shown.
pub(super) fn columns(metrics: &[Arc<Metrics>], relations: &Relations<'_>) -> Vec<ArrayRef> {
    let mut operators = of_workers(metrics, Metrics::operators);
    operators.retain(|(_, operator)| relations.shows(&operator.label.relation));
    let busy = |work: Work| u64::try_from(work.busy.as_nanos()).unwrap_or(u64::MAX);
    vec![
        numbers(operators.iter().map(|(worker, _)| *worker)),
        some_numbers(operators.iter().map(|(_, it)| it.label.dataflow)),
        some_texts(operators.iter().map(|(_, it)| said(relations.name(&it.label.relation)))),
        numbers(operators.iter().map(|(_, it)| it.label.number as u64)),
        some_texts(operators.iter().map(|(_, it)| said(&it.label.name))),
        some_texts(operators.iter().map(|(_, it)| said(&it.label.fingerprint))),
        numbers(operators.iter().map(|(_, it)| busy(it.all))),
        numbers(operators.iter().map(|(_, it)| it.all.runs)),
        numbers(operators.iter().map(|(_, it)| it.all.rows)),
        numbers(operators.iter().map(|(_, it)| it.all.bytes)),
        numbers(operators.iter().map(|(_, it)| busy(it.minute))),
        numbers(operators.iter().map(|(_, it)| it.minute.runs)),
        numbers(operators.iter().map(|(_, it)| it.minute.rows)),
        numbers(operators.iter().map(|(_, it)| it.minute.bytes)),
        some_numbers(operators.iter().map(|(_, it)| it.inputs.map(|inputs| inputs.rows))),
        some_numbers(operators.iter().map(|(_, it)| it.inputs.map(|inputs| inputs.bytes))),
    ]
}

/// A text, unless it is empty: what workers do themselves is of no relation.
fn said(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}
