//! The reads of a transaction, to find out whether these still hold when it commits.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium_dataflow::state::key_ranges::KeyRanges;
use parking_lot::Mutex;

use crate::worker::DataflowId;

/// Beyond so many ranges of a relation a transaction counts as one that has read all of it.
const MOST_RANGES: usize = 10_000;

/// The reads of each relation.
#[derive(Debug, Default)]
pub(crate) struct Reads(Mutex<BTreeMap<DataflowId, Read>>);

/// The reads of a relation.
#[derive(Clone, Debug)]
pub(super) struct Read {
    pub(super) name: Arc<str>,
    /// Whether all rows were.
    pub(super) is_all: bool,
    /// The keys of the others.
    pub(super) ranges: Vec<KeyRanges>,
    /// The values in the columns of UNIQUE constraints, by the numbers of these, of which it was read whether rows have them.
    pub(super) values: Vec<(usize, KeyRanges)>,
}

/// The reads by some moment: of each relation whether all rows, and else how many ranges of keys and of values.
pub(crate) struct ReadBefore(BTreeMap<DataflowId, (bool, usize, usize)>);

/// Notes the reads of one relation.
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

    /// Notes that it is read whether rows have values within ranges in the columns of a UNIQUE constraint.
    pub(super) fn add_values(&self, unique: usize, ranges: &KeyRanges) {
        self.reads.add_values(self.id, &self.name, unique, ranges);
    }
}

impl Read {
    fn new(name: &Arc<str>) -> Self {
        let (is_all, ranges, values) = Default::default();
        Self { name: name.clone(), is_all, ranges, values }
    }
}

impl Reads {
    /// Notes that rows of a relation are read: those with keys in these ranges; all without.
    pub(super) fn add(&self, id: DataflowId, name: &Arc<str>, ranges: Option<&KeyRanges>) {
        let mut reads = self.0.lock();
        let read = reads.entry(id).or_insert_with(|| Read::new(name));
        match ranges {
            Some(ranges) if !read.is_all && read.ranges.len() < MOST_RANGES => {
                read.ranges.push(ranges.clone());
            }
            _ => read.is_all = true,
        }
    }

    fn add_values(&self, id: DataflowId, name: &Arc<str>, unique: usize, ranges: &KeyRanges) {
        let mut reads = self.0.lock();
        let read = reads.entry(id).or_insert_with(|| Read::new(name));
        match !read.is_all && read.values.len() < MOST_RANGES {
            true => read.values.push((unique, ranges.clone())),
            false => read.is_all = true,
        }
    }

    /// The reads so far.
    pub(super) fn mark(&self) -> ReadBefore {
        let reads = self.0.lock();
        ReadBefore(
            reads
                .iter()
                .map(|(id, read)| (*id, (read.is_all, read.ranges.len(), read.values.len())))
                .collect(),
        )
    }

    /// Forgets the reads since.
    pub(super) fn return_to(&self, before: &ReadBefore) {
        self.0.lock().retain(|id, read| match before.0.get(id) {
            Some((is_all, ranges, values)) => {
                read.is_all = *is_all;
                read.ranges.truncate(*ranges);
                read.values.truncate(*values);
                true
            }
            None => false,
        });
    }

    /// All of them.
    pub(super) fn all(&self) -> Vec<(DataflowId, Read)> {
        self.0.lock().iter().map(|(id, read)| (*id, read.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_return_to_what_they_were_and_are_no_more_than_so_many() {
        let reads = Arc::new(Reads::default());
        let noted = |id| Noted::new(&reads, DataflowId(id), "t");
        let ranges = KeyRanges::of_keys([&b"key"[..]]);
        noted(1).add(Some(&ranges));
        let mark = reads.mark();
        (0..MOST_RANGES).for_each(|_| noted(1).add(Some(&ranges)));
        noted(2).add(None);
        let shapes = || -> Vec<(bool, usize)> {
            reads.all().iter().map(|(_, read)| (read.is_all, read.ranges.len())).collect()
        };
        assert_eq!(shapes(), [(true, MOST_RANGES), (true, 0)]);
        reads.return_to(&mark);
        assert_eq!(shapes(), [(false, 1)]);
    }
}
