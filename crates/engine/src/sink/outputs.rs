//! The outputs of all views.
//!
//! An output of *changes* is a subscription with a thread of its own, which writes every change as it comes. A writer
//! that falls far behind holds up commits, as any subscriber does. An output of *contents* is written when the engine
//! finishes. Dropping a view ends its outputs of changes; what they have written stays.
//!
//! With a state directory an output of changes goes on after a restart, without gap or duplicate. A checkpoint has the state
//! of its subscription and its length at the checkpoint's epoch. The engine that goes on cuts it back to that length, and
//! writes the changes of later epochs again.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, ThreadId};

use alluvium_trace::Epoch;
use parking_lot::Mutex;

use super::running::{Marks, Running, Writing};
use super::{Sink, SinkRequest, Visibility, changes};
use crate::catalog::{Entry, RelationKind};
use crate::durable::checkpoint::OutputName;
use crate::durable::record::{Record, text_of};
use crate::error::{Error, Result};
use crate::instance::Instance;
use crate::subscription::Subscriber;

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
    /// What the checkpoint that the engine goes on after has of outputs: its epoch, and how long they were.
    restored: Mutex<BTreeMap<OutputName, (Epoch, u64)>>,
}

impl Outputs {
    /// Whether there is an output of a relation to this path.
    fn has(&self, relation: &str, path: &Path) -> bool {
        let is_same = |name: &str, to: &Path| name == relation && to == path;
        self.contents.lock().iter().any(|(name, output)| is_same(name, &output.path))
            || self.changes.lock().iter().any(|running| is_same(&running.relation, &running.path))
    }

    /// Whether there is an output of a relation.
    pub(crate) fn read(&self, relation: &str) -> bool {
        self.contents.lock().iter().any(|(name, _)| name == relation)
            || self.changes.lock().iter().any(|running| running.relation == relation)
    }

    /// Outputs go on where they were at the end of an epoch.
    pub(crate) fn restore(&self, epoch: Epoch, lengths: Vec<(OutputName, u64)>) {
        let restored = lengths.into_iter().map(|(output, length)| (output, (epoch, length)));
        self.restored.lock().extend(restored);
    }

    /// Those that go on after a restart, marked behind an epoch.
    pub(crate) fn mark(&self, epoch: Epoch) -> Vec<Marks> {
        let changes = self.changes.lock();
        let marks: Vec<Marks> = changes.iter().filter_map(Running::marks).cloned().collect();
        marks.iter().for_each(|marks| marks.mark(epoch));
        marks
    }

    /// Waits until the outputs of a relation, whose subscriptions have been cut, are written.
    pub(crate) fn remove(&self, relation: &str) -> Result<()> {
        self.contents.lock().retain(|(name, _)| name != relation);
        let ended: Vec<_> =
            self.changes.lock().extract_if(.., |running| running.relation == relation).collect();
        ended.into_iter().map(Running::join).fold(Ok(()), Result::and)
    }

    /// As [`Outputs::remove`], for all relations. The thread of an output does not wait for itself.
    pub(crate) fn close(&self) {
        let here: ThreadId = thread::current().id();
        let ended = std::mem::take(&mut *self.changes.lock());
        for running in ended {
            if running.thread() != here {
                // No handle is left that could return the error.
                let _ = running.join();
            }
        }
    }
}

impl Instance {
    /// As [`crate::Engine::output`].
    pub(crate) fn output(
        self: &Arc<Self>,
        relation: &str,
        path: &Path,
        format: Option<&str>,
        options: &[(String, String)],
        mode: OutputMode,
    ) -> Result<()> {
        let path = self.recorded_path(path)?;
        let sink = self.connectors.formats.sink(format, &path)?;
        options.iter().try_for_each(|(name, value)| sink.check(name, value))?;
        let record = match self.definitions.is_durable() {
            true => Some(Record::output(relation, &path, format, options, mode)?),
            false => None,
        };
        let output = Output { path, sink, options: options.to_vec(), mode: Some(mode) };
        match (self.add_output(relation, output)?, record) {
            (true, Some(record)) => self.definitions.record_output(relation, record),
            _ => Ok(()),
        }
    }

