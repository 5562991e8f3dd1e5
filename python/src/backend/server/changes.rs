//! Changes of a server's relations.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use alluvium::Change;
use alluvium::arrow::datatypes::SchemaRef;
use alluvium::name::written;
use alluvium_client::{Error, SubscribeOptions, Subscription};
use futures::{Stream, TryStreamExt};
use tokio::time::timeout;

use super::pool::Server;
use super::refused::failure;
use crate::backend::Changes;
use crate::failure::Fallible;

/// The changes of a relation, over a connection that is made again if it is lost.
pub(super) struct RemoteChanges {
    server: Server,
    changes: Subscription,
    schema: SchemaRef,
    /// The epoch up to which everything has come.
    passed: Option<u64>,
    is_over: bool,
}

impl RemoteChanges {
    /// Subscribes to a relation.
    pub(super) fn begin(
        server: &Server,
        relation: &str,
        options: SubscribeOptions,
    ) -> Fallible<Self> {
        let relation = written(relation);
        let changes = server.wait(Subscription::connect(server.address(), &relation, options))?;
        let schema = changes.schema().clone();
        Ok(Self { server: server.clone(), changes, schema, passed: None, is_over: false })
    }

    /// What has come: a change, or nothing that is to be told.
    fn take(&mut self, next: Option<alluvium_client::Change>) -> Option<Change> {
        let Some(change) = next else {
            self.is_over = true;
            return None;
        };
        self.passed = self.passed.max(Some(change.epoch));
        if change.rows.num_rows() == 0 && !change.is_snapshot {
            return None;
        }
        let mut taken = Change::new(change.epoch, change.rows, change.weights);
        taken.is_snapshot = change.is_snapshot;
        Some(taken)
    }

    /// The next change that is to be told.
    async fn following(&mut self) -> Result<Option<Change>, Error> {
        loop {
            let next = self.changes.try_next().await;
            self.is_over |= next.is_err();
            let change = self.take(next?);
            if change.is_some() || self.is_over {
                return Ok(change);
            }
        }
    }
}

impl Changes for RemoteChanges {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn next(&mut self) -> Fallible<Option<Change>> {
        let server = self.server.clone();
        Ok(server.wait(self.following())?)
    }

    fn next_within(&mut self, time: Duration) -> Fallible<Option<Change>> {
        let server = self.server.clone();
        // Whether it comes in time or not, what has come is not lost.
        Ok(server.wait(async { timeout(time, self.following()).await.unwrap_or(Ok(None)) })?)
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Fallible<Option<Change>>> {
        // It connects again inside of the runtime.
        let runtime = self.server.runtime();
        let _entered = runtime.enter();
        loop {
            let next = match Pin::new(&mut self.changes).poll_next(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(next) => next.transpose(),
            };
            self.is_over |= next.is_err();
            match next.map(|next| self.take(next)) {
                Err(error) => return Poll::Ready(Err(failure(error))),
                Ok(None) if !self.is_over => {}
                Ok(change) => return Poll::Ready(Ok(change)),
            }
        }
    }

    fn is_over(&self) -> bool {
        self.is_over
    }

    fn passed(&self) -> Option<u64> {
        self.passed
    }
}
