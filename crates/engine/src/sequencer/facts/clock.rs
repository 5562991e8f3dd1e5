//! The relation of the clock.

use std::sync::Arc;

use alluvium_dataflow::time::waterlines::TimeColumn;
use alluvium_sql::planner::{CLOCK, CLOCK_SCHEMA};
use arrow::array::{RecordBatch, TimestampMicrosecondArray};

use super::{Applied, Effects, Persisted, SavePoint, Saving};
use crate::changes::TableChange;
use crate::clock::Moment;
use crate::durable::checkpoint::Checkpoint;
use crate::error::Result;
use crate::worker::DataflowId;

/// The clock, if it is a relation.
#[derive(Default)]
pub(in crate::sequencer) struct Clock {
    pub(in crate::sequencer) running: Option<RunningClock>,
    /// The time that it has at the checkpoint that is being restored.
    pub(in crate::sequencer) saved: Option<Moment>,
}

/// The dataflow whose one row is the time of the epoch.
pub(in crate::sequencer) struct RunningClock {
    pub(in crate::sequencer) id: DataflowId,
    /// The value of the row.
    pub(in crate::sequencer) time: Moment,
}

impl RunningClock {
    /// Moves on to `time`.
    fn advance(&mut self, time: Moment) -> Result<TableChange> {
        let before = std::mem::replace(&mut self.time, time);
        Self::row(&[(before, -1), (time, 1)])
    }

    /// Its column, whose waterline is the time of the epoch before.
    pub(in crate::sequencer) fn column() -> TimeColumn {
        TimeColumn { table: CLOCK.to_owned(), column: 0 }
    }

    /// Changes of the row by weights.
    pub(in crate::sequencer) fn row(changes: &[(Moment, i64)]) -> Result<TableChange> {
        let times = changes.iter().map(|(time, _)| *time);
        let times = TimestampMicrosecondArray::from_iter_values(times).with_timezone("+00:00");
        let rows = RecordBatch::try_new(CLOCK_SCHEMA.clone(), vec![Arc::new(times)])?;
        let weights = changes.iter().map(|(_, weight)| *weight).collect();
        TableChange::weighted(&rows, weights)
    }
}

impl Persisted for Clock {
    fn save(&self, _: &SavePoint<'_>) -> Box<dyn Saving> {
        let clock = self.running.as_ref().map(|clock| clock.time);
        Box::new(move |checkpoint: &mut Checkpoint| checkpoint.clock = clock)
    }

    fn restore(&mut self, checkpoint: &mut Checkpoint) -> Result<()> {
        self.saved = checkpoint.clock;
        Ok(())
    }

    fn apply(&mut self, commit: &Applied<'_>, effects: &mut Effects) -> Result<()> {
        if let Some(clock) = &mut self.running {
            effects.changes.push((clock.id, clock.advance(commit.time)?));
            // From the next epoch on this row goes, and later ones come and go.
            effects.raised.push((RunningClock::column(), commit.time));
        }
        Ok(())
    }
}
