//! The changes of a relation, as rows that have no end.

use std::sync::Arc;

use alluvium::{Change, Error, Subscription};
use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use futures::StreamExt;
use tokio::io::{AsyncRead, AsyncWrite};

use super::completion::complete;
use super::connection::Connection;
use super::failure::{Ended, Failure};
use super::results::description;
use super::types::{Format, RowEncoder};
use super::wire::Broken;

/// The columns before those of the relation: the epoch of a change, and by how many copies of the row it changes the relation.
const EPOCH: &str = "epoch";
const WEIGHT: &str = "weight";

/// The columns of the changes of a relation.
pub(super) fn schema_of_changes(relation: &Schema) -> SchemaRef {
    let before = [EPOCH, WEIGHT].map(|name| Arc::new(Field::new(name, DataType::Int64, false)));
    let fields = before.into_iter().chain(relation.fields().iter().cloned());
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// A change as rows of these columns.
fn rows_of(change: &Change, schema: &SchemaRef) -> Result<RecordBatch, Error> {
    let epoch = i64::try_from(change.epoch).unwrap_or(i64::MAX);
    let epochs: ArrayRef = Arc::new(Int64Array::from_value(epoch, change.rows.num_rows()));
    let weights: ArrayRef = Arc::new(Int64Array::new(change.weights.clone(), None));
    let columns = [epochs, weights].into_iter().chain(change.rows.columns().iter().cloned());
    Ok(RecordBatch::try_new(schema.clone(), columns.collect())?)
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Sends the rows of a relation and then its changes, until the client cancels or goes, or the relation is dropped. The columns are
    /// described before if the client has not asked for that.
    pub(super) async fn follow(
        &mut self,
        mut subscription: Subscription,
        formats: Vec<Format>,
        is_described: bool,
    ) -> Result<(), Ended> {
        let schema = schema_of_changes(subscription.schema());
        let mut encoder = RowEncoder::new(&schema, &formats).map_err(Failure::from)?;
        if is_described {
            self.wire.put(description(&schema, &formats))?;
        }
        // The client learns that it has begun, even if there is no row.
        self.wire.flush().await?;
        let cancel = self.client.cancel().clone();
        let mut sent = 0;
        // The first rows may be many: they are read on a thread of the pool.
        let (first, rest) = self.call(move |_| (subscription.try_next(), subscription)).await?;
        subscription = rest;
        let mut next = first?;
        loop {
            if let Some(change) = next.take() {
                let rows = rows_of(&change, &schema)?;
                sent += rows.num_rows() as u64;
                encoder
                    .encode(&rows, 0..rows.num_rows(), self.wire.output())
                    .map_err(Failure::from)?;
                self.wire.flush().await?;
            }
            next = tokio::select! {
                change = StreamExt::next(&mut subscription) => match change.transpose()? {
                    Some(change) => Some(change),
                    None => break,
                },
                () = cancel.requested() => return Err(Error::Interrupted.into()),
                () = self.wire.gone() => return Err(Broken::gone().into()),
            };
        }
        self.wire.put(complete("SUBSCRIBE", Some(sent)))?;
        Ok(())
    }
}