    /// A path that names the same file wherever the process is started, if the engine records it.
    pub(crate) fn recorded_path(&self, path: &Path) -> Result<PathBuf> {
        if !self.definitions.is_durable() {
            return Ok(path.to_owned());
        }
        let here = env::current_dir()
            .map_err(|error| Error::source(format!("there is no working directory: {error}")))?;
        Ok(here.join(path))
    }

    /// Writes the contents of a relation, or its changes from now on. Returns false, and does nothing, if there is an output
    /// of it to the same path.
    pub(crate) fn add_output(self: &Arc<Self>, relation: &str, output: Output) -> Result<bool> {
        let outputs = &self.connectors.outputs;
        let entry = self.definitions.catalog.get(relation)?;
        if outputs.has(relation, &output.path) {
            return Ok(false);
        }
        if output.mode(&entry)? == OutputMode::Contents {
            outputs.contents.lock().push((relation.to_owned(), output));
            return Ok(true);
        }
        let schema = changes::schema(relation, &entry.schema)?;
        let Output { path, sink, options, .. } = output;
        let mut request = SinkRequest {
            path: path.clone(),
            options,
            schema: schema.clone(),
            visibility: Visibility::WhenFlushed,
            start: None,
        };
        let lasting = match self.definitions.is_durable() {
            true => Some(output_name(relation, &*sink, &request)?),
            false => None,
        };
        let restored = lasting.as_ref().and_then(|output| outputs.restored.lock().remove(output));
        request.start = restored.map(|(_, length)| length);
        let writer = self.connectors.formats.create(&*sink, &request)?;
        let subscriber = match &lasting {
            Some(output) => Subscriber::Output(&output.path),
            None => Subscriber::New,
        };
        let subscription = self.subscribe(relation, subscriber)?;
        let running = Running::start(
            relation,
            Writing {
                path,
                subscription,
                writer,
                schema,
                written: restored.map(|(epoch, _)| epoch),
                lasting: lasting.map(|output| (output, self.poison.clone())),
            },
        )?;
        outputs.changes.lock().push(running);
        Ok(true)
    }

    /// Starts inputs that have not started, waits until all inputs are at their ends and their epochs are complete, writes
    /// the contents of views, and ends the outputs of changes. If these go on after a restart, they do not end: a checkpoint
    /// is taken that has all of them.
    pub(crate) fn finish(self: &Arc<Self>) -> Result<()> {
        self.start_inputs()?;
        self.connectors.inputs.wait()?;
        self.reader.sequencer.wait(self.writer.last())?;
        self.reader.check_views()?;
        let outputs = &self.connectors.outputs;
        let contents = std::mem::take(&mut *outputs.contents.lock());
        let written = contents.iter().map(|(name, output)| self.write_contents(name, output));
        let written = written.fold(Ok(()), Result::and);
        outputs.contents.lock().extend(contents);
        if self.definitions.is_durable() {
            return written.and_then(|()| self.checkpoint());
        }
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
            start: None,
        };
        let mut writer = self.connectors.formats.create(&*output.sink, &request)?;
        answer.batches.iter().try_for_each(|rows| writer.write(rows))?;
        writer.finish()
    }
}

/// The name of an output in checkpoints; fails if it cannot go on after a restart.
fn output_name(relation: &str, sink: &dyn Sink, request: &SinkRequest) -> Result<OutputName> {
    let path = request.path.display();
    if !sink.resumes(request) {
        return Err(Error::source(format!(
            "the changes of \"{relation}\" cannot be written to \"{path}\" by an engine with a state directory, which goes on \
             writing after a restart: that needs a file of CSV or JSON lines without compression"
        )));
    }
    Ok(OutputName { relation: relation.to_owned(), path: text_of(&request.path)? })
}
