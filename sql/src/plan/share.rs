//! Sharing: state that several plans want is kept once.
//!
//! An *index* keeps the rows of a sub-plan sorted by some of their columns, in a dataflow of its own. The
//! sides of a plan's joins become indexes, and so do plain views that a plan has written out in place and
//! whose rows take state to know. Whoever builds plans finds an equal index that is there already, or
//! builds it.

use super::{IncrementalPlan, Node};
use crate::lower::check_keys;

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
        let in_view = in_view || matches!(self.node, Node::View { .. });
        for input in self.inputs_mut() {
            input.share_inputs(in_view, find)?;
        }
        // What is broadcast over the workers is not sorted by anything.
        let broadcast = self.broadcast().is_some();
        match &mut self.node {
            Node::Join { .. } | Node::OuterJoin { .. } if broadcast => Ok(()),
            Node::Join { left, right, on } | Node::OuterJoin { left, right, on, .. } => {
                if !order_as_kept(on, left, |pair| pair.0) {
                    order_as_kept(on, right, |pair| pair.1);
                }
                let (left_keys, right_keys): (Vec<usize>, Vec<usize>) = on.iter().copied().unzip();
                for (side, keys) in [(left, left_keys), (right, right_keys)] {
                    if !side.is_kept_by(&keys) {
                        side.become_index(keys, in_view, find)?;
                    }
                }
                Ok(())
            }
            Node::View { input, .. } if input.has_state() => {
                let all = (0..input.schema.fields().len()).collect();
                let keys = input.unique.first().cloned().unwrap_or(all);
                match check_keys(&input.schema, &keys) {
                    Ok(()) => input.become_index(keys, in_view, find),
                    // What has no order is not sorted.
                    Err(_) => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    fn become_index<E>(
        &mut self,
        keys: Vec<usize>,
        in_view: bool,
        find: &mut impl FnMut(Index, bool) -> Result<u64, E>,
    ) -> Result<(), E> {
        if matches!(&self.node, Node::Index { keys: kept, .. } if *kept == keys) {
            return Ok(());
        }
        let index = Index { rows: self.clone(), keys: keys.clone() };
        self.node = Node::Index { number: find(index, !in_view)?, keys };
        Ok(())
    }

    /// Whether what is scanned is sorted by `keys` where it is kept; the clock's one row is sorted by nothing.
    pub(crate) fn is_kept_by(&self, keys: &[usize]) -> bool {
        matches!(self.node, Node::Scan { .. })
            && matches!(&self.unique[..], [key] if key == keys && !key.is_empty())
    }

    /// Whether it takes state, beyond what is kept elsewhere, to know the rows.
    fn has_state(&self) -> bool {
        match &self.node {
            Node::Scan { .. }
            | Node::Stream { .. }
            | Node::Constant { .. }
            | Node::Index { .. } => false,
            Node::Map { input, .. } | Node::Unnest { input, .. } | Node::View { input, .. } => {
                input.has_state()
            }
            Node::Union { inputs } => inputs.iter().any(IncrementalPlan::has_state),
            // Both sides are kept elsewhere.
            Node::Join { .. } => false,
            Node::OuterJoin { residual, .. } => residual.is_some(),
            Node::Aggregate { .. }
            | Node::Distinct { .. }
            | Node::SetOperation { .. }
            | Node::Top { .. }
            | Node::Window { .. } => true,
        }
    }
}

/// Puts the pairs `on` into the order in which a table that is scanned by its primary key keeps its rows;
/// whether `side` is such a scan. The order of the pairs means nothing to a join.
fn order_as_kept(
    on: &mut Vec<(usize, usize)>,
    side: &IncrementalPlan,
    column: impl Fn(&(usize, usize)) -> usize,
) -> bool {
    let (Node::Scan { .. }, [key]) = (&side.node, &side.unique[..]) else { return false };
    let ordered: Option<Vec<_>> =
        key.iter().map(|kept| on.iter().find(|pair| column(pair) == *kept).copied()).collect();
    match ordered {
        Some(ordered) if ordered.len() == on.len() => {
            *on = ordered;
            true
        }
        _ => false,
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
        if let Node::Index { number, .. } = &self.node {
            numbers.push(*number);
        }
        self.inputs().into_iter().for_each(|input| input.collect_indexes(numbers));
    }
}
