//! `alluvium.operators`: what the operators of tables, views and indexes have done, per worker.

use std::sync::Arc;

use alluvium_trace::metrics::{Metrics, OperatorMetrics, Work};
use arrow::array::{ArrayRef, StringArray, UInt64Array};

use super::{Relations, of_workers};

/// The work of the operators that are shown on all workers, and of the workers themselves if all is shown.
pub(super) fn columns(metrics: &[Arc<Metrics>], relations: &Relations<'_>) -> Vec<ArrayRef> {
    let mut operators = of_workers(metrics, Metrics::operators);
    operators.retain(|(_, operator)| relations.shows(&operator.label.relation));
    let texts = |text: &dyn Fn(&OperatorMetrics) -> String| -> ArrayRef {
        let texts = operators.iter().map(|(_, operator)| Some(text(operator)));
        Arc::new(StringArray::from_iter(texts.map(|text| text.filter(|text| !text.is_empty()))))
    };
    let numbers = |number: &dyn Fn(&OperatorMetrics) -> u64| -> ArrayRef {
        Arc::new(UInt64Array::from_iter_values(operators.iter().map(|(_, it)| number(it))))
    };
    let busy = |work: Work| u64::try_from(work.busy.as_nanos()).unwrap_or(u64::MAX);
    vec![
        Arc::new(UInt64Array::from_iter_values(operators.iter().map(|(worker, _)| *worker))) as _,
        Arc::new(UInt64Array::from_iter(operators.iter().map(|(_, it)| it.label.dataflow))) as _,
        texts(&|it| relations.name(&it.label.relation).to_owned()),
        numbers(&|it| it.label.number as u64),
        texts(&|it| it.label.name.clone()),
        texts(&|it| it.label.fingerprint.clone()),
        numbers(&|it| busy(it.all)),
        numbers(&|it| it.all.runs),
        numbers(&|it| it.all.rows),
        numbers(&|it| it.all.bytes),
        numbers(&|it| busy(it.minute)),
        numbers(&|it| it.minute.runs),
        numbers(&|it| it.minute.rows),
        numbers(&|it| it.minute.bytes),
    ]
}
