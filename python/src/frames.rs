//! Replacement scans: SQL reads what a variable of Python holds, by its name.
//!
//! A name of which there is no relation is looked up among the variables of the function that has called, then among those of its module. If the
//! object there has Arrow data, the engine reads it as a path of the format [`Frames`] is the source of. It stays known while
//! the statement runs, and until the rows of its result are taken.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, ThreadId};

use alluvium::arrow::array::{RecordBatch, RecordBatchIterator, RecordBatchReader};
use alluvium::arrow::compute::cast;
use alluvium::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use alluvium::{Error, Inferred, Portion, Source, SourceReader, SourceRequest};
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::call;
use crate::rows::{arrow_reader, arrow_reader_is, take_rows};

/// The folder of the paths that stand for frames.
const FOLDER: &str = "python-variable:";

/// The name of the relation of values that a statement of [`many`](crate::many) inserts.
const VALUES: &str = "values_of_executemany";

/// The objects that statements read, by number.
#[derive(Default)]
pub(crate) struct Frames {
    known: Mutex<HashMap<u64, Arc<Frame>>>,
    next: AtomicU64,
    /// Those that the statement reads which this thread runs.
    used: Mutex<HashMap<ThreadId, Used>>,
}

/// The variables that a statement names.
#[derive(Default)]
struct Used {
    frames: Vec<u64>,
    /// One that has no Arrow data, and its type.
    unreadable: Option<(String, String)>,
    /// What [`VALUES`] stands for.
    values: Option<RecordBatch>,
}

/// What stands for a relation: an object that has Arrow data, or rows.
struct Frame {
    name: String,
    schema: SchemaRef,
    data: Data,
}

enum Data {
    Object {
        object: Py<PyAny>,
        /// What was opened to know the columns.
        first: Mutex<Option<Box<dyn RecordBatchReader + Send>>>,
    },
    /// The values of a statement that runs for many rows.
    Values(RecordBatch),
}

/// The frames of one statement, which are forgotten when it is dropped.
pub(crate) struct Scope {
    frames: Arc<Frames>,
    /// Those of the statement around it, while it runs: a function in Python may run statements.
    outer: Option<Used>,
    is_running: bool,
    used: Used,
}

impl Scope {
    /// A statement begins on this thread.
    pub(crate) fn begin(frames: &Arc<Frames>) -> Self {
        let outer = frames.used.lock().insert(thread::current().id(), Used::default());
        Self { frames: frames.clone(), outer, is_running: true, used: Used::default() }
    }

    /// The statement has run; its rows are taken as long as this is there.
    pub(crate) fn end(mut self) -> Self {
        self.stop();
        self
    }

    /// Why a variable that the statement names is not read, if there is one.
    pub(crate) fn hint(&self) -> Option<String> {
        let (name, kind) = self.used.unreadable.as_ref()?;
        Some(format!(
            "the variable \"{name}\" is of type {kind}, which has no Arrow data to read: make a frame of it"
        ))
    }

    /// What to do about a variable that has rows, and that a statement names which reads none of it; `None` if it has none.
    pub(crate) fn hint_for(py: Python<'_>, name: &str) -> Option<String> {
        let object = variable(py, name).ok()??;
        arrow_reader_is(&object).ok()?.then(|| {
            format!(
                "the variable \"{name}\" is no part of the database: CREATE TABLE t AS SELECT * FROM \"{name}\", and name that table"
            )
        })
    }

    /// The same over a connection.
    pub(crate) fn hint_for_server(py: Python<'_>, name: &str) -> Option<String> {
        let object = variable(py, name).ok()??;
        arrow_reader_is(&object).ok()?.then(|| {
            format!(
                "the variable \"{name}\" is one of this process, which a server cannot read: insert() its rows into a table, and name that"
            )
        })
    }

    fn stop(&mut self) {
        if std::mem::take(&mut self.is_running) {
            let mut used = self.frames.used.lock();
            let own = used.remove(&thread::current().id());
            self.used = own.unwrap_or_default();
            if let Some(outer) = self.outer.take() {
                used.insert(thread::current().id(), outer);
            }
        }
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        self.stop();
        let mut known = self.frames.known.lock();
        let forgotten: Vec<_> =
            self.used.frames.iter().filter_map(|number| known.remove(number)).collect();
        drop(known);
        // They refer to objects of Python, whose ends may run code.
        drop(forgotten);
    }
}

impl Frames {
    /// The path that stands for the object that a variable of the caller holds.
    pub(crate) fn find(&self, name: &str) -> Option<PathBuf> {
        let frame = match self.values(name) {
            Some(values) => values,
            None => {
                let found = Python::try_attach(|py| self.look_up(py, name))?;
                let frame = found
                    .inspect_err(|error| Python::attach(|py| call::caused(error.clone_ref(py))));
                frame.ok()??
            }
        };
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.known.lock().insert(number, Arc::new(frame));
        self.note(|used| used.frames.push(number));
        Some(PathBuf::from(format!("{FOLDER}{number}")))
    }

    /// From now on [`VALUES`] stands for these rows, in the statements of this thread's scope.
    pub(crate) fn give(&self, values: RecordBatch) {
        self.note(|used| used.values = Some(values));
    }

    /// The rows that have been given, if it is their name.
    fn values(&self, name: &str) -> Option<Frame> {
        if name != VALUES {
            return None;
        }
        let values = self.used.lock().get(&thread::current().id())?.values.clone()?;
        Some(Frame { name: name.to_owned(), schema: values.schema(), data: Data::Values(values) })
    }

