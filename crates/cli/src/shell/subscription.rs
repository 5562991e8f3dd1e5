//! SUBSCRIBE: the contents of a view, and its changes as they are made.

use std::io::Write;
use std::task::{Context, Poll, Waker};
use std::thread;

use alluvium::arrow::array::RecordBatch;
use alluvium::arrow::datatypes::SchemaRef;
use alluvium::unstable::thread_waker;
use futures::StreamExt;

use super::Shell;
use super::backend::{Backend, Changes, Failure, ended};
use super::stop::{Stop, unwritten};
use super::wake::SourcesEnd;

/// What a subscription has for now.
enum Next {
    Rows(RecordBatch),
    /// Nothing: the waker is woken once there is more.
    Nothing,
    /// Nothing, and nothing comes.
    Over,
}

impl<W: Write, B: Backend> Shell<W, B> {
    /// Writes changes as they are made: at a prompt until interrupted, in a program until its finite sources are
    /// exhausted. Statements on standard input continue after the first change.
    pub(super) fn follow(&mut self, mut changes: Changes) -> Result<Result<(), Failure>, Stop> {
        self.interrupt.unparks(&thread::current());
        let waker = thread_waker();
        // Its sources end without a change.
        let waits_for_end = !self.is_prompt && !self.is_driven;
        let end = if waits_for_end { self.backend.sources_end()? } else { None };
        let mut first = true;
        loop {
            // Asked before the changes are, so that none is missed.
            let all = end.as_ref().is_some_and(SourcesEnd::has_come);
            loop {
                match poll(&mut changes, &waker) {
                    Ok(Next::Rows(rows)) => self.print(&changes.schema, &rows, first)?,
                    Ok(Next::Nothing) => break,
                    Ok(Next::Over) | Err(Failure::Interrupted) => return Ok(Ok(())),
                    Err(failure) => return Ok(Err(failure)),
                }
                first = false;
                if self.is_driven {
                    self.followed.push(changes);
                    return Ok(Ok(()));
                }
                if self.interrupt.is_asked() {
                    break;
                }
            }
            if self.interrupt.is_asked() || (all && !first) {
                return Ok(Ok(()));
            }
            thread::park();
        }
    }

    fn print(&mut self, schema: &SchemaRef, rows: &RecordBatch, first: bool) -> Result<(), Stop> {
        self.output.part(schema, rows, first).map_err(unwritten)
    }

    /// Writes the changes of subscriptions that are there. This thread is unparked when there are more.
    pub(super) fn deliver(&mut self) -> Result<(), Stop> {
        let waker = thread_waker();
        let mut followed = std::mem::take(&mut self.followed);
        let mut at = 0;
        while let Some(changes) = followed.get_mut(at) {
            match poll(changes, &waker).map_err(ended)? {
                Next::Rows(rows) => self.print(&changes.schema, &rows, false)?,
                Next::Nothing => at += 1,
                Next::Over => drop(followed.remove(at)),
            }
        }
        self.followed = followed;
        Ok(())
    }

    /// Writes the changes of subscriptions until the finite sources are exhausted, or the subscriptions are over.
    pub(super) fn follow_to_the_end(&mut self) -> Result<(), Stop> {
        if self.followed.is_empty() {
            return Ok(());
        }
        self.interrupt.unparks(&thread::current());
        let end = self.backend.sources_end()?;
        loop {
            let has_come = || end.as_ref().is_some_and(SourcesEnd::has_come);
            let all = has_come();
            self.backend.settle().map_err(ended)?;
            self.deliver()?;
            if all || self.followed.is_empty() || self.interrupt.is_asked() {
                return Ok(());
            }
            // A thread that waits for an epoch may have taken the wake-up of the end.
            if !has_come() {
                thread::park();
            }
        }
    }
}

/// What a subscription has; if that is nothing yet, `waker` is woken once there is more.
fn poll(changes: &mut Changes, waker: &Waker) -> Result<Next, Failure> {
    match changes.rows.poll_next_unpin(&mut Context::from_waker(waker)) {
        Poll::Ready(Some(rows)) => rows.map(Next::Rows),
        Poll::Ready(None) => Ok(Next::Over),
        Poll::Pending => Ok(Next::Nothing),
    }
}
