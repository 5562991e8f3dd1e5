//! `alluvium.operators`: what the operators of tables, views and indexes have done, per worker.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium_trace::metrics::{Metrics, OperatorMetrics, Work};
use arrow::array::{ArrayRef, RecordBatch, StringArray, UInt64Array};
use datafusion::datasource::{MemTable, TableProvider};

use crate::catalog::{Entries, OPERATORS_SCHEMA};
use crate::error::Result;

/// The work of all operators on all workers, and of the workers themselves. If not all is shown, there are only the operators of
/// `entries`.
pub(super) fn table(
    metrics: &[Arc<Metrics>],
    entries: &Entries,
    named: &BTreeMap<String, String>,
    only_these: bool,
) -> Result<Arc<dyn TableProvider>> {
    let mut operators: Vec<(u64, OperatorMetrics)> = metrics
        .iter()
        .zip(0..)
        .flat_map(|(metrics, worker)| metrics.operators().into_iter().map(move |it| (worker, it)))
        .collect();
    if only_these {
        operators.retain(|(_, operator)| {
            let relation = &operator.label.relation;
            entries.contains_key(relation) || named.contains_key(relation)
        });
    }
    let texts = |text: &dyn Fn(&OperatorMetrics) -> String| -> ArrayRef {
        let texts = operators.iter().map(|(_, operator)| Some(text(operator)));
        Arc::new(StringArray::from_iter(texts.map(|text| text.filter(|text| !text.is_empty()))))
    };
    let numbers = |number: &dyn Fn(&OperatorMetrics) -> u64| -> ArrayRef {
        Arc::new(UInt64Array::from_iter_values(operators.iter().map(|(_, it)| number(it))))
    };
    let busy = |work: Work| u64::try_from(work.busy.as_nanos()).unwrap_or(u64::MAX);
    let columns = vec![
        Arc::new(UInt64Array::from_iter_values(operators.iter().map(|(worker, _)| *worker))) as _,
        Arc::new(UInt64Array::from_iter(operators.iter().map(|(_, it)| it.label.dataflow))) as _,
        texts(&|it| named.get(&it.label.relation).unwrap_or(&it.label.relation).clone()),
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
    ];
    let rows = RecordBatch::try_new(OPERATORS_SCHEMA.clone(), columns)?;
    Ok(Arc::new(MemTable::try_new(OPERATORS_SCHEMA.clone(), vec![vec![rows]])?))
}
