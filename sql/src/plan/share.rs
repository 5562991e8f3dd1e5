//! Sharing: state that several plans want is kept once.
//!
//! An *index* keeps the rows of a sub-plan sorted by some of their columns, in a dataflow of its own. The
//! sides of a plan's joins become indexes, and so do plain views that a plan has written out in place and
//! whose rows take state to know. Whoever builds plans finds an equal index that is there already, or
//! builds it.

use super::node::IndexScan;
use super::{IncrementalPlan, Node};

/// The rows of a sub-plan, sorted by some of their columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Index {
    /// The rows. Whatever indexes they are made of stand in it already.
    pub rows: IncrementalPlan,
    /// The columns they are sorted by, which also decide the worker a row is on.
    pub keys: Vec<usize>,
}

impl IncrementalPlan {
    /// The plan over indexes.
    ///
    /// `find` is asked for each index, those it is made of first, and gives the number it is known by. It is
    /// told, too, whether the errors in the index's rows are the plan's own: inside a view they are told
    /// where the view is built.
    pub fn share<E>(
        mut self,
        find: &mut impl FnMut(Index, bool) -> Result<u64, E>,
    ) -> Result<IncrementalPlan, E> {
        self.share_inputs(false, find)?;
        Ok(self)
    }

    fn share_inputs<E>(
        &mut self,
        in_view: bool,
        find: &mut impl FnMut(Index, bool) -> Result<u64, E>,
    ) -> Result<(), E> {
        let in_view = in_view || matches!(self.node, Node::View(_));
        for input in self.inputs_mut() {
            input.share_inputs(in_view, find)?;
        }
        for (input, keys) in self.node.as_node_mut().indexed() {
            if !input.is_stored_by(&keys) {
                input.become_index(keys, in_view, find)?;
            }
        }
        Ok(())
    }

    fn become_index<E>(
        &mut self,
        keys: Vec<usize>,
        in_view: bool,
        find: &mut impl FnMut(Index, bool) -> Result<u64, E>,
    ) -> Result<(), E> {
        if matches!(&self.node, Node::IndexScan(index) if index.keys == keys) {
            return Ok(());
        }
        let index = Index { rows: self.clone(), keys: keys.clone() };
        self.node = Node::IndexScan(IndexScan { number: find(index, !in_view)?, keys });
        Ok(())
    }
}

impl Index {
    /// The numbers of the indexes that its rows are made of.
    pub fn parts(&self) -> Vec<u64> {
        let mut parts = Vec::new();
        self.rows.collect_indexes(&mut parts);
        parts
    }
}

impl IncrementalPlan {
    fn collect_indexes(&self, numbers: &mut Vec<u64>) {
        if let Node::IndexScan(index) = &self.node {
            numbers.push(index.number);
        }
        self.inputs().into_iter().for_each(|input| input.collect_indexes(numbers));
    }
}
