//! The formats an engine knows.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use alluvium_dataflow::messages::shorten::shorten;
use arrow::array::RecordBatch;

use super::waiting::Waiting;
use super::{
    Inferred, Portion, Secrets, Source, SourceFiles, SourcePosition, SourceReader, SourceRequest,
    System, Transport, TransportRequest, Unread,
};
use crate::error::{Error, Result};
use crate::poison::Poison;
use crate::sink::{Delivery, DeliveryRequest, DeliveryWriter, Sink, SinkRequest, SinkWriter};

/// What an engine is built with to read from elsewhere, and to write there.
#[derive(Default)]
pub(crate) struct Registered {
    pub(crate) sources: Vec<Arc<dyn Source>>,
    pub(crate) transports: Vec<Arc<dyn Transport>>,
    pub(crate) sinks: Vec<Arc<dyn Sink>>,
    pub(crate) deliveries: Vec<Arc<dyn Delivery>>,
    /// What connectors need to know and do not have.
    pub(crate) secrets: Secrets,
}

/// What an engine was built with to read from elsewhere, and to write there. A panic inside any of it poisons the engine.
pub(crate) struct Registry {
    registered: Registered,
    poison: Arc<Poison>,
    /// The reads that may wait for another program.
    pub(crate) waiting: Arc<Waiting>,
}

impl Registry {
    pub(crate) fn new(registered: Registered, poison: Arc<Poison>) -> Self {
        Self { registered, poison, waiting: Arc::default() }
    }

    pub(crate) fn secrets(&self) -> &Secrets {
        &self.registered.secrets
    }

    /// The source of this format or, if none is named, the first one that handles the path.
    pub(crate) fn source(&self, format: Option<&str>, path: &Path) -> Result<Arc<dyn Source>> {
        let names = || self.registered.sources.iter().map(|source| source.name());
        let found = match format {
            Some(format) => self
                .registered
                .sources
                .iter()
                .find(|source| source.name().eq_ignore_ascii_case(format)),
            None => self.registered.sources.iter().find(|source| source.handles(path)),
        };
        found.cloned().ok_or_else(|| unknown(format, path, "reads", "sources", names()))
    }

    /// The sink of this format or, if none is named, the first one that handles the path.
    pub(crate) fn sink(&self, format: Option<&str>, path: &Path) -> Result<Arc<dyn Sink>> {
        let names = || self.registered.sinks.iter().map(|sink| sink.name());
        let found = match format {
            Some(format) => {
                self.registered.sinks.iter().find(|sink| sink.name().eq_ignore_ascii_case(format))
            }
            None => self.registered.sinks.iter().find(|sink| sink.handles(path)),
        };
        found.cloned().ok_or_else(|| unknown(format, path, "writes", "sinks", names()))
    }

    /// The transport that a connector of a table names.
    pub(crate) fn transport(&self, name: &str) -> Option<&Arc<dyn Transport>> {
        named(&self.registered.transports, name, "_input")
    }

    /// The delivery that a connector of a view names.
    pub(crate) fn delivery(&self, name: &str) -> Option<&Arc<dyn Delivery>> {
        named(&self.registered.deliveries, name, "_output")
    }

    /// The names that connectors of tables know transports by.
    pub(crate) fn names_of_transports(&self) -> impl Iterator<Item = String> {
        names(&self.registered.transports, "_input")
    }

    /// The names that connectors of views know deliveries by.
    pub(crate) fn names_of_deliveries(&self) -> impl Iterator<Item = String> {
        names(&self.registered.deliveries, "_output")
    }

    /// The names of all systems other than files, in quotes.
    pub(crate) fn names_of_systems(&self) -> impl Iterator<Item = String> {
        let transports = self.registered.transports.iter().map(|system| system.name());
        let deliveries = self.registered.deliveries.iter().map(|system| system.name());
        let names: BTreeSet<&str> = transports.chain(deliveries).collect();
        names.into_iter().map(|name| format!("\"{name}\""))
    }

