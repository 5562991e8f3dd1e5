//! Outputs of views: opening them, and writing contents.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::datatypes::SchemaRef;

use super::Instance;
use crate::catalog::RelationKind;
use crate::durable::checkpoint::OutputName;
use crate::durable::record::{Record, text_of};
use crate::error::{Error, Result};
use crate::interrupt;
use crate::sink::{
    OpenedChanges, OpenedOutput, Output, OutputMode, Running, Sink, SinkRequest, Visibility,
    Writing, changes,
};
use crate::subscription::Client;

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

    /// The request to the sink of an output of a relation with these columns, and the name of the output in checkpoints; `None`
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
        let schema = changes::schema(relation, columns)?;
        let request = output.request(schema, Visibility::WhenFlushed);
        let name = match self.definitions.is_durable() {
            true => Some(output_name(relation, &*output.sink, &request)?),
            false => None,
        };
        Ok(Some((request, name)))
    }

    /// Opens the sink for the contents of a relation with these columns, or for its changes.
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
        // A checkpoint with its length has its definition: else it would write everything again after its earlier output.
        record()?;
        outputs.changes.lock().push(running);
        Ok(())
    }

    /// Starts inputs that have not started, waits until all inputs are at their ends and their epochs are complete, writes
    /// the contents of views, and ends the outputs of changes. If these resume after a restart, they do not end: a checkpoint
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

    /// Writes the contents of views to their outputs, as of the last commit.
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
        let request = output.request(contents.schema().clone(), Visibility::WhenFinished);
        let mut writer = self.connectors.formats.create(&*output.sink, &request)?;
        while let Some(rows) = contents.pull_combined()? {
            interrupt::check()?;
            writer.write(&rows)?;
        }
        writer.finish()
    }
}

/// The name of an output in checkpoints; fails if it cannot resume after a restart.
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
