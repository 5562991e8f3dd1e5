//! The outputs of all views.
//!
//! An output of *changes* is a subscription with a thread of its own, which writes every change as it comes. A writer
//! that falls far behind holds up commits, as any subscriber does. An output of *contents* is written when the engine
//! finishes. Dropping a view ends its outputs of changes; rows that they have written stay.
//!
//! With a state directory an output of changes resumes after a restart, without gap or duplicate. A checkpoint has the state
//! of its subscription and its length at the checkpoint's epoch. The engine that resumes cuts it back to that length, and
//! writes the changes of later epochs again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, ThreadId};
use std::time::SystemTime;

use alluvium_trace::Epoch;
use arrow::datatypes::SchemaRef;
use parking_lot::Mutex;

use super::running::{Marks, Running};
use super::{Delivery, Sink, SinkRequest, Visibility};
use crate::catalog::RelationKind;
use crate::durable::checkpoint::OutputName;
use crate::error::{Error, Result};
use crate::source::{FILE, OutputWriter, TransportConnector};
use crate::subscription::feed::Waiting;

/// Which rows of a view an output writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OutputMode {
    /// Every change, as a row with its epoch and weight in front.
    Changes,
    /// The rows it holds when the engine finishes.
    Contents,
}

/// What a view's rows are written to, and which: a connector that has been checked.
pub(crate) struct Output {
    pub(crate) to: Destination,
    /// `None` for what suits the view: contents if it keeps them, or else changes.
    pub(crate) mode: Option<OutputMode>,
}

/// What rows are written to.
pub(crate) enum Destination {
    /// A file.
    File(FileOutput),
    /// Another system, and where in it, for people.
    Delivery { delivery: Arc<dyn Delivery>, connector: TransportConnector, place: PathBuf },
}

/// A file that rows are written to.
pub(crate) struct FileOutput {
    pub(crate) path: PathBuf,
    pub(crate) sink: Arc<dyn Sink>,
    pub(crate) options: Vec<(String, String)>,
}

impl FileOutput {
    /// The request to its sink: to write rows of these columns from the start.
    pub(crate) fn request(&self, schema: SchemaRef, visibility: Visibility) -> SinkRequest {
        let mut request = SinkRequest::new(&self.path, schema, visibility);
        request.options.clone_from(&self.options);
        request
    }
}

impl Output {
    /// Where it is; no two outputs are at the same place.
    pub(crate) fn path(&self) -> &Path {
        match &self.to {
            Destination::File(file) => &file.path,
            Destination::Delivery { place, .. } => place,
        }
    }

    /// The mode in which it writes a relation of this kind.
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
    Contents(FileOutput),
    Changes(OpenedChanges),
}

/// An output of changes that can be written.
pub(crate) struct OpenedChanges {
    pub(crate) path: PathBuf,
    pub(crate) writer: OpenedWriter,
    /// The epoch whose changes, with those before it, are written already.
    pub(crate) written: Option<Epoch>,
    /// Its name in checkpoints, if it resumes after a restart.
    pub(crate) name: Option<OutputName>,
}

/// How an output of changes is written.
pub(crate) enum OpenedWriter {
    /// To a file that is open, as rows of these columns.
    Rows(OutputWriter, SchemaRef),
    /// To another system, which is connected to once the view is there.
    Delivery(Arc<dyn Delivery>, TransportConnector),
}

impl OpenedWriter {
    /// `file`, or the name of a delivery.
    pub(crate) fn kind(&self) -> &str {
        match self {
            Self::Rows(..) => FILE,
            Self::Delivery(delivery, _) => delivery.name(),
        }
    }

    /// The connector to another system.
    pub(crate) fn connector(&self) -> Option<&TransportConnector> {
        match self {
            Self::Rows(..) => None,
            Self::Delivery(_, connector) => Some(connector),
        }
    }
}

/// An output, and how far it is.
pub(crate) struct ShownOutput {
    pub(crate) relation: String,
    /// The name of the sink that it is, if it is one.
    pub(crate) sink: Option<String>,
    /// What it is written by: `file`, or the name of a delivery.
    pub(crate) kind: String,
    pub(crate) path: PathBuf,
    pub(crate) mode: OutputMode,
    pub(crate) state: &'static str,
    /// Why it cannot be written any further.
    pub(crate) error: Option<String>,
    /// The last epoch with changes that are written.
    pub(crate) epoch: Option<Epoch>,
    pub(crate) rows: u64,
    pub(crate) minute_rows: u64,
    /// The changes that wait to be written.
    pub(crate) waiting: Option<Waiting>,
    pub(crate) last_rows: Option<SystemTime>,
    /// Whether changes are there once, also after a restart; `None` as long as it is not known.
    pub(crate) is_exact: Option<bool>,
}

