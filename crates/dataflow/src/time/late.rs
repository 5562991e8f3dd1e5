//! Rows that can no longer change, because they are below a waterline.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use alluvium_trace::{Bound, BoundColumn, Epoch};

use crate::fault::{self, Fault};
use crate::rows::layout::Layout;
use crate::time::waterlines::{TimeColumn, Waterlines};

/// The columns of a table that have waterlines, and how many writes to rows below these were dropped.
///
/// Commits drop changes whose own values are too late. The row that a write would replace or delete is known
/// only where the table keeps it.
#[derive(Clone, Debug, Default)]
pub struct Late {
    waterlines: Waterlines,
    columns: Vec<TimeColumn>,
    dropped: Arc<AtomicU64>,
}

impl Late {
    /// Of the table `table`, whose columns `columns` have waterlines. `dropped` counts the writes.
    pub fn new(
        table: &str,
        columns: &[usize],
        waterlines: &Waterlines,
        dropped: Arc<AtomicU64>,
    ) -> Self {
        let time_column = |column: &usize| TimeColumn { table: table.to_owned(), column: *column };
        let columns = columns.iter().map(time_column).collect();
        Self { waterlines: waterlines.clone(), columns, dropped }
    }

    /// The same for rows that are kept in this layout.
    pub(crate) fn rows(self, layout: &Layout) -> LateRows {
        let Self { waterlines, columns, dropped } = self;
        let place = |column: TimeColumn| match layout.bound_column(column.column)? {
            // Who knows the key knows how late it is.
            BoundColumn::Key { .. } | BoundColumn::Order { .. } => None,
            place @ BoundColumn::Value { .. } => Some((column, place)),
        };
        let columns = columns.into_iter().filter_map(place).collect();
        LateRows { waterlines, columns, dropped }
    }
}

/// The rows of a table with a primary key that are below a waterline.
pub(crate) struct LateRows {
    waterlines: Waterlines,
    columns: Vec<(TimeColumn, BoundColumn)>,
    dropped: Arc<AtomicU64>,
}

impl LateRows {
    /// Whether a row with this value is below a waterline from `epoch` on.
    pub(crate) fn contain(&self, value: &[u8], epoch: Epoch) -> bool {
        if fault::armed(Fault::ReplaceLateRows) {
            return false;
        }
        self.columns.iter().any(|(column, place)| {
            let waterline = self.waterlines.at(column, epoch);
            waterline.is_some_and(|least| Bound::new(*place, least).forgets(&[], value))
        })
    }

    /// So many writes to such rows are dropped.
    pub(crate) fn drop_writes(&self, count: usize) {
        self.dropped.fetch_add(count as u64, Ordering::Relaxed);
    }
}
