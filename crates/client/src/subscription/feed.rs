//! Changes over one connection after the other.

use std::time::Duration;

use arrow::datatypes::SchemaRef;
use tokio::time::{Instant, sleep};

use super::rows::ChangeRows;
use super::{Change, SubscribeOptions};
use crate::address::Address;
use crate::connection::Connection;
use crate::error::Result;

/// The time between the first two attempts to connect again; it doubles up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The changes of a relation, and where they are resumed.
pub(super) struct Feed {
    address: Address,
    relation: String,
    options: SubscribeOptions,
    /// The last epoch that was whole, if one was yet.
    seen: Option<u64>,
    schema: SchemaRef,
    /// What comes over the connection; `None` once that is lost.
    rows: Option<ChangeRows>,
}

impl Feed {
    /// Connects, and begins.
    pub(super) async fn begin(
        address: Address,
        relation: String,
        options: SubscribeOptions,
    ) -> Result<Self> {
        let rows = open(&address, &relation, options.as_of, options.has_snapshot).await?;
        let schema = rows.schema();
        Ok(Self { address, relation, options, seen: None, schema, rows: Some(rows) })
    }

    /// The columns of the relation.
    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The next change; `None` once the relation is dropped.
    pub(super) async fn next(&mut self) -> Result<Option<Change>> {
        loop {
            let rows = match self.rows.take() {
                Some(rows) => rows,
                None => self.reopen().await?,
            };
            let rows = self.rows.insert(rows);
            match rows.next().await {
                Ok(Some(change)) => {
                    self.seen = rows.whole();
                    let is_empty = change.rows.num_rows() == 0;
                    if !is_empty || change.is_snapshot || self.options.has_progress {
                        return Ok(Some(change));
                    }
                }
                Err(error) if error.is_lost() && !self.options.patience.is_zero() => {
                    self.rows = None;
                }
                ended => return ended,
            }
        }
    }

    /// Connects again, until it succeeds or takes too long.
    async fn reopen(&self) -> Result<ChangeRows> {
        let until = Instant::now() + self.options.patience;
        let (as_of, has_snapshot) = match self.seen {
            Some(seen) => (Some(seen), false),
            None => (self.options.as_of, self.options.has_snapshot),
        };
        let mut pause = FIRST_PAUSE;
        loop {
            match open(&self.address, &self.relation, as_of, has_snapshot).await {
                Err(error) if error.is_lost() && Instant::now() + pause < until => {
                    sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                opened => return opened,
            }
        }
    }
}

/// Subscribes over a new connection.
async fn open(
    address: &Address,
    relation: &str,
    as_of: Option<u64>,
    has_snapshot: bool,
) -> Result<ChangeRows> {
    let connection = Connection::open(address).await?;
    let as_of = as_of.map(|epoch| format!(" AS OF {epoch}")).unwrap_or_default();
    let sql =
        format!("SUBSCRIBE {relation} WITH (SNAPSHOT = {has_snapshot}, PROGRESS = true){as_of}");
    ChangeRows::begin(connection, &sql, has_snapshot).await
}
