//! Access paths: the orders in which a relation's rows are kept, and the choice of one.
//!
//! Rows are sorted by the relation's key, if it has one, and in each of its indexes by the columns of that. A scan reads one
//! of them: that of which its filters leave the least, as far as the fences of the batches tell.

use std::cmp::Reverse;
use std::sync::Arc;

use alluvium_dataflow::rows::layout::Layout;
use alluvium_dataflow::state::snapshot::Snapshot;
use datafusion::error::Result;
use datafusion::logical_expr::Expr;

use super::seek::Seek;

/// Paths whose numbers of rows differ by less than this are as good as each other: fences tell pages apart, not rows.
const NEAR: usize = 1 << 10;

/// All rows of a relation, sorted by some of their columns, or by none.
#[derive(Clone)]
pub(super) struct AccessPath {
    /// The index that keeps them; `None` if the relation itself does.
    pub(super) index: Option<Arc<str>>,
    /// One per worker.
    pub(super) snapshots: Arc<[Snapshot]>,
}

impl AccessPath {
    /// How the rows lie; `None` if there is no worker.
    pub(super) fn layout(&self) -> Option<&Layout> {
        self.snapshots.first().map(Snapshot::layout)
    }

    /// The columns that the rows are sorted by.
    pub(super) fn key(&self) -> &[usize] {
        self.layout().map_or(&[], Layout::sorted_by)
    }

    /// About how many rows a seek finds.
    fn rows(&self, seek: &Seek) -> usize {
        let rows = self.snapshots.iter().map(|part| part.updates_in(&seek.ranges)).sum();
        // The key of a relation is unique.
        match self.index.is_none() && seek.equal == self.key().len() {
            true => seek.ranges.len().min(rows),
            false => rows,
        }
    }
}

/// Which of some paths filters leave the least of, and what that is; `None` if they leave all of each. Of paths that are as
/// good as each other it is the one of which they restrict the most columns by equality, and then the first.
pub(super) fn choose(paths: &[AccessPath], filters: &[Expr]) -> Result<Option<(usize, Seek)>> {
    let mut found = Vec::new();
    for (number, path) in paths.iter().enumerate() {
        if let Some(layout) = path.layout()
            && let Some(seek) = Seek::new(filters, layout)?
        {
            found.push((number, seek));
        }
    }
    if let [_] = &found[..] {
        return Ok(found.pop());
    }
    let rows: Vec<usize> = found.iter().map(|(number, seek)| paths[*number].rows(seek)).collect();
    let Some(least) = rows.iter().min() else { return Ok(None) };
    let most = least.saturating_add(NEAR.max(*least));
    let near = found.into_iter().zip(rows).filter(|(_, rows)| *rows <= most);
    let best = near.min_by_key(|((number, seek), _)| {
        (Reverse(seek.equal), Reverse(seek.conditions.len()), *number)
    });
    Ok(best.map(|(found, _)| found))
}
