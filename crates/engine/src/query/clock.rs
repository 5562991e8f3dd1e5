//! The time of the epoch, for views that are written out in a query.

use std::sync::Arc;

use alluvium_sql::planner::CLOCK_SCHEMA;
use arrow::array::{RecordBatch, TimestampMicrosecondArray};
use datafusion::datasource::{MemTable, TableProvider};

use crate::clock::Moment;
use crate::error::Result;

/// The one row of the clock.
pub(super) fn table(time: Moment) -> Result<Arc<dyn TableProvider>> {
    let time = TimestampMicrosecondArray::from_iter_values([time]).with_timezone("+00:00");
    let rows = RecordBatch::try_new(CLOCK_SCHEMA.clone(), vec![Arc::new(time)])?;
    Ok(Arc::new(MemTable::try_new(CLOCK_SCHEMA.clone(), vec![vec![rows]])?))
}
