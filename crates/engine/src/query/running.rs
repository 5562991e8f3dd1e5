//! A query that runs while its rows are pulled.
//!
//! It runs on the thread that pulls, and only meanwhile. DataFusion's operators are futures, but those of the plans here need
//! no runtime: a plan has one partition, so no operator spawns a task, and spilled rows are read where they are needed.

use std::io;
use std::pin::pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll};
use std::thread;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::physical_plan::EmptyRecordBatchStream;
use futures::StreamExt;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::unconstrained;

use super::combined::Combined;
use super::explain::measured::Measures;
use super::slots::Turns;
use super::{Plan, QueryEngine};
use crate::error::{Error, Result};
use crate::interrupt;
use crate::wait::thread_waker;

/// A query that has begun, with its relations pinned.
pub(crate) struct Running {
    schema: SchemaRef,
    rows: SendableRecordBatchStream,
    combined: Combined,
    has_ended: bool,
    /// The memory that it holds.
    memory: Arc<dyn MemoryPool>,
    /// When it computes, if not at any time.
    turns: Option<Arc<Turns>>,
    /// If it has joins that can do with less memory, and has not emitted a row.
    again: Option<Again>,
}

/// A plan that can run again with joins that need less memory.
pub(super) struct Again {
    pub(super) engine: Arc<QueryEngine>,
    pub(super) plan: Plan,
    /// If it is measured.
    pub(super) measures: Option<Measures>,
}

impl Running {
    pub(super) fn new(
        rows: SendableRecordBatchStream,
        memory: Arc<dyn MemoryPool>,
        turns: Option<Arc<Turns>>,
        again: Option<Again>,
    ) -> Self {
        let (schema, combined) = (rows.schema(), Combined::default());
        Self { schema, rows, combined, has_ended: false, memory, turns, again }
    }

    /// The pool that counts the memory that it holds.
    pub(super) fn memory(&self) -> &Arc<dyn MemoryPool> {
        &self.memory
    }

    /// The columns of its rows.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Whether there are no more rows.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// The next rows, as an operator emits them; `None` after the last ones.
    pub(crate) fn pull(&mut self) -> Result<Option<RecordBatch>> {
        if self.has_ended {
            return Ok(None);
        }
        let mut rows = self.compute();
        if let Ok(Err(error)) = &rows
            && let DataFusionError::ResourcesExhausted(_) = error.find_root()
            && let Some(Again { engine, plan, measures }) = self.again.take()
        {
            // Its memory is freed before it begins again.
            self.rows = Box::pin(EmptyRecordBatchStream::new(self.schema.clone()));
            self.rows = engine.start_merging(&plan, self.turns.clone(), measures.as_ref())?;
            rows = self.compute();
        }
        self.again = None;
        self.has_ended = !matches!(rows, Ok(Ok(Some(_))));
        Ok(rows??)
    }

    fn compute(&mut self) -> Result<datafusion::error::Result<Option<RecordBatch>>> {
        let rows = &mut self.rows;
        let mut compute = || Ok(wait(rows.next())?.transpose());
        match &self.turns {
            Some(turns) => turns.compute(compute),
            None => compute(),
        }
    }

    /// The next rows, in as few batches as their sizes allow; `None` after the last ones. Ends at the first error.
    pub(crate) fn pull_combined(&mut self) -> Result<Option<RecordBatch>> {
        while let Some(rows) = self.pull()? {
            if let Some(full) = self.combined.add(rows)? {
                return Ok(Some(full));
            }
        }
        Ok(self.combined.finish()?)
    }
}

/// Where code runs that is called by a task of another runtime: else operators would spawn tasks there, which it does not run
/// while it waits for this.
static ASIDE: LazyLock<io::Result<Runtime>> =
    LazyLock::new(|| Builder::new_current_thread().build());

/// Runs a future to its end on this thread, or until it is interrupted.
pub(super) fn wait<R>(future: impl Future<Output = R>) -> Result<R> {
    let _aside = match Handle::try_current() {
        Err(_) => None,
        Ok(_) => Some(
            ASIDE
                .as_ref()
                .map_err(|error| Error::data(format!("the query cannot be run: {error}")))?
                .enter(),
        ),
    };
    let mut future = pin!(unconstrained(interrupt::until_requested(future)));
    let waker = thread_waker();
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(done) => return done,
            Poll::Pending => thread::park(),
        }
    }
}