/// All outputs there are.
#[derive(Default)]
pub(crate) struct Outputs {
    pub(crate) contents: Mutex<Vec<(String, FileOutput)>>,
    pub(crate) changes: Mutex<Vec<Running>>,
    /// From the checkpoint that the engine resumes from: its epoch, and the lengths of outputs.
    pub(crate) restored: Mutex<BTreeMap<OutputName, (Epoch, u64)>>,
    /// While what was done before is done again: what could not be opened, by the names of relations or recorded names of sinks.
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

    /// The output that is a sink of this name; nobody else ends it.
    pub(crate) fn take_sink(&self, name: &str) -> Option<Running> {
        let mut changes = self.changes.lock();
        let place = changes.iter().position(|running| running.sink.as_deref() == Some(name))?;
        Some(changes.remove(place))
    }

    /// The relations with an output that uses a secret.
    pub(crate) fn users_of_secret(&self, name: &str) -> BTreeSet<String> {
        let changes = self.changes.lock();
        let uses = |running: &&Running| {
            running.connector.as_ref().is_some_and(|connector| connector.uses_secret(name))
        };
        changes.iter().filter(uses).map(|running| running.relation.clone()).collect()
    }

    /// How far each is.
    pub(crate) fn shown(&self) -> Vec<ShownOutput> {
        let contents = self.contents.lock();
        let contents = contents.iter().map(|(relation, output)| ShownOutput {
            relation: relation.clone(),
            sink: None,
            kind: FILE.to_owned(),
            path: output.path.clone(),
            mode: OutputMode::Contents,
            state: "waiting",
            error: None,
            epoch: None,
            rows: 0,
            minute_rows: 0,
            waiting: None,
            last_rows: None,
            is_exact: Some(true),
        });
        let mut shown: Vec<ShownOutput> = contents.collect();
        shown.extend(self.changes.lock().iter().map(|running| {
            let written = running.written();
            let (state, error) = match written.ended.get() {
                None => ("running", running.trouble()),
                Some(Ok(())) => ("finished", None),
                Some(Err(error)) => ("failed", Some(error.clone())),
            };
            ShownOutput {
                relation: running.relation.clone(),
                sink: running.sink.clone(),
                kind: running.kind.clone(),
                path: running.path.clone(),
                mode: OutputMode::Changes,
                state,
                error,
                epoch: Some(written.epoch.load(Ordering::Relaxed)).filter(|epoch| *epoch > 0),
                rows: written.pace.all().rows,
                minute_rows: written.pace.minute().rows,
                waiting: running.waiting(),
                last_rows: written.pace.last(),
                is_exact: written.is_exact.get().copied(),
            }
        }));
        shown
    }

    /// Outputs resume where they were at the end of an epoch.
    pub(crate) fn restore(&self, epoch: Epoch, lengths: Vec<(OutputName, u64)>) {
        let restored = lengths.into_iter().map(|(output, length)| (output, (epoch, length)));
        self.restored.lock().extend(restored);
    }

    /// Notes that an output of a relation, or a sink, could not be opened. The journal may say that it is dropped later.
    pub(crate) fn miss(&self, recorded: &str, error: Error) {
        self.missing.lock().push((recorded.to_owned(), error));
    }

    /// Forgets that a sink could not be opened, by the name by which it is recorded. Returns whether that was so.
    pub(crate) fn forget_missing(&self, sink: &str) -> bool {
        let mut missing = self.missing.lock();
        let before = missing.len();
        missing.retain(|(recorded, _)| recorded != sink);
        missing.len() < before
    }

    /// Fails with the error of an output that could not be opened, if there is one.
    pub(crate) fn check_missing(&self) -> Result<()> {
        match self.missing.lock().first() {
            Some((_, error)) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// Those that resume after a restart, marked after an epoch.
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
            running.give_up();
            if running.thread() != here {
                // No handle is left that could return the error.
                let _ = running.join();
            }
        }
    }
}
