//! The outputs of all views.
//!
//! An output of *changes* is a subscription with a thread of its own, which writes every change as it comes. A writer
//! that falls far behind holds up commits, as any subscriber does. An output of *contents* is written when the engine
//! finishes. Dropping a view ends its outputs of changes; what they have written stays.
//!
//! With a state directory an output of changes goes on after a restart, without gap or duplicate. A checkpoint has the state
//! of its subscription and its length at the checkpoint's epoch. The engine that goes on cuts it back to that length, and
//! writes the changes of later epochs again.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, ThreadId};

use alluvium_trace::Epoch;
use arrow::datatypes::SchemaRef;
use parking_lot::Mutex;

use super::running::{Marks, Running, Writing};
use super::{Sink, SinkRequest, Visibility, changes};
use crate::catalog::RelationKind;
use crate::durable::checkpoint::OutputName;
use crate::durable::record::{Record, text_of};
use crate::error::{Error, Result};
use crate::instance::Instance;
use crate::interrupt;
use crate::source::OutputWriter;
use crate::subscription::Client;

/// Which rows of a view an output writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
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

/// An output that can be written.
pub(crate) enum OpenedOutput {
    Contents(Output),
    Changes(OpenedChanges),
}

/// An output of changes that can be written.
pub(crate) struct OpenedChanges {
    path: PathBuf,
    /// The columns of what is written.
    schema: SchemaRef,
    writer: OutputWriter,
    /// The epoch whose changes, with those before it, are written already.
    written: Option<Epoch>,
    /// Its name in checkpoints, if it goes on after a restart.
    name: Option<OutputName>,
}

/// All outputs there are.
#[derive(Default)]
pub(crate) struct Outputs {
    contents: Mutex<Vec<(String, Output)>>,
    changes: Mutex<Vec<Running>>,
    /// What the checkpoint that the engine goes on after has of outputs: its epoch, and how long they were.
    restored: Mutex<BTreeMap<OutputName, (Epoch, u64)>>,
    /// While what was done before is done again: relations of which an output could not be opened.
    missing: Mutex<Vec<(String, Error)>>,
    /// Relations that had failed when the engine was opened, whose changes were written.
    left_out: Mutex<BTreeSet<String>>,
}

