//! EXPLAIN VIEW: the operators of a view, what is known of their rows, and the state that they keep.

use alluvium_sql::plan::{ExplainedNode, explained_nodes};

use super::explanation::{Explanation, Kind, Node};
use crate::catalog::Entry;
use crate::error::Result;

/// The operators of a view.
pub(crate) fn explain_view(entry: &Entry) -> Result<Explanation> {
    let view = entry.as_view()?;
    let there = |index| view.uses.all.contains_key(&index);
    let mut explanation = Explanation::new(Kind::View, Some(&entry.name));
    let mut tree = explanation.tree();
    for ExplainedNode { operator, known, depth, rows, .. } in explained_nodes(&view.plan, &there)? {
        tree.add(depth, Some(rows.to_string()), Node::new(operator, known));
    }
    Ok(explanation)
}
