//! The answer to a query.

use std::fmt;
use std::iter::FusedIterator;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::vec;

use alluvium_sql::stack;
use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use datafusion::execution::memory_pool::MemoryPool;

use super::engine::Held;
use super::running::Running;
use crate::error::{Error, Result};
use crate::interrupt::{self, Limits};
use crate::poison::Poison;

/// The answer to a query: its columns, and its rows, batch by batch, which are computed as they are pulled.
///
/// All rows are of the version that the query began with, whatever is committed meanwhile. Until the last row is pulled, or this
/// is dropped, that version takes memory, or room on the disk, and so do rows that the query has to keep, as a sort does; an
/// answer of few rows is there from the beginning and holds nothing else. A query computes only while it is pulled.
///
/// An [`Interrupt`](crate::Interrupt) that the call watched that has begun the query also ends a pull, on any thread. The first error ends the
/// rows. Unfinished, this is a handle of its engine.
pub struct Rows {
    schema: SchemaRef,
    /// The first ones.
    ready: vec::IntoIter<RecordBatch>,
    /// Computes those after them.
    pulled: Option<Box<Pulled>>,
    /// Counts them while they are collected, unless they are there.
    memory: Option<Arc<dyn MemoryPool>>,
    /// Whether columns have other names than those of the query.
    is_renamed: bool,
}

/// The rows that are left, computed as they are pulled.
struct Pulled {
    /// `None` once they have ended.
    source: Option<Source>,
    poison: Arc<Poison>,
    /// Those of the call that has begun the query.
    limits: Limits,
    /// The levels of the statement.
    depth: usize,
    located: Option<Box<dyn Fn(Error) -> Error + Send>>,
    /// Is set when they fail: their transaction is aborted then.
    aborter: Option<Arc<AtomicBool>>,
}

enum Source {
    Query(Box<Running>),
    Read(Box<dyn Iterator<Item = RecordBatch> + Send>),
}

impl Source {
    fn pull(&mut self) -> Result<Option<RecordBatch>> {
        match self {
            Self::Query(running) => running.pull_combined(),
            Self::Read(rows) => {
                interrupt::check()?;
                Ok(rows.next())
            }
        }
    }
}

impl Rows {
    /// Rows that are there.
    pub(crate) fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        let ready = batches.into_iter();
        Self { schema, ready, pulled: None, memory: None, is_renamed: false }
    }

    /// The rows of a query whose statement has so many levels. Computes the first ones: most answers are small, and most errors
    /// are found there.
    pub(crate) fn of(mut running: Running, poison: &Arc<Poison>, depth: usize) -> Result<Self> {
        let first = running.pull_combined()?.into_iter().collect();
        let rows = Self::new(running.schema().clone(), first);
        if running.has_ended() {
            return Ok(rows);
        }
        let memory = Some(running.memory().clone());
        let pulled = Some(Pulled::new(Source::Query(Box::new(running)), poison, depth));
        Ok(Self { pulled, memory, ..rows })
    }

    /// Rows that are read one after the other.
    pub(crate) fn read(
        schema: SchemaRef,
        rows: impl Iterator<Item = RecordBatch> + Send + 'static,
        memory: Arc<dyn MemoryPool>,
        poison: &Arc<Poison>,
    ) -> Self {
        let pulled = Some(Pulled::new(Source::Read(Box::new(rows)), poison, 0));
        Self { pulled, memory: Some(memory), ..Self::new(schema, Vec::new()) }
    }

    /// The same rows with the names that their columns were given.
    pub(crate) fn with_written_names(mut self) -> Self {
        if let Some(schema) = alluvium_sql::planner::as_written(&self.schema) {
            (self.schema, self.is_renamed) = (schema, true);
        }
        self
    }

    /// The same rows; errors of those that are not computed yet become what `located`, which is made only if there are such,
    /// makes of them.
    pub(crate) fn located<L: Fn(Error) -> Error + Send + 'static>(
        mut self,
        located: impl FnOnce() -> L,
    ) -> Self {
        if let Some(pulled) = &mut self.pulled {
            pulled.located = Some(Box::new(located()));
        }
        self
    }

    /// The same rows, of which `first` come before.
    pub(crate) fn behind(mut self, first: Vec<RecordBatch>) -> Self {
        if !first.is_empty() {
            self.ready = first.into_iter().chain(self.ready).collect::<Vec<_>>().into_iter();
        }
        self
    }

    /// The same rows, without the limits of the call that has begun the query.
    pub(crate) fn unlimited(self) -> Self {
        self.within(Limits::default())
    }

    /// The same rows, with the limits of this call.
    pub(crate) fn limited(self) -> Self {
        self.within(Limits::current())
    }

    fn within(mut self, limits: Limits) -> Self {
        if let Some(pulled) = &mut self.pulled {
            pulled.limits = limits;
        }
        self
    }

    /// Counts rows of them that are collected; `None` if they are there.
    pub(crate) fn held(&self) -> Option<Held> {
        self.memory.as_ref().map(Held::new)
    }

    /// The same rows; if those fail that are not computed yet, `aborter` is set.
    pub(crate) fn aborting(mut self, aborter: Option<Arc<AtomicBool>>) -> Self {
        if let Some(pulled) = &mut self.pulled {
            pulled.aborter = aborter;
        }
        self
    }

    /// Their columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// All rows that are left. Meanwhile they count as memory that queries take, and it fails if there is not enough.
    pub fn into_batches(self) -> Result<Vec<RecordBatch>> {
        let held = self.held();
        let batches = self.map(|rows| {
            let rows = rows?;
            held.iter().try_for_each(|held| held.add(&rows))?;
            Ok(rows)
        });
        batches.collect()
    }

    fn renamed(&self, rows: RecordBatch) -> Result<RecordBatch> {
        if !self.is_renamed {
            return Ok(rows);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
        let (_, columns, _) = rows.into_parts();
        Ok(RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?)
    }
}

