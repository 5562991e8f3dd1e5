//! Changes of an engine's relations.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use alluvium::arrow::datatypes::SchemaRef;
use alluvium::{Change, Subscription};
use futures::Stream;

use crate::backend::Changes;
use crate::failure::Fallible;

impl Changes for Subscription {
    fn schema(&self) -> &SchemaRef {
        Self::schema(self)
    }

    fn next(&mut self) -> Fallible<Option<Change>> {
        Ok(Iterator::next(self).transpose()?)
    }

    fn next_within(&mut self, timeout: Duration) -> Fallible<Option<Change>> {
        Ok(match timeout {
            Duration::ZERO => self.try_next()?,
            timeout => self.next_timeout(timeout)?,
        })
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Fallible<Option<Change>>> {
        let polled = Pin::new(self).poll_next(context);
        polled.map(|next| Ok(next.transpose()?))
    }

    fn is_over(&self) -> bool {
        Self::is_over(self)
    }

    fn passed(&self) -> Option<u64> {
        None
    }
}
