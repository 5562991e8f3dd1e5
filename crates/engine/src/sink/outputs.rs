//! The outputs of all views.
//!
//! An output of *changes* is a subscription with a thread of its own, which writes every change as it comes. A writer
//! that falls far behind holds up commits, as any subscriber does. An output of *contents* is written when the engine
//! finishes. Dropping a view ends its outputs of changes; what they have written stays.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle, ThreadId};

use alluvium_sql::stack;
use parking_lot::Mutex;

use super::{Sink, SinkRequest, Visibility, changes};
use crate::catalog::{Entry, RelationKind};
use crate::durable::CONNECTED;
use crate::error::{Error, Result};
use crate::instance::Instance;
use crate::source::OutputWriter;
use crate::subscription::Subscription;
use crate::worker::DataflowId;

/// Which rows of a view an output writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OutputMode {
    /// Every change, as a row with its epoch and weight in front.
    Changes,
    /// The rows it holds when the engine finishes.
    Contents,
}

/// Where a view's rows go: a connector that has been checked.
pub(crate) struct Output {
    pub(crate) path: PathBuf,
    pub(crate) sink: Arc<dyn Sink>,
    pub(crate) options: Vec<(String, String)>,
    /// `None` for what suits the view: contents if it keeps them, or else changes.
    pub(crate) mode: Option<OutputMode>,
}

impl Output {
    /// What it writes of a relation: changes or contents.
    pub(crate) fn mode(&self, entry: &Entry) -> Result<OutputMode> {
        self.mode_for(&entry.name, entry.kind())
    }

    /// What it writes of a relation of this kind.
    pub(crate) fn mode_for(&self, name: &str, kind: RelationKind) -> Result<OutputMode> {
        match (self.mode, kind) {
            (_, RelationKind::LocalView) => {
                Err(Error::sql(format!("\"{name}\" is a local view, which is not an output")))
            }
            (Some(OutputMode::Contents), RelationKind::View) => Err(Error::sql(format!(
                "\"{name}\" does not keep its contents; make it a MATERIALIZED VIEW, or write its changes"
            ))),
            (None, RelationKind::View) => Ok(OutputMode::Changes),
            (mode, _) => Ok(mode.unwrap_or(OutputMode::Contents)),
        }
    }
}

/// All outputs there are.
#[derive(Default)]
pub(crate) struct Outputs {
    contents: Mutex<Vec<(String, Output)>>,
    changes: Mutex<Vec<Running>>,
}

/// An output of changes that is being written.
struct Running {
    relation: String,
    path: PathBuf,
    subscription: DataflowId,
    thread: JoinHandle<Result<()>>,
}

impl Running {
    /// Waits until all that was delivered is written.
    fn join(self) -> Result<()> {
        // A panic has poisoned the engine already.
        self.thread.join().unwrap_or(Ok(()))
    }
}

impl Outputs {
    /// Whether there is an output of a relation to this path.
    fn has(&self, relation: &str, path: &Path) -> bool {
        let is_same = |name: &str, to: &Path| name == relation && to == path;
        self.contents.lock().iter().any(|(name, output)| is_same(name, &output.path))
            || self.changes.lock().iter().any(|running| is_same(&running.relation, &running.path))
    }

    /// Waits until the outputs of a relation, whose subscriptions have been cut, are written.
    pub(crate) fn remove(&self, relation: &str) -> Result<()> {
        self.contents.lock().retain(|(name, _)| name != relation);
        let ended: Vec<_> =
            self.changes.lock().extract_if(.., |running| running.relation == relation).collect();
        ended.into_iter().map(Running::join).fold(Ok(()), Result::and)
    }

    /// As [`Outputs::remove`], for all relations. The thread of an output does not wait for itself.
    pub(crate) fn close(&mut self) {
        let here: ThreadId = thread::current().id();
        for running in self.changes.get_mut().drain(..) {
            if running.thread.thread().id() != here {
                // No handle is left that could return the error.
                let _ = running.join();
            }
        }
    }
}

impl Instance {
    /// Writes the contents of a relation, or its changes from now on. Does nothing if there is an output of it to the same
    /// path.
    pub(crate) fn add_output(self: &Arc<Self>, relation: &str, output: Output) -> Result<()> {
        if self.definitions.is_durable() {
            return Err(Error::sql(CONNECTED));
        }
        let outputs = &self.connectors.outputs;
        let entry = self.definitions.catalog.get(relation)?;
        if outputs.has(relation, &output.path) {
            return Ok(());
        }
        if output.mode(&entry)? == OutputMode::Contents {
            outputs.contents.lock().push((relation.to_owned(), output));
            return Ok(());
        }
        let schema = changes::schema(relation, &entry.schema)?;
        let Output { path, sink, options, .. } = output;
        let request = SinkRequest {
            path: path.clone(),
            options,
            schema: schema.clone(),
            visibility: Visibility::WhenFlushed,
        };
        let mut writer = self.connectors.formats.create(&*sink, &request)?;
        let mut subscription = self.subscribe(relation)?;
        let id = subscription.id();
        let thread = thread::Builder::new()
            .name(format!("sink-{relation}"))
            .stack_size(stack::THREAD)
            .spawn(move || {
                let written = write(&mut subscription, &mut writer, &schema);
                drop(subscription);
                written.and_then(|()| writer.finish())
            })
            .map_err(|error| Error::source(format!("no thread for a sink: {error}")))?;
        let relation = relation.to_owned();
        outputs.changes.lock().push(Running { relation, path, subscription: id, thread });
        Ok(())
    }

    /// Starts inputs that have not started, waits until all inputs are at their ends and their epochs are complete, writes
    /// the contents of views, and ends the outputs of changes.
    pub(crate) fn finish(self: &Arc<Self>) -> Result<()> {
        self.start_inputs()?;
        self.connectors.inputs.wait()?;
        self.reader.progress.wait(self.writer.last())?;
        self.reader.check_views()?;
        let outputs = &self.connectors.outputs;
        let contents = std::mem::take(&mut *outputs.contents.lock());
        let written = contents.iter().map(|(name, output)| self.write_contents(name, output));
        let written = written.fold(Ok(()), Result::and);
        outputs.contents.lock().extend(contents);
        let changes = std::mem::take(&mut *outputs.changes.lock());
        changes.iter().for_each(|running| self.definitions.cut(running.subscription));
        let ended = changes.into_iter().map(Running::join).fold(Ok(()), Result::and);
        written.and(ended)
    }

    fn write_contents(&self, relation: &str, output: &Output) -> Result<()> {
        let answer = self.reader.contents(relation)?;
        let request = SinkRequest {
            path: output.path.clone(),
            options: output.options.clone(),
            schema: answer.schema,
            visibility: Visibility::WhenFinished,
        };
        let mut writer = self.connectors.formats.create(&*output.sink, &request)?;
        answer.batches.iter().try_for_each(|rows| writer.write(rows))?;
        writer.finish()
    }
}

fn write(
    subscription: &mut Subscription,
    writer: &mut OutputWriter,
    schema: &arrow::datatypes::SchemaRef,
) -> Result<()> {
    for change in subscription {
        writer.write(&changes::rows(change?, schema)?)?;
        writer.flush()?;
    }
    Ok(())
}