impl Outputs {
    /// Whether there is an output of a relation to this path. Fails if there is one of another relation, unless it is to a pipe
    /// or device.
    pub(crate) fn has(&self, relation: &str, path: &Path) -> Result<bool> {
        let (contents, changes) = (self.contents.lock(), self.changes.lock());
        let contents = contents.iter().map(|(name, output)| (name, &output.path));
        let changes = changes.iter().map(|running| (&running.relation, &running.path));
        match contents.chain(changes).find(|(_, to)| *to == path) {
            None => Ok(false),
            Some((name, _)) if name == relation => Ok(true),
            Some(_) if path.metadata().is_ok_and(|found| !found.is_file()) => Ok(false),
            Some((name, _)) => Err(Error::source(format!(
                "\"{name}\" is written to \"{}\" already: each output needs a file of its own",
                path.display()
            ))),
        }
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

    /// Notes that an output could not be opened. The journal may say that its relation is dropped later.
    pub(crate) fn miss(&self, relation: &str, error: Error) {
        self.missing.lock().push((relation.to_owned(), error));
    }

    /// Fails with the error of an output that could not be opened, if there is one.
    pub(crate) fn check_missing(&self) -> Result<()> {
        match self.missing.lock().first() {
            Some((_, error)) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// Those that go on after a restart, marked behind an epoch.
    pub(crate) fn mark(&self, epoch: Epoch) -> Vec<Marks> {
        let changes = self.changes.lock();
        let running = changes.iter().filter(|running| !running.has_failed());
        let marks: Vec<Marks> = running.filter_map(Running::marks).cloned().collect();
        marks.iter().for_each(|marks| marks.mark(epoch));
        marks
    }

    /// Waits until the outputs of a relation, whose subscriptions have been cut, are written.
    pub(crate) fn remove(&self, relation: &str) -> Result<()> {
        self.contents.lock().retain(|(name, _)| name != relation);
        self.missing.lock().retain(|(name, _)| name != relation);
        self.left_out.lock().remove(relation);
        let ended: Vec<_> =
            self.changes.lock().extract_if(.., |running| running.relation == relation).collect();
        ended.into_iter().map(Running::end).fold(Ok(()), Result::and)
    }

    /// Whether an output of a relation has ended because that has failed.
    pub(crate) fn has_ended(&self, relation: &str) -> bool {
        let is_ended = |running: &Running| running.relation == relation && running.has_failed();
        self.left_out.lock().contains(relation) || self.changes.lock().iter().any(is_ended)
    }

    /// Notes that the changes of a relation which has failed were written, and are not any more.
    pub(crate) fn leave_out(&self, relation: &str) {
        self.left_out.lock().insert(relation.to_owned());
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
        if self.connectors.outputs.has(relation, &output.path)? {
            return Ok(());
        }
        let entry = self.definitions.catalog.get(relation)?;
        if mode == OutputMode::Changes
            && self.reader.sequencer.durable().is_replaying()
            && self.definitions.has_failed(relation)?
        {
            self.connectors.outputs.leave_out(relation);
            return Ok(());
        }
        let opened = self.open_output(relation, entry.kind(), &entry.schema, output)?;
        self.start_output(relation, opened, record)
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

    /// What is asked of the sink of an output of a relation with these columns, and the name of the output in checkpoints; `None`
    /// if it writes its contents.
    ///
    /// # Errors
    /// If there can be no such output.
    pub(crate) fn output_request(
        &self,
        relation: &str,
        kind: RelationKind,
        columns: &SchemaRef,
        output: &Output,
    ) -> Result<Option<(SinkRequest, Option<OutputName>)>> {
        if output.mode_for(relation, kind)? == OutputMode::Contents {
            return Ok(None);
        }
        let request = SinkRequest {
            path: output.path.clone(),
            options: output.options.clone(),
            schema: changes::schema(relation, columns)?,
            visibility: Visibility::WhenFlushed,
            start: None,
        };
        let name = match self.definitions.is_durable() {
            true => Some(output_name(relation, &*output.sink, &request)?),
            false => None,
        };
        Ok(Some((request, name)))
    }

    /// Opens what the contents of a relation with these columns, or its changes, will be written to.
    pub(crate) fn open_output(
        &self,
        relation: &str,
        kind: RelationKind,
        columns: &SchemaRef,
        output: Output,
    ) -> Result<OpenedOutput> {
        let Some((mut request, name)) = self.output_request(relation, kind, columns, &output)?
        else {
            return Ok(OpenedOutput::Contents(output));
        };
        let restored = &self.connectors.outputs.restored;
        let restored = name.as_ref().and_then(|name| restored.lock().remove(name));
        request.start = restored.map(|(_, length)| length);
        let writer = self.connectors.formats.create(&*output.sink, &request)?;
        let written = restored.map(|(epoch, _)| epoch);
        let (path, schema) = (output.path, request.schema);
        Ok(OpenedOutput::Changes(OpenedChanges { path, schema, writer, written, name }))
    }

    /// Writes to an output that is open: the contents of a relation when the engine finishes, or its changes from now on.
    pub(crate) fn start_output(
        self: &Arc<Self>,
        relation: &str,
        opened: OpenedOutput,
        record: Option<Record>,
    ) -> Result<()> {
        let outputs = &self.connectors.outputs;
        let record = || match record {
            Some(record) => self.definitions.record_output(relation, record),
            None => Ok(()),
        };
        let OpenedChanges { path, schema, writer, written, name } = match opened {
            OpenedOutput::Contents(output) => {
                outputs.contents.lock().push((relation.to_owned(), output));
                return record();
            }
            OpenedOutput::Changes(opened) => opened,
        };
        let lasting = name.as_ref().map(|name| &*name.path);
        let subscription = self.subscribe(relation, Client::Output(lasting))?;
        let lasting = name.map(|name| (name, self.poison.clone()));
        let writing = Writing { path, subscription, writer, schema, written, lasting };
        let running = Running::start(relation, writing)?;
        // A checkpoint that has its length has its definition: else it would go on behind what it has written, from the start.
        record()?;
        outputs.changes.lock().push(running);
        Ok(())
    }

    /// Starts inputs that have not started, waits until all inputs are at their ends and their epochs are complete, writes
    /// the contents of views, and ends the outputs of changes. If these go on after a restart, they do not end: a checkpoint
    /// is taken that has all of them.
    pub(crate) fn finish(self: &Arc<Self>) -> Result<()> {
        self.start_inputs()?;
        self.connectors.inputs.wait()?;
        self.reader.sequencer.wait(self.writer.last())?;
        self.reader.check_views()?;
        let written = self.reader.check_none_failed().and(self.write_outputs());
        let outputs = &self.connectors.outputs;
        if self.definitions.is_durable() {
            return written.and_then(|()| self.checkpoint());
        }
        let changes = std::mem::take(&mut *outputs.changes.lock());
        changes.iter().for_each(|running| self.definitions.cut(running.subscription));
        let ended = changes.into_iter().map(Running::join).fold(Ok(()), Result::and);
        written.and(ended)
    }

    /// Writes the contents of views to their outputs, as of what is committed.
    pub(crate) fn write_outputs(&self) -> Result<()> {
        let outputs = &self.connectors.outputs;
        let contents = std::mem::take(&mut *outputs.contents.lock());
        let written = contents.iter().map(|(name, output)| self.write_contents(name, output));
        let written = written.fold(Ok(()), Result::and);
        outputs.contents.lock().extend(contents);
        written
    }

    fn write_contents(&self, relation: &str, output: &Output) -> Result<()> {
        let mut contents = self.reader.contents(relation)?;
        let request = SinkRequest {
            path: output.path.clone(),
            options: output.options.clone(),
            schema: contents.schema().clone(),
            visibility: Visibility::WhenFinished,
            start: None,
        };
        let mut writer = self.connectors.formats.create(&*output.sink, &request)?;
        while let Some(rows) = contents.pull_combined()? {
            interrupt::check()?;
            writer.write(&rows)?;
        }
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