    /// Begins to read from a transport.
    pub(crate) fn open_transport(
        &self,
        transport: &dyn Transport,
        request: &TransportRequest,
    ) -> Result<InputReader> {
        let guard = self.guard("transport", transport.name());
        let reader = guard.call(|| transport.open(request))?;
        Ok(InputReader { reader, guard, waiting: self.waiting.clone(), path: None })
    }

    /// Begins to read.
    pub(crate) fn open(&self, source: &dyn Source, request: &SourceRequest) -> Result<InputReader> {
        let guard = self.guard("source", source.name());
        let (waiting, path) = (self.waiting.clone(), Waiting::of(&request.path));
        let open = || guard.call(|| source.open(request));
        let reader = waiting.during(path.as_deref(), open)?;
        Ok(InputReader { reader, guard, waiting, path })
    }

    /// The columns that paths have.
    pub(crate) fn infer(
        &self,
        source: &dyn Source,
        (paths, base): (&[PathBuf], &Path),
        options: &[(String, String)],
    ) -> Result<Inferred> {
        let guard = self.guard("source", source.name());
        let infer = || guard.call(|| source.infer_all(paths, base, options));
        let waits = paths.first().and_then(|path| Waiting::of(path));
        self.waiting.during(waits.as_deref(), infer)
    }

    /// As [`Source::files`].
    pub(crate) fn files(
        &self,
        source: &dyn Source,
        paths: &[PathBuf],
        request: &SourceRequest,
    ) -> Result<Option<SourceFiles>> {
        self.guard("source", source.name()).call(|| source.files(paths, request))
    }

    /// Begins to write.
    pub(crate) fn create(&self, sink: &dyn Sink, request: &SinkRequest) -> Result<OutputWriter> {
        let guard = self.guard("sink", sink.name());
        let writer = guard.call(|| sink.create(request))?;
        Ok(OutputWriter { writer, guard })
    }

    /// Begins to write to another system.
    pub(crate) fn deliver(
        &self,
        delivery: &dyn Delivery,
        request: &DeliveryRequest,
    ) -> Result<DeliveryOutput> {
        let guard = self.guard("delivery", delivery.name());
        let writer = guard.call(|| delivery.open(request))?;
        Ok(DeliveryOutput { writer, guard })
    }

    fn guard(&self, kind: &str, name: &str) -> Guard {
        Guard { who: format!("the {kind} \"{name}\""), poison: self.poison.clone() }
    }
}

/// The system that a connector names, with what is behind the names of its direction or not.
fn named<'a, S: System + ?Sized>(
    systems: &'a [Arc<S>],
    name: &str,
    behind: &str,
) -> Option<&'a Arc<S>> {
    let name = name.to_ascii_lowercase();
    let name = name.strip_suffix(behind).unwrap_or(&name);
    systems.iter().find(|system| system.name() == name)
}

/// The names of files and of other systems, in quotes, with what is behind those of a direction.
fn names<S: System + ?Sized>(systems: &[Arc<S>], behind: &str) -> impl Iterator<Item = String> {
    let others = systems.iter().map(|system| system.name());
    ["file"].into_iter().chain(others).map(move |name| format!("\"{name}{behind}\""))
}

fn unknown<'a>(
    format: Option<&str>,
    path: &Path,
    verb: &str,
    kind: &str,
    names: impl Iterator<Item = &'a str>,
) -> Error {
    let known = names.collect::<Vec<_>>();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    match format {
        Some(format) => Error::source(format!(
            "nothing here {verb} the format \"{format}\"; registered {kind}: {known}"
        )),
        None => Error::source(format!(
            "nothing here {verb} \"{}\"; registered {kind}: {known}",
            path.display()
        )),
    }
}

/// Whose panics poison the engine.
struct Guard {
    who: String,
    poison: Arc<Poison>,
}

