//! Sharing: state that several plans need is kept once.
//!
//! An *index* keeps the rows of a sub-plan sorted by some of their columns, in a dataflow of its own. Sharing turns
//! the sides of a plan's joins into indexes, and so it does with plain views that the plan has expanded in place and
//! that take state. Rows of which a dataflow decides itself whether they come in time are not shared. It only lists the indexes: the engine installs those that are missing, which it finds by their
//! fingerprints.

use std::collections::HashMap;
use std::sync::Arc;

use super::fingerprint::Canonical;
use super::node::IndexScan;
use super::{Fingerprint, IncrementalPlan, Node};

/// The rows of a sub-plan, sorted by some of their columns.
#[derive(Debug)]
pub struct Index {
    /// The rows, over the indexes that they are made of.
    pub rows: IncrementalPlan,
    /// The columns they are sorted by, which also decide the worker a row is on.
    pub keys: Vec<usize>,
}

impl Index {
    /// Identifies the index: equal rows under equal keys.
    pub fn fingerprint(&self) -> Fingerprint {
        let mut canonical = Canonical::new("index");
        canonical.fingerprint(self.rows.fingerprint());
        canonical.columns(&self.keys);
        canonical.finish()
    }

    /// The indexes that its rows are made of, each once.
    pub fn parts(&self) -> Vec<Fingerprint> {
        let mut parts = Vec::new();
        self.rows.collect_indexes(&mut parts);
        parts.sort_unstable();
        parts.dedup();
        parts
    }
}

/// A plan over indexes.
#[derive(Clone, Debug)]
pub struct Shared {
    /// The plan.
    pub plan: IncrementalPlan,
    /// The indexes it reads, each once, and before those that are made of it.
    pub indexes: Vec<SharedIndex>,
}

/// An index that a plan reads.
#[derive(Clone, Debug)]
pub struct SharedIndex {
    /// Its fingerprint.
    pub fingerprint: Fingerprint,
    /// What it holds.
    pub index: Arc<Index>,
    /// Whether the plan reports the errors of its rows. Those inside a view are reported by the view.
    pub reported: bool,
}

impl IncrementalPlan {
    /// The plan over indexes, and the indexes it needs.
    pub fn share(mut self) -> Shared {
        let mut sharing = Sharing::default();
        sharing.share(&mut self, false);
        Shared { plan: self, indexes: sharing.indexes }
    }

    fn collect_indexes(&self, found: &mut Vec<Fingerprint>) {
        found.extend(self.node.as_node().index().map(|index| index.fingerprint()));
        self.inputs().into_iter().for_each(|input| input.collect_indexes(found));
    }
}

/// The indexes that have been found so far.
#[derive(Default)]
struct Sharing {
    indexes: Vec<SharedIndex>,
    /// The place of each among them.
    places: HashMap<Fingerprint, usize>,
}

impl Sharing {
    fn share(&mut self, plan: &mut IncrementalPlan, in_view: bool) {
        let in_view = in_view || matches!(plan.node, Node::View(_));
        for input in plan.inputs_mut() {
            self.share(input, in_view);
        }
        for (input, keys) in plan.node.as_node_mut().indexed() {
            let is_index = input.node.as_node().index().is_some_and(|index| index.keys == keys);
            let is_of_one_dataflow = input.has_own_waterlines() || input.recurs();
            if !is_index && !input.is_stored_by(&keys) && !is_of_one_dataflow {
                let index = self.find(Index { rows: input.clone(), keys }, !in_view);
                input.node = Node::IndexScan(IndexScan { index });
            }
        }
    }

    /// The index equal to this one, which is added if there is none.
    fn find(&mut self, index: Index, reported: bool) -> Arc<Index> {
        let fingerprint = index.fingerprint();
        let place = *self.places.entry(fingerprint).or_insert_with(|| {
            self.indexes.push(SharedIndex { fingerprint, index: Arc::new(index), reported: false });
            self.indexes.len() - 1
        });
        let found = &mut self.indexes[place];
        found.reported |= reported;
        found.index.clone()
    }
}
