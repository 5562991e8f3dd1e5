//! What a transaction has read, to find out whether that still holds when it commits.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium_dataflow::key_ranges::KeyRanges;
use parking_lot::Mutex;

use crate::worker::DataflowId;

/// What was read of each relation.
#[derive(Debug, Default)]
pub(crate) struct Reads(Mutex<BTreeMap<DataflowId, Read>>);

/// What was read of a relation.
#[derive(Clone, Debug)]
pub(super) struct Read {
    pub(super) name: Arc<str>,
    pub(super) rows: ReadRows,
}

/// Which rows were read.
#[derive(Clone, Debug)]
pub(super) enum ReadRows {
    All,
    /// Those with keys in any of these ranges.
    Within(Vec<KeyRanges>),
}

/// Notes what is read of one relation.
#[derive(Clone, Debug)]
pub(crate) struct Noted {
    reads: Arc<Reads>,
    id: DataflowId,
    name: Arc<str>,
}

impl Noted {
    /// Of this relation.
    pub(super) fn new(reads: &Arc<Reads>, id: DataflowId, name: &str) -> Self {
        Self { reads: reads.clone(), id, name: name.into() }
    }

    /// Notes that the rows with keys in these ranges are read; all without.
    pub(crate) fn add(&self, ranges: Option<&KeyRanges>) {
        self.reads.add(self.id, &self.name, ranges);
    }
}

impl Reads {
    /// Notes that rows of a relation are read: those with keys in these ranges; all without.
    pub(super) fn add(&self, id: DataflowId, name: &Arc<str>, ranges: Option<&KeyRanges>) {
        let mut reads = self.0.lock();
        let read = reads
            .entry(id)
            .or_insert_with(|| Read { name: name.clone(), rows: ReadRows::Within(Vec::new()) });
        match (&mut read.rows, ranges) {
            (ReadRows::All, _) => {}
            (ReadRows::Within(all), Some(ranges)) => all.push(ranges.clone()),
            (rows, None) => *rows = ReadRows::All,
        }
    }

    /// All of them.
    pub(super) fn all(&self) -> Vec<(DataflowId, Read)> {
        self.0.lock().iter().map(|(id, read)| (*id, read.clone())).collect()
    }
}
