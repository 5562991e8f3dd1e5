//! Rows of statements, which come over the connection of their session.
//!
//! A connection answers one statement after the other. So a session [takes](Coming::gather) into memory what has not been taken of the rows
//! before it runs the next statement.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use alluvium_client::Batches;
use alluvium_client::arrow::array::RecordBatch;
use futures::TryStreamExt;
use parking_lot::{Mutex, MutexGuard};

use super::pool::Server;
use super::session::{Block, Place};
use super::wait::Stopped;
use crate::call;
use crate::failure::{Failure, Fallible};

/// How long a thread waits for rows that another one takes before it looks whether it is to end.
const WAIT: Duration = Duration::from_millis(20);

/// Rows that are coming.
pub(super) struct Coming {
    server: Server,
    /// `None` once all have come.
    batches: Option<Batches>,
    /// Those that have come and were not taken.
    ready: VecDeque<RecordBatch>,
    failed: Option<Failure>,
    /// Whether nobody takes them.
    is_abandoned: bool,
    block: Arc<Mutex<Block>>,
    /// Where the statement is.
    place: Place,
}

impl Coming {
    /// The rows of a statement that has begun. The first of them come now, or all.
    pub(super) fn begin(
        server: Server,
        batches: Batches,
        block: Arc<Mutex<Block>>,
        place: Place,
        is_whole: bool,
    ) -> Fallible<Self> {
        let ready = VecDeque::new();
        let batches = Some(batches);
        let mut coming =
            Self { server, batches, ready, failed: None, is_abandoned: false, block, place };
        let begun = coming.begin_to_come(is_whole);
        if begun.is_err() && !coming.is_over() {
            // It is cancelled with this.
            coming.block.lock().interrupt();
        }
        begun.map(|()| coming)
    }

    fn begin_to_come(&mut self, is_whole: bool) -> Fallible<()> {
        // Most answers are over with the first rows.
        while let Some(batch) = self.fetch()? {
            self.ready.push_back(batch);
            if !is_whole {
                break;
            }
        }
        Ok(())
    }

    /// Whether nothing more comes over the connection.
    pub(super) fn is_over(&self) -> bool {
        self.batches.is_none()
    }

    /// Takes into memory what has not been taken, so that the connection is free.
    pub(super) fn gather(&mut self) -> Fallible<()> {
        while self.batches.is_some() {
            match self.fetch() {
                Ok(Some(batch)) if !self.is_abandoned => self.ready.push_back(batch),
                Ok(_) => {}
                Err(failure) if self.batches.is_none() => {
                    // Who takes the rows is told.
                    self.failed = Some(failure);
                }
                Err(interrupted) => return Err(interrupted),
            }
        }
        Ok(())
    }

    /// The next rows that come.
    fn fetch(&mut self) -> Fallible<Option<RecordBatch>> {
        let Some(batches) = &mut self.batches else { return Ok(None) };
        match self.server.wait(batches.try_next()) {
            Ok(Some(batch)) => Ok(Some(batch)),
            Ok(None) => {
                self.batches = None;
                Ok(None)
            }
            Err(Stopped::Interrupted) => Err(Failure::interrupted()),
            Err(Stopped::Failed(error)) => {
                self.batches = None;
                self.block.lock().fail();
                Err(self.place.failure(error))
            }
        }
    }

    fn next(&mut self) -> Fallible<Option<RecordBatch>> {
        if let Some(batch) = self.ready.pop_front() {
            return Ok(Some(batch));
        }
        match self.failed.take() {
            Some(failure) => Err(failure),
            None => self.fetch(),
        }
    }

    /// Nobody takes the rows that are left.
    fn abandon(&mut self) {
        self.ready.clear();
        self.is_abandoned = true;
        // That cancels the statement, which would abort a transaction that is open.
        if *self.block.lock() == Block::None {
            self.batches = None;
        }
    }
}

/// The lock on what threads share, unless the call that is running here is asked to end.
pub(super) fn locked(coming: &Mutex<Coming>) -> Fallible<MutexGuard<'_, Coming>> {
    loop {
        if let Some(locked) = coming.try_lock_for(WAIT) {
            return Ok(locked);
        }
        if call::is_asked_to_end() {
            return Err(Failure::interrupted());
        }
    }
}

/// Rows for who takes them.
pub(super) struct RemoteRows(pub(super) Arc<Mutex<Coming>>);

impl Iterator for RemoteRows {
    type Item = Fallible<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        match locked(&self.0) {
            Ok(mut coming) => coming.next().transpose(),
            Err(interrupted) => Some(Err(interrupted)),
        }
    }
}

impl Drop for RemoteRows {
    fn drop(&mut self) {
        self.0.lock().abandon();
    }
}
