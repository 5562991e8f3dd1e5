//! The beginning of a subscription: all rows of a relation, or its changes since an epoch.

use alluvium_dataflow::movement::changes::Changes;
use alluvium_dataflow::movement::sink::by_epoch;
use alluvium_trace::Epoch;
use arrow::array::RecordBatch;
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::SchemaRef;

use super::feed::Feed;
use super::{Change, PinnedRows};
use crate::changes::TableChange;
use crate::error::Result;

/// All rows of a relation.
pub(super) fn snapshot((epoch, parts): &PinnedRows, schema: &SchemaRef) -> Result<Change> {
    let parts = Changes::of_all(parts, *epoch).into_iter().flatten();
    let parts: Vec<_> = parts.map(|delta| weighted(delta.rows, delta.weights)).collect();
    Change::snapshot(*epoch, &parts, schema)
}

/// Puts the changes of a relation after the epoch `after` into a feed, which ends with them.
pub(crate) fn resume(feed: &Feed, (epoch, parts): &PinnedRows, after: Epoch) -> Result<()> {
    for delta in Changes::between(parts, after, *epoch).into_iter().flatten() {
        for (epoch, delta) in by_epoch(delta) {
            let (rows, weights) = weighted(delta.rows, delta.weights);
            feed.put(epoch, TableChange::weighted(&rows, weights)?)?;
        }
    }
    feed.finish();
    Ok(())
}

fn weighted(
    rows: RecordBatch,
    weights: Option<ScalarBuffer<i64>>,
) -> (RecordBatch, ScalarBuffer<i64>) {
    let weights = weights.unwrap_or_else(|| vec![1; rows.num_rows()].into());
    (rows, weights)
}
