//! Changes of a relation, epoch by epoch.
//!
//! A subscription is `SUBSCRIBE relation WITH (PROGRESS)` over a connection of its own. [`rows`] reads it, and puts the rows of an epoch
//! together: the server's progress says when there are no more of it. [`feed`] resumes after the last whole epoch when the connection is lost.

mod feed;
mod options;
mod rows;

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use arrow::array::RecordBatch;
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::SchemaRef;
use futures::Stream;
use futures::stream::{BoxStream, StreamExt, unfold};

use self::feed::Feed;
pub use self::options::SubscribeOptions;
use crate::address::Address;
use crate::error::Result;

/// The changes of one epoch.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Change {
    /// The epoch.
    pub epoch: u64,
    /// The rows that change, each once.
    pub rows: RecordBatch,
    /// By how much each row changes: a positive weight adds copies of the row, a negative one takes copies away; never zero.
    pub weights: ScalarBuffer<i64>,
    /// Whether these are all rows as of the end of the epoch, which replace what the subscriber has.
    pub is_snapshot: bool,
}

/// The changes of a relation: first a [snapshot](Change::is_snapshot), which may have no rows, then one [`Change`] for every epoch that
/// changes it, in order, whole and once, also if the connection is lost meanwhile. It ends when the relation is dropped. An
/// error is the last item.
///
/// Dropped, it ends its connection.
pub struct Subscription {
    changes: BoxStream<'static, Result<Change>>,
    schema: SchemaRef,
}

impl Subscription {
    /// Subscribes to the changes of a relation of a server, as [`Client::subscribe`](crate::Client::subscribe) does.
    ///
    /// # Errors
    ///
    /// As there.
    pub async fn connect(
        address: &Address,
        relation: &str,
        options: SubscribeOptions,
    ) -> Result<Self> {
        let feed = Feed::begin(address.clone(), relation.to_owned(), options).await?;
        let schema = feed.schema().clone();
        let changes = unfold(Some(feed), async |feed| {
            let mut feed = feed?;
            match feed.next().await {
                Ok(Some(change)) => Some((Ok(change), Some(feed))),
                Ok(None) => None,
                Err(error) => Some((Err(error), None)),
            }
        });
        // Nothing comes after the end, however often one asks.
        Ok(Self { changes: changes.fuse().boxed(), schema })
    }

    /// The columns of the relation.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }
}

impl Stream for Subscription {
    type Item = Result<Change>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.changes.poll_next_unpin(context)
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Subscription").field("schema", &self.schema).finish_non_exhaustive()
    }
}