impl Iterator for Rows {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let rows = match self.ready.next() {
            Some(rows) => Ok(rows),
            None => self.pulled.as_mut()?.pull().transpose()?,
        };
        let rows = rows.and_then(|rows| self.renamed(rows));
        if rows.is_err() {
            (self.ready, self.pulled) = (Vec::new().into_iter(), None);
        }
        Some(rows)
    }
}

impl FusedIterator for Rows {}

impl fmt::Debug for Rows {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns: Vec<&String> = self.schema.fields().iter().map(|field| field.name()).collect();
        formatter.debug_struct("Rows").field("columns", &columns).finish_non_exhaustive()
    }
}

impl Pulled {
    fn new(source: Source, poison: &Arc<Poison>, depth: usize) -> Box<Self> {
        let (source, poison) = (Some(source), poison.clone());
        Box::new(Self {
            source,
            poison,
            limits: Limits::current(),
            depth,
            located: None,
            aborter: None,
        })
    }

    fn pull(&mut self) -> Result<Option<RecordBatch>> {
        let Some(source) = &mut self.source else { return Ok(None) };
        self.poison.check()?;
        let limits = self.limits.clone().or(Limits::current());
        let (poison, depth, located) = (&self.poison, self.depth, &self.located);
        let pulled = limits.scope(|| {
            let pulled = poison.guard(|| stack::with_room(depth, || source.pull()));
            pulled.map_err(|error| match error {
                Error::Poisoned { .. } => error,
                // Whatever error the interrupted part made of the interrupt.
                _ => interrupt::reached()
                    .unwrap_or_else(|| located.iter().fold(error, |error, located| located(error))),
            })
        });
        if let (Err(_), Some(aborter)) = (&pulled, &self.aborter) {
            aborter.store(true, Ordering::Relaxed);
        }
        if !matches!(pulled, Ok(Some(_))) {
            self.end();
        }
        pulled
    }

    /// Gives up what is held. Deep plans need a stack to be dropped on.
    fn end(&mut self) {
        let source = self.source.take();
        stack::with_room(self.depth, || drop(source));
    }
}

impl Drop for Pulled {
    fn drop(&mut self) {
        self.end();
    }
}