impl Guard {
    fn call<R>(&self, call: impl FnOnce() -> Result<R>) -> Result<R> {
        catch_unwind(AssertUnwindSafe(call))
            .unwrap_or_else(|panic| Err(self.poison.spread_panic(&self.who, &*panic)))
    }
}

/// A reader whose panics poison the engine.
pub(crate) struct InputReader {
    reader: Box<dyn SourceReader>,
    guard: Guard,
    waiting: Arc<Waiting>,
    /// The path, if reading it may wait.
    path: Option<Arc<Path>>,
}

impl InputReader {
    /// The next rows, as [`SourceReader::next`], with messages that are not longer than anyone reads.
    pub(crate) fn next(&mut self) -> Result<Option<Portion>> {
        let next = || self.guard.call(|| self.reader.next());
        let portion = self.waiting.during(self.path.as_deref(), next)?;
        Ok(portion.map(with_short_messages))
    }

    /// As [`SourceReader::next_to`].
    pub(crate) fn next_to(&mut self, end: &SourcePosition) -> Result<Option<Portion>> {
        let next = || self.guard.call(|| self.reader.next_to(end));
        let portion = self.waiting.during(self.path.as_deref(), next)?;
        Ok(portion.map(with_short_messages))
    }

    /// As [`SourceReader::replays`].
    pub(crate) fn replays(&self) -> Result<bool> {
        self.guard.call(|| Ok(self.reader.replays()))
    }

    /// As [`SourceReader::unread`] and [`SourceReader::unread_bytes`].
    pub(crate) fn unread(&self) -> Result<Unread> {
        let reader = &self.reader;
        self.guard.call(|| Ok(Unread { rows: reader.unread(), bytes: reader.unread_bytes() }))
    }

    /// As [`SourceReader::position`].
    pub(crate) fn position(&self) -> Result<Option<SourcePosition>> {
        self.guard.call(|| Ok(self.reader.position()))
    }
}

/// A portion whose messages are not longer than anyone reads.
fn with_short_messages(mut portion: Portion) -> Portion {
    for refusal in &mut portion.refused {
        refusal.message = shorten(std::mem::take(&mut refusal.message));
    }
    portion
}

/// A writer whose panics poison the engine.
pub(crate) struct OutputWriter {
    writer: Box<dyn SinkWriter>,
    guard: Guard,
}

impl OutputWriter {
    /// As [`SinkWriter::write`].
    pub(crate) fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        self.guard.call(|| self.writer.write(rows))
    }

    /// As [`SinkWriter::flush`].
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.guard.call(|| self.writer.flush())
    }

    /// As [`SinkWriter::sync`].
    pub(crate) fn sync(&mut self) -> Result<u64> {
        self.guard.call(|| self.writer.sync())
    }

    /// As [`SinkWriter::finish`].
    pub(crate) fn finish(self) -> Result<()> {
        let Self { writer, guard } = self;
        guard.call(|| writer.finish())
    }
}

/// A writer to another system whose panics poison the engine.
pub(crate) struct DeliveryOutput {
    writer: Box<dyn DeliveryWriter>,
    guard: Guard,
}

impl DeliveryOutput {
    /// As [`DeliveryWriter::delivered`].
    pub(crate) fn delivered(&self) -> Result<Option<u64>> {
        self.guard.call(|| Ok(self.writer.delivered()))
    }

    /// As [`DeliveryWriter::keeps_marks`].
    pub(crate) fn keeps_marks(&self) -> Result<bool> {
        self.guard.call(|| Ok(self.writer.keeps_marks()))
    }

    /// As [`DeliveryWriter::write`].
    pub(crate) fn write(&mut self, epoch: u64, rows: &RecordBatch, weights: &[i64]) -> Result<()> {
        self.guard.call(|| self.writer.write(epoch, rows, weights))
    }

    /// As [`DeliveryWriter::commit`].
    pub(crate) fn commit(&mut self, epoch: u64) -> Result<()> {
        self.guard.call(|| self.writer.commit(epoch))
    }
}
