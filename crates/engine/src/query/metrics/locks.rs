//! `alluvium.locks`: the locks that transactions hold and wait for.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray};

use super::{Relations, numbers, some_numbers};
use crate::catalog::Entry;
use crate::error::Result;
use crate::query::objects::{some_texts, texts};
use crate::transaction::KeyColumns;
use crate::worker::DataflowId;
use crate::writer::{Mode, Resource, ShownLock};

/// Those on the tables that are shown, and on tables that are gone if all are.
pub(super) fn columns(locks: Vec<ShownLock>, relations: &Relations<'_>) -> Result<Vec<ArrayRef>> {
    let entries = relations.entries.values();
    let tables: BTreeMap<DataflowId, &Arc<Entry>> =
        entries.filter_map(|entry| Some((entry.dataflow()?, entry))).collect();
    let of = |lock: &ShownLock| tables.get(&table(&lock.resource)).copied();
    let mut rows = locks;
    rows.retain(|lock| !relations.only_these || of(lock).is_some());
    let keys = rows.iter().map(|lock| of(lock).map_or(Ok(None), |it| key(it, &lock.resource)));
    let keys = keys.collect::<Result<Vec<Option<String>>>>()?;
    let mode = |mode| match mode {
        Mode::Shared => "shared",
        Mode::Exclusive => "exclusive",
    };
    let kind = |resource: &Resource| match resource {
        Resource::Table(_) => "table",
        Resource::Key(..) => "key",
        Resource::Values(..) => "unique values",
    };
    Ok(vec![
        numbers(rows.iter().map(|lock| lock.owner.transaction)),
        some_numbers(rows.iter().map(|lock| lock.owner.session)),
        some_texts(rows.iter().map(|lock| of(lock).map(|entry| entry.name.as_str()))),
        texts(rows.iter().map(|lock| kind(&lock.resource))),
        some_texts(keys),
        texts(rows.iter().map(|lock| mode(lock.mode))),
        Arc::new(BooleanArray::from_iter(rows.iter().map(|lock| Some(lock.is_granted)))),
    ])
}

fn table(resource: &Resource) -> DataflowId {
    match resource {
        Resource::Table(id) | Resource::Key(id, _) | Resource::Values(id, ..) => *id,
    }
}

/// The key that is locked, in a message.
fn key(entry: &Entry, resource: &Resource) -> Result<Option<String>> {
    let decoded = |columns: &KeyColumns, key: &[u8]| columns.decoded(&entry.schema, key).map(Some);
    match resource {
        Resource::Table(_) => Ok(None),
        Resource::Key(_, key) => match entry.key_columns()? {
            Some(columns) => decoded(columns, key),
            None => Ok(None),
        },
        Resource::Values(_, unique, values) => match entry.uniques().nth(*unique) {
            Some((_, columns)) => decoded(columns, values),
            None => Ok(None),
        },
    }
}
