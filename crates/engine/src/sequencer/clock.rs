//! The relation of the clock.

use std::sync::Arc;

use alluvium_dataflow::waterlines::TimeColumn;
use alluvium_sql::planner::{CLOCK, CLOCK_SCHEMA};
use arrow::array::{RecordBatch, TimestampMicrosecondArray};

use crate::clock::Moment;
use crate::error::Result;
use crate::transaction::change::TableChange;
use crate::worker::DataflowId;

/// The dataflow whose one row is the time of the epoch.
pub(super) struct RunningClock {
    pub(super) id: DataflowId,
    /// The value of the row.
    pub(super) time: Moment,
}

impl RunningClock {
    /// Moves on to `time`.
    pub(super) fn advance(&mut self, time: Moment) -> Result<TableChange> {
        let before = std::mem::replace(&mut self.time, time);
        Self::row(&[(before, -1), (time, 1)])
    }

    /// Its column, whose waterline is the time of the epoch before.
    pub(super) fn column() -> TimeColumn {
        TimeColumn { table: CLOCK.to_owned(), column: 0 }
    }

    /// Changes of the row by weights.
    pub(super) fn row(changes: &[(Moment, i64)]) -> Result<TableChange> {
        let times = changes.iter().map(|(time, _)| *time);
        let times = TimestampMicrosecondArray::from_iter_values(times).with_timezone("+00:00");
        let rows = RecordBatch::try_new(CLOCK_SCHEMA.clone(), vec![Arc::new(times)])?;
        let weights = changes.iter().map(|(_, weight)| *weight).collect();
        TableChange::weighted(&rows, weights)
    }
}
