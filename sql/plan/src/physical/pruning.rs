//! Pruning of state by waterlines.

use std::sync::Arc;

use alluvium_dataflow::time::waterlines::Waterlines;
use alluvium_trace::{Bound, BoundColumn, Epoch, Pruning};
use parking_lot::Mutex;

use super::render::Relations;
use crate::{LowerBound, Retention, Source};

/// The bound below which a state is pruned.
#[derive(Clone, Debug)]
pub(crate) struct PrunedBy {
    column: BoundColumn,
    bound: LowerBound,
    /// How many rows below the bound are needed of each key.
    last: usize,
}

impl PrunedBy {
    /// The pruning of rows that have the column of `retention` in this place; `None` if all are kept.
    pub(crate) fn new(retention: &Retention, column: BoundColumn) -> Option<Self> {
        match retention {
            Retention::From { bound, last, .. } => {
                Some(Self { column, bound: bound.clone(), last: *last })
            }
            Retention::All(_) => None,
        }
    }

    /// The lower bound of the column.
    pub(super) fn bound(&self) -> &LowerBound {
        &self.bound
    }

    /// The pruning on a worker, of a dataflow that was built as of `as_of`: rows from before may be anything.
    pub(super) fn on_worker(&self, relations: &dyn Relations, as_of: Epoch) -> Arc<dyn Pruning> {
        let waterlines = self.bound.terms().iter().map(|term| match &term.source {
            Source::Table => relations.waterlines().clone(),
            Source::Own => relations.own_waterlines().clone(),
            Source::View(view) => relations
                .waterlines_of(view)
                .expect("a relation cannot be dropped while a view of it is built"),
        });
        let (by, waterlines) = (self.clone(), waterlines.collect());
        Arc::new(OnWorker { by, waterlines, as_of, last: Mutex::default() })
    }
}

/// The bound below which a state of a worker is pruned.
#[derive(Debug)]
struct OnWorker {
    by: PrunedBy,
    /// Where that of each term is found.
    waterlines: Vec<Waterlines>,
    as_of: Epoch,
    /// The waterlines for which the bound was computed last, and its value.
    last: Mutex<(Vec<i64>, Option<i64>)>,
}

impl Pruning for OnWorker {
    fn column(&self) -> BoundColumn {
        self.by.column
    }

    fn bound(&self, epoch: Epoch) -> Option<Bound> {
        if epoch <= self.as_of {
            return None;
        }
        let terms = self.by.bound.terms();
        let waterlines = terms.iter().zip(&self.waterlines);
        let waterlines = waterlines.map(|(term, known)| known.at(&term.column, epoch));
        let waterlines: Vec<i64> = waterlines.collect::<Option<_>>()?;
        let mut last = self.last.lock();
        if last.0 != waterlines {
            let values = terms.iter().zip(&waterlines);
            let values = values.map(|(term, waterline)| term.value(*waterline));
            let values: Option<Vec<i64>> = values.collect();
            *last = (waterlines, values.and_then(|values| values.into_iter().min()));
        }
        Some(Bound { column: self.by.column, least: last.1?, last: self.by.last })
    }

    fn describe(&self, least: i64) -> String {
        self.by.bound.format(least)
    }
}
