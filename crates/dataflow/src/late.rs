//! Rows that can no longer change, because they are behind a waterline.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use alluvium_trace::Epoch;

use crate::layout::Layout;
use crate::waterlines::{TimeColumn, Waterlines};

/// Which rows of a keyed table are behind a waterline, and how many writes to them were dropped.
///
/// Whoever commits changes drops those whose own values are too late. The row that a write would replace or delete is known
/// only where the table keeps it.
#[derive(Clone, Debug, Default)]
pub struct Late {
    waterlines: Waterlines,
    /// Those that are not part of the key: equal keys are equally late.
    columns: Vec<TimeColumn>,
    /// The writes that were dropped.
    dropped: Arc<AtomicU64>,
}

impl Late {
    /// Of the table `table`, whose columns `columns` have waterlines.
    pub fn new(
        table: &str,
        columns: impl IntoIterator<Item = usize>,
        waterlines: &Waterlines,
        dropped: Arc<AtomicU64>,
    ) -> Self {
        let time_column = |column| TimeColumn { table: table.to_owned(), column };
        let columns = columns.into_iter().map(time_column).collect();
        Self { waterlines: waterlines.clone(), columns, dropped }
    }

    /// Whether a row that the table keeps in this layout is behind a waterline from `epoch` on.
    pub(crate) fn is_behind(&self, layout: &Layout, row: &[u8], epoch: Epoch) -> bool {
        self.columns.iter().any(|column| {
            let value = layout.integer(row, column.column);
            value.is_some_and(|value| {
                self.waterlines.at(column, epoch).is_some_and(|waterline| value < waterline)
            })
        })
    }

    /// So many writes to such rows are dropped.
    pub(crate) fn drop_writes(&self, count: usize) {
        self.dropped.fetch_add(count as u64, Ordering::Relaxed);
    }
}
