//! Which dataflows read which.
//!
//! A commit advances the tables it changes and the dataflows that read them, directly or through others: it *reaches*
//! these. All other dataflows stay where they are, and do not run. One that was not advanced
//! has no changes in flight: its contents as of any later epoch are those as of its last one, and a dataflow that reads it
//! need not wait for it ([`alluvium_dataflow::movement::import`]).

use std::collections::{BTreeMap, BTreeSet};

use alluvium_trace::Epoch;

use super::command::DataflowId;

/// The dataflows of a worker, with their inputs and how far they have advanced.
#[derive(Default)]
pub(super) struct Readers {
    dataflows: BTreeMap<DataflowId, Dataflow>,
}

struct Dataflow {
    reads: Vec<DataflowId>,
    read_by: BTreeSet<DataflowId>,
    /// All epochs before this one have been sent to it.
    advanced: Epoch,
}

impl Readers {
    /// Adds a dataflow that reads others, advanced to `advanced`.
    pub(super) fn insert(&mut self, id: DataflowId, reads: Vec<DataflowId>, advanced: Epoch) {
        for read in &reads {
            if let Some(read) = self.dataflows.get_mut(read) {
                read.read_by.insert(id);
            }
        }
        self.dataflows.insert(id, Dataflow { reads, read_by: BTreeSet::new(), advanced });
    }

    /// Removes a dataflow.
    pub(super) fn remove(&mut self, id: DataflowId) {
        let Some(removed) = self.dataflows.remove(&id) else { return };
        for read in removed.reads {
            if let Some(read) = self.dataflows.get_mut(&read) {
                read.read_by.remove(&id);
            }
        }
    }

    /// How far a dataflow has advanced: all epochs before this one have been sent to it.
    pub(super) fn advanced(&self, id: DataflowId) -> Option<Epoch> {
        self.dataflows.get(&id).map(|dataflow| dataflow.advanced)
    }

    /// The dataflows that read this one themselves.
    pub(super) fn of(&self, id: DataflowId) -> impl Iterator<Item = DataflowId> {
        self.dataflows.get(&id).into_iter().flat_map(|dataflow| dataflow.read_by.iter().copied())
    }

    /// The dataflows that read this one, themselves or through others.
    pub(super) fn all_of(&self, id: DataflowId) -> BTreeSet<DataflowId> {
        let mut found = BTreeSet::new();
        let mut next = vec![id];
        while let Some(id) = next.pop() {
            next.extend(self.of(id).filter(|reader| found.insert(*reader)));
        }
        found
    }

    /// Advances the dataflows that changes of `changed` reach. Returns them, each once.
    pub(super) fn advance(&mut self, changed: &[DataflowId], to: Epoch) -> Vec<DataflowId> {
        let mut reached = Vec::with_capacity(changed.len());
        let mut next = changed.to_vec();
        while let Some(id) = next.pop() {
            let Some(dataflow) = self.dataflows.get_mut(&id) else { continue };
            if dataflow.advanced < to {
                dataflow.advanced = to;
                next.extend(&dataflow.read_by);
                reached.push(id);
            }
        }
        reached
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advance(readers: &mut Readers, id: u64, to: Epoch) -> Vec<u64> {
        let mut reached: Vec<u64> =
            readers.advance(&[DataflowId(id)], to).iter().map(|id| id.0).collect();
        reached.sort_unstable();
        reached
    }

    #[test]
    fn changes_reach_what_reads_them() {
        let mut readers = Readers::default();
        let mut insert = |id: u64, reads: &[u64]| {
            readers.insert(DataflowId(id), reads.iter().map(|id| DataflowId(*id)).collect(), 1);
        };
        // Three tables, a view of each of the first two, one of both, and one of a view.
        insert(0, &[]);
        insert(1, &[]);
        insert(2, &[]);
        insert(3, &[0]);
        insert(4, &[1]);
        insert(5, &[0, 1]);
        insert(6, &[4]);
        assert_eq!(advance(&mut readers, 1, 2), [1, 4, 5, 6]);
        assert_eq!(advance(&mut readers, 1, 2), [0; 0], "they are there already");
        assert_eq!(readers.advanced(DataflowId(6)), Some(2));
        assert_eq!(readers.advanced(DataflowId(0)), Some(1));
        let all: Vec<u64> = readers.all_of(DataflowId(1)).iter().map(|id| id.0).collect();
        assert_eq!(all, [4, 5, 6]);
        assert_eq!(readers.of(DataflowId(1)).collect::<Vec<_>>(), [DataflowId(4), DataflowId(5)]);
        readers.remove(DataflowId(5));
        assert_eq!(advance(&mut readers, 0, 3), [0, 3]);
        assert_eq!(advance(&mut readers, 1, 4), [1, 4, 6]);
        assert_eq!(advance(&mut readers, 2, 4), [2]);
    }
}
