//! `alluvium.arrangements`: what is kept for each table, view and index, worker by worker.

use std::sync::Arc;

use alluvium_trace::ledger::{Account, Ledger};
use arrow::array::{ArrayRef, RecordBatch, StringArray, UInt64Array};
use datafusion::datasource::{MemTable, TableProvider};

use crate::catalog::ARRANGEMENTS_SCHEMA;
use crate::error::Result;

/// What the workers hold now.
pub(super) fn table(ledgers: &[Arc<Ledger>]) -> Result<Arc<dyn TableProvider>> {
    let accounts: Vec<(u64, Account)> = ledgers
        .iter()
        .zip(0..)
        .flat_map(|(ledger, worker)| ledger.accounts().into_iter().map(move |it| (worker, it)))
        .collect();
    let texts = |text: fn(&Account) -> &str| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(accounts.iter().map(|(_, account)| text(account))))
    };
    let numbers = |number: fn(&Account) -> u64| -> ArrayRef {
        Arc::new(UInt64Array::from_iter_values(accounts.iter().map(|(_, account)| number(account))))
    };
    let columns = vec![
        Arc::new(UInt64Array::from_iter_values(accounts.iter().map(|(worker, _)| *worker))) as _,
        texts(|account| &account.label.relation),
        texts(|account| &account.label.operator),
        texts(|account| &account.label.key),
        numbers(|account| account.rows),
        numbers(|account| account.memory),
        numbers(|account| account.disk),
        numbers(|account| account.batches),
        numbers(|account| account.merges),
    ];
    let rows = RecordBatch::try_new(ARRANGEMENTS_SCHEMA.clone(), columns)?;
    Ok(Arc::new(MemTable::try_new(ARRANGEMENTS_SCHEMA.clone(), vec![vec![rows]])?))
}
