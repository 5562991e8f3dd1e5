//! SUBSCRIBE: the contents of a view, and its changes as they are made.

use std::io::Write;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread;

use alluvium::arrow::array::{ArrayRef, Int64Array, RecordBatch, UInt64Array};
use alluvium::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use alluvium::arrow::error::ArrowError;
use alluvium::{Change, Error, Subscription};
use futures::Stream;

use super::wake::{SourcesEnd, unparks_this_thread};
use super::{Shell, Stop, failed, stopped, unwritten};

/// A subscription whose changes are printed between statements.
pub(super) struct Followed {
    changes: Subscription,
    schema: SchemaRef,
}

impl<W: Write> Shell<W> {
    /// Writes changes as they are made: at a prompt until interrupted, in a program until its finite sources are
    /// exhausted. Statements on standard input continue after the first change.
    pub(super) fn follow(&mut self, mut changes: Subscription) -> Result<(), Stop> {
        let schema = changes_schema(changes.schema());
        // The first change is a snapshot of the view.
        let mut next = changes.next().transpose().map_err(stopped)?;
        let mut first = true;
        if self.is_driven {
            if let Some(change) = next {
                self.print(&schema, &change, true)?;
            }
            self.followed.push(Followed { changes, schema });
            return Ok(());
        }
        self.interrupt.unparks(&thread::current());
        let waker = unparks_this_thread();
        // Its sources end without a change.
        let end = if self.is_prompt { None } else { Some(SourcesEnd::watch(&self.engine)?) };
        loop {
            let all = end.as_ref().is_some_and(SourcesEnd::has_come);
            while let Some(change) = next {
                self.print(&schema, &change, first)?;
                first = false;
                if self.interrupt.is_asked() {
                    break;
                }
                next = match poll(&mut changes, &waker) {
                    Err(Error::Interrupted) => return Ok(()),
                    polled => polled.map_err(stopped)?,
                };
            }
            if self.interrupt.is_asked() || all || changes.is_over() {
                return Ok(());
            }
            next = match poll(&mut changes, &waker) {
                Err(Error::Interrupted) => return Ok(()),
                polled => polled.map_err(stopped)?,
            };
            if next.is_none() && !changes.is_over() {
                thread::park();
            }
        }
    }

    fn print(&mut self, schema: &SchemaRef, change: &Change, first: bool) -> Result<(), Stop> {
        let rows = change_rows(schema, change).map_err(|error| failed(None, error))?;
        self.output.part(schema, &rows, first).map_err(unwritten)
    }

    /// Writes the changes of subscriptions that are there. This thread is unparked when there are more.
    pub(super) fn deliver(&mut self) -> Result<(), Stop> {
        let waker = unparks_this_thread();
        let mut followed = std::mem::take(&mut self.followed);
        for Followed { changes, schema } in &mut followed {
            while let Some(change) = poll(changes, &waker).map_err(stopped)? {
                self.print(schema, &change, false)?;
            }
        }
        self.followed = followed;
        Ok(())
    }

    /// Writes the changes of subscriptions until the finite sources are exhausted.
    pub(super) fn follow_to_the_end(&mut self) -> Result<(), Stop> {
        if self.followed.is_empty() {
            return Ok(());
        }
        self.interrupt.unparks(&thread::current());
        let end = SourcesEnd::watch(&self.engine)?;
        loop {
            let all = end.has_come();
            self.engine.wait(self.engine.progress().committed).map_err(stopped)?;
            self.deliver()?;
            if all || self.interrupt.is_asked() {
                return Ok(());
            }
            // A thread that waits for an epoch may have taken the wake-up of the end.
            if !end.has_come() {
                thread::park();
            }
        }
    }
}

/// The next change of a subscription, if it is there; else `waker` is woken once it is.
fn poll(changes: &mut Subscription, waker: &Waker) -> Result<Option<Change>, Error> {
    match Pin::new(changes).poll_next(&mut Context::from_waker(waker)) {
        Poll::Ready(change) => change.transpose(),
        Poll::Pending => Ok(None),
    }
}

/// The columns of a view's changes: the epoch, the weight, and the view's own.
pub(crate) fn changes_schema(view: &SchemaRef) -> SchemaRef {
    let ours = [("epoch", DataType::UInt64), ("weight", DataType::Int64)];
    let ours = ours.into_iter().map(|(name, kind)| Arc::new(Field::new(name, kind, false)));
    Arc::new(Schema::new(ours.chain(view.fields().iter().cloned()).collect::<Vec<_>>()))
}

fn change_rows(schema: &SchemaRef, change: &Change) -> Result<RecordBatch, ArrowError> {
    let epochs: ArrayRef = Arc::new(UInt64Array::from_value(change.epoch, change.rows.num_rows()));
    let weights: ArrayRef = Arc::new(Int64Array::new(change.weights.clone(), None));
    let columns = [epochs, weights].into_iter().chain(change.rows.columns().iter().cloned());
    RecordBatch::try_new(schema.clone(), columns.collect())
}
