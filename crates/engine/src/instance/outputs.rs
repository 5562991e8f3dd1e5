//! Outputs of views: opening them, and writing contents.

use std::env;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use alluvium_sql::statement::SinkDefinition;
use arrow::datatypes::SchemaRef;
use xxhash_rust::xxh3::xxh3_64;

use super::Instance;
use crate::catalog::{Entry, RelationKind};
use crate::clock::Moment;
use crate::durable::checkpoint::OutputName;
use crate::durable::record::{Record, text_of};
use crate::error::{Error, Result};
use crate::interrupt;
use crate::sink::{
    ChangesWriter, Delivery, DeliveryRequest, Destination, FileOutput, IsOver, OpenWriter,
    OpenedChanges, OpenedOutput, OpenedWriter, Output, OutputMode, Running, Sink, SinkRequest,
    Trouble, Visibility, Writing, changes,
};
use crate::source::TransportConnector;
use crate::subscription::Client;

/// How long a view that is created waits for the system that its changes go to.
const PATIENCE: Duration = Duration::from_secs(30);

/// The name of a sink, when it was created, and its relation as it was then.
type OfSink<'a> = (&'a str, Moment, &'a Arc<Entry>);

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
        let to = Destination::File(FileOutput { path, sink, options: options.to_vec() });
        let output = Output { to, mode: Some(mode) };
        if self.connectors.outputs.has(relation, output.path())? {
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
        self.start_output(relation, None, opened, record)
    }

    /// Creates a sink, which writes the changes of a relation from what that holds on.
    pub(crate) fn create_sink(self: &Arc<Self>, sink: &SinkDefinition, base: &Path) -> Result<()> {
        if !self.definitions.claim_sink(sink)? {
            return Ok(());
        }
        let started = self.start_sink(sink, base);
        match started {
            Ok(()) => Ok(()),
            // The journal may say that it is dropped later.
            Err(error) if self.reader.sequencer.durable().is_replaying() => {
                self.connectors.outputs.miss(&Record::name_of_sink(&sink.name), error);
                Ok(())
            }
            Err(error) => {
                self.definitions.forget_sink(&sink.name);
                Err(error)
            }
        }
    }

    fn start_sink(self: &Arc<Self>, sink: &SinkDefinition, base: &Path) -> Result<()> {
        let SinkDefinition { name, relation, connector, text, .. } = sink;
        let entries = self.definitions.catalog.entries();
        let entry = entries.relation(relation)?;
        let over = (base, &entries.systems);
        let Output { to, mode } = self.connectors.formats.output(relation, connector, over)?;
        if mode == Some(OutputMode::Contents) {
            let message = "a sink writes changes: contents are written by a connector of the view";
            return Err(Error::sql(message).at(connector.position));
        }
        let output = Output { to, mode: Some(OutputMode::Changes) };
        output.mode_for(relation, entry.kind())?;
        if self.connectors.outputs.has(relation, output.path())? {
            let path = output.path().display();
            let message = format!("\"{relation}\" is written to \"{path}\" already");
            return Err(Error::sql(message).at(connector.position));
        }
        self.check_output(relation, entry.kind(), &entry.schema, &output)?;
        let created = self.writer.now()?;
        let record = Record::definition(text, base, created)?;
        let is_replaying = self.reader.sequencer.durable().is_replaying();
        if is_replaying && self.definitions.has_failed(relation)? {
            self.connectors.outputs.leave_out(relation);
            return self.definitions.record_output(&Record::name_of_sink(name), record);
        }
        let opened = self.open_output(relation, entry.kind(), &entry.schema, output)?;
        self.start_output(relation, Some((name, created, &entry)), opened, Some(record))
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

    /// Fails if there can be no such output of a relation with these columns.
    pub(crate) fn check_output(
        &self,
        relation: &str,
        kind: RelationKind,
        columns: &SchemaRef,
        output: &Output,
    ) -> Result<()> {
        match (output.mode_for(relation, kind)?, &output.to) {
            (OutputMode::Changes, Destination::File(file)) => {
                self.file_request(relation, columns, file).map(drop)
            }
            _ => Ok(()),
        }
    }

    /// The request to the sink of an output of changes of a relation with these columns, and the name of the output in checkpoints.
    fn file_request(
        &self,
        relation: &str,
        columns: &SchemaRef,
        file: &FileOutput,
    ) -> Result<(SinkRequest, Option<OutputName>)> {
        let schema = changes::schema(relation, columns)?;
        let request = file.request(schema, Visibility::WhenFlushed);
        if self.definitions.is_durable() {
            check_resumes(relation, &*file.sink, &request)?;
        }
        let name = self.output_name(relation, &request.path)?;
        Ok((request, name))
    }

    /// The name of an output in checkpoints, if there are any.
    fn output_name(&self, relation: &str, path: &Path) -> Result<Option<OutputName>> {
        let name = |path| OutputName { relation: relation.to_owned(), path };
        self.definitions.is_durable().then(|| text_of(path).map(name)).transpose()
    }

    /// Opens the sink for the contents of a relation with these columns, or for its changes.
    pub(crate) fn open_output(
        &self,
        relation: &str,
        kind: RelationKind,
        columns: &SchemaRef,
        output: Output,
    ) -> Result<OpenedOutput> {
        let mode = output.mode_for(relation, kind)?;
        if mode == OutputMode::Changes && self.is_standby() {
            return Err(Error::source(format!(
                "the changes of \"{relation}\" are written to \"{}\", which a standby cannot go on with: DROP it where it is written before a \
                 standby follows",
                output.path().display()
            )));
        }
        let restored = |name: Option<&OutputName>| {
            name.and_then(|name| self.connectors.outputs.restored.lock().remove(name))
        };
        Ok(match (output.to, mode) {
            (Destination::File(file), OutputMode::Contents) => OpenedOutput::Contents(file),
            (Destination::File(file), OutputMode::Changes) => {
                let (mut request, name) = self.file_request(relation, columns, &file)?;
                let restored = restored(name.as_ref());
                request.start = restored.map(|(_, length)| length);
                let writer = self.connectors.formats.create(&*file.sink, &request)?;
                let writer = OpenedWriter::Rows(writer, request.schema);
                let written = restored.map(|(epoch, _)| epoch);
                OpenedOutput::Changes(OpenedChanges { path: file.path, writer, written, name })
            }
            (Destination::Delivery { delivery, connector, place }, _) => {
                let name = self.output_name(relation, &place)?;
                let written = restored(name.as_ref()).map(|(epoch, _)| epoch);
                let writer = OpenedWriter::Delivery(delivery, connector);
                OpenedOutput::Changes(OpenedChanges { path: place, writer, written, name })
            }
        })
    }

    /// How an output writes to another system. A view that is created is not there if the system cannot be reached.
    fn connect(
        self: &Arc<Self>,
        (relation, sink): (&str, Option<OfSink<'_>>),
        (delivery, connector): (Arc<dyn Delivery>, TransportConnector),
        place: &Path,
        (is_over, trouble): (&Arc<AtomicBool>, &Arc<Trouble>),
    ) -> Result<OpenWriter> {
        let is_new = !self.reader.sequencer.durable().is_replaying();
        let (name, created) = match sink {
            Some((name, created, _)) => (name, Some(created)),
            None => (relation, self.reader.sequencer.defined_at(relation)),
        };
        let created = match created.filter(|_| self.definitions.is_durable()) {
            Some(created) => created.to_string(),
            // It ends with this process.
            None => format!("{:x}", RandomState::new().hash_one(relation)),
        };
        let number = xxh3_64(place.as_os_str().as_encoded_bytes());
        let (poison, is_over) = (self.poison.clone(), is_over.clone());
        let is_over: IsOver =
            Arc::new(move || is_over.load(Ordering::Relaxed) || poison.check().is_err());
        let request = DeliveryRequest::new(
            connector,
            relation,
            self.definitions.catalog.get(relation)?.schema.clone(),
            format!("{name}-{created}-{number:x}"),
            is_new.then_some(PATIENCE),
            (is_over, trouble.clone()),
        );
        let formats = self.connectors.formats.clone();
        let open = move || formats.deliver(&*delivery, &request).map(ChangesWriter::to_delivery);
        match is_new {
            true => {
                let writer = open()?;
                Ok(Box::new(|| Ok(writer)))
            }
            false => Ok(Box::new(open)),
        }
    }

    /// Writes to an output that is open, which may be a sink that was created then: the contents of a relation when the engine finishes, or
    /// its changes from now on.
    pub(crate) fn start_output(
        self: &Arc<Self>,
        relation: &str,
        sink: Option<OfSink<'_>>,
        opened: OpenedOutput,
        record: Option<Record>,
    ) -> Result<()> {
        let outputs = &self.connectors.outputs;
        let record = || match (record, sink) {
            (Some(record), None) => self.definitions.record_output(relation, record),
            (Some(record), Some((name, ..))) => {
                self.definitions.record_output(&Record::name_of_sink(name), record)
            }
            (None, _) => Ok(()),
        };
        let OpenedChanges { path, writer, written, name } = match opened {
            OpenedOutput::Contents(output) => {
                outputs.contents.lock().push((relation.to_owned(), output));
                return record();
            }
            OpenedOutput::Changes(opened) => opened,
        };
        let (is_over, trouble) = (Arc::<AtomicBool>::default(), Arc::<Trouble>::default());
        let (kind, connector) = (writer.kind().to_owned(), writer.connector().cloned());
        let is_delivery = matches!(writer, OpenedWriter::Delivery(..));
        let open: OpenWriter = match writer {
            OpenedWriter::Rows(writer, schema) => {
                Box::new(|| Ok(ChangesWriter::Rows { writer, schema }))
            }
            OpenedWriter::Delivery(delivery, connector) => {
                let waiting = (&is_over, &trouble);
                self.connect((relation, sink), (delivery, connector), &path, waiting)?
            }
        };
        let lasting = name.as_ref().map(|name| &*name.path);
        let subscription = self.subscribe(relation, Client::Output(lasting))?;
        // Its system may have been waited for, and nobody with it.
        let _definitions =
            sink.map(|(name, _, entry)| self.definitions.keep_claim(name, entry)).transpose()?;
        let lasting = name.map(|name| (name, self.poison.clone()));
        let restored = written;
        let sink = sink.map(|(name, ..)| name.to_owned());
        let writing = Writing {
            sink,
            kind,
            connector,
            path,
            subscription,
            open,
            restored,
            lasting,
            is_delivery,
            is_over,
            trouble,
        };
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

    fn write_contents(&self, relation: &str, output: &FileOutput) -> Result<()> {
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

/// Fails if an output cannot resume after a restart.
fn check_resumes(relation: &str, sink: &dyn Sink, request: &SinkRequest) -> Result<()> {
    let path = request.path.display();
    match sink.resumes(request) {
        true => Ok(()),
        false => Err(Error::source(format!(
            "the changes of \"{relation}\" cannot be written to \"{path}\" by an engine with a state directory, which goes on \
             writing after a restart: that needs a file of CSV or JSON lines without compression"
        ))),
    }
}