    fn look_up(&self, py: Python<'_>, name: &str) -> PyResult<Option<Frame>> {
        let Some(object) = variable(py, name)? else { return Ok(None) };
        if !arrow_reader_is(&object)? {
            let kind = object.get_type().name()?.to_string();
            self.note(|used| used.unreadable = Some((name.to_owned(), kind)));
            return Ok(None);
        }
        let Some(reader) = arrow_reader(&object)? else { return Ok(None) };
        let schema = flat(&reader.schema());
        let data = Data::Object { object: object.unbind(), first: Mutex::new(Some(reader)) };
        Ok(Some(Frame { name: name.to_owned(), schema, data }))
    }

    /// Notes a variable of the statement that this thread runs.
    fn note(&self, note: impl FnOnce(&mut Used)) {
        note(self.used.lock().entry(thread::current().id()).or_default());
    }

    fn frame(&self, path: &Path) -> alluvium::Result<Arc<Frame>> {
        let number = path.to_str().and_then(|path| path.strip_prefix(FOLDER)?.parse::<u64>().ok());
        let frame = number.and_then(|number| self.known.lock().get(&number).cloned());
        frame.ok_or_else(|| {
            Error::source("a variable of Python is read only by the statement that names it")
        })
    }
}

/// The columns, with the types of the values of those that are encoded as runs.
fn flat(schema: &SchemaRef) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| match field.data_type() {
        DataType::RunEndEncoded(_, values) => {
            Arc::new(Field::new(field.name(), values.data_type().clone(), true))
        }
        _ => field.clone(),
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// What a variable of the caller holds.
fn variable<'py>(py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    let mut frame = py.import("sys")?.call_method1("_getframe", (0,)).ok();
    while let Some(caller) = frame {
        let globals = caller.getattr("f_globals")?;
        let module = globals.cast::<PyDict>().ok().map(|globals| globals.get_item("__name__"));
        let module = module.transpose()?.flatten().and_then(|name| name.extract::<String>().ok());
        // This package calls for others.
        if module.is_some_and(|module| module.starts_with("alluvium.")) {
            frame = caller.getattr("f_back")?.extract()?;
            continue;
        }
        for variables in [caller.getattr("f_locals")?, globals] {
            if let Some(object) = item(&variables, name)? {
                return Ok(Some(object));
            }
        }
        return Ok(None);
    }
    Ok(None)
}

/// The variable of a name; SQL folds names that are not in quotes.
fn item<'py>(variables: &Bound<'py, PyAny>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    if variables.contains(name)? {
        return variables.get_item(name).map(Some);
    }
    for key in variables.call_method0("keys")?.try_iter()? {
        let key = key?;
        if key.extract::<&str>().is_ok_and(|key| key.eq_ignore_ascii_case(name)) {
            return variables.get_item(key).map(Some);
        }
    }
    Ok(None)
}

/// The engine's source of frames.
pub(crate) struct FrameSource(pub(crate) Arc<Frames>);

impl Source for FrameSource {
    fn name(&self) -> &str {
        "python"
    }

    fn handles(&self, path: &Path) -> bool {
        path.to_str().is_some_and(|path| path.starts_with(FOLDER))
    }

    fn infer(&self, path: &Path, _: &[(String, String)]) -> alluvium::Result<Inferred> {
        Ok(Inferred::new(self.0.frame(path)?.schema.clone(), Vec::new()))
    }

    fn open(&self, request: &SourceRequest) -> alluvium::Result<Box<dyn SourceReader>> {
        let frame = self.0.frame(&request.path)?;
        let reader = frame.open()?;
        let schema = request.schema.clone();
        Ok(Box::new(FrameReader { frame, reader, schema }))
    }
}

impl Frame {
    /// Its rows, from the beginning. Fails if they have been read, and cannot be again.
    fn open(&self) -> alluvium::Result<Box<dyn RecordBatchReader + Send>> {
        let (object, first) = match &self.data {
            Data::Object { object, first } => (object, first),
            Data::Values(values) => {
                let rows = RecordBatchIterator::new([Ok(values.clone())], self.schema.clone());
                return Ok(Box::new(rows));
            }
        };
        let taken = Python::try_attach(|py| {
            take_rows(object.bind(py)).map_err(|error| self.failed(py, error))
        });
        taken.unwrap_or(Ok(()))?;
        if let Some(first) = first.lock().take() {
            return Ok(first);
        }
        let opened = Python::try_attach(|py| {
            arrow_reader(object.bind(py)).map_err(|error| self.failed(py, error))
        });
        let gone = || Error::source(format!("\"{}\" cannot be read any more", self.name));
        opened.ok_or_else(gone)??.ok_or_else(gone)
    }

    fn failed(&self, py: Python<'_>, error: PyErr) -> Error {
        let message = format!("the variable \"{}\" cannot be read: {error}", self.name);
        call::caused(error.clone_ref(py));
        Error::source(message)
    }
}

/// Reads the rows of a frame.
struct FrameReader {
    frame: Arc<Frame>,
    reader: Box<dyn RecordBatchReader + Send>,
    schema: SchemaRef,
}

impl SourceReader for FrameReader {
    fn next(&mut self) -> alluvium::Result<Option<Portion>> {
        let Some(batch) = self.reader.next() else { return Ok(None) };
        let failed = |error| {
            let name = &self.frame.name;
            Error::source(format!("the variable \"{name}\" cannot be read: {error}"))
        };
        let batch = batch.map_err(failed)?;
        let columns = self.schema.fields().iter().zip(batch.columns());
        let columns = columns.map(|(field, column)| cast(column, field.data_type()));
        let columns = columns.collect::<Result<_, _>>().map_err(failed)?;
        let rows = RecordBatch::try_new(self.schema.clone(), columns).map_err(failed)?;
        Ok(Some(Portion::new(rows)))
    }
}
