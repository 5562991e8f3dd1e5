//! The changes of a relation, epoch by epoch.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use pyo3::exceptions::PyStopIteration;
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::backend;
use crate::change::Change;
use crate::error;
use crate::open::Open;
use crate::slot::Slot;
use crate::table;
use crate::wake::Waiting;

/// The changes of a relation: a snapshot, then a change for each epoch that changes it.
///
/// It waits for the next change as an iterator, and in ``async for``. Both end when the relation is dropped.
#[pyclass(module = "alluvium", frozen, weakref)]
pub(crate) struct Subscription {
    relation: String,
    columns: Vec<String>,
    types: Vec<String>,
    changes: Arc<Slot<Changes>>,
    waiting: Arc<Waiting>,
}

/// The changes of a relation, and who waits for them in ``async for``.
struct Changes {
    changes: Box<dyn backend::Changes>,
    waiting: Arc<Waiting>,
}

/// Who waits sees that it is closed.
impl Drop for Changes {
    fn drop(&mut self) {
        self.waiting.call();
    }
}

impl Subscription {
    /// A subscription to a relation of a database.
    pub(crate) fn new(
        open: &Arc<Open>,
        relation: &str,
        changes: Box<dyn backend::Changes>,
    ) -> Self {
        let (columns, types) = (table::names(changes.schema()), table::types(changes.schema()));
        let relation = relation.to_owned();
        let waiting: Arc<Waiting> = Arc::default();
        let changes = Changes { changes, waiting: waiting.clone() };
        Self { relation, columns, types, changes: Slot::new(open, changes), waiting }
    }

    /// The next change, if it comes within this time.
    fn within(&self, py: Python<'_>, timeout: Option<Duration>) -> PyResult<Option<Change>> {
        let next = self.changes.call(py, None, |Changes { changes, .. }| match timeout {
            None => changes.next(),
            Some(timeout) => changes.next_within(timeout),
        })?;
        Ok(next.map(Change::from))
    }
}

#[pymethods]
impl Subscription {
    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.columns.clone()
    }

    /// The types of the columns, as SQL has them.
    #[getter]
    fn types(&self) -> Vec<String> {
        self.types.clone()
    }

    /// Whether nothing will come any more.
    #[getter]
    fn is_over(&self, py: Python<'_>) -> PyResult<bool> {
        if self.changes.is_closed() {
            return Ok(true);
        }
        self.changes.call(py, None, |Changes { changes, .. }| Ok(changes.is_over()))
    }

    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Change>> {
        if self.changes.is_closed() {
            return Ok(None);
        }
        match self.within(py, None) {
            // Another thread has closed it meanwhile.
            Err(_) if self.changes.is_closed() => Ok(None),
            next => next,
        }
    }

    fn __aiter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __anext__<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        this.py().import("alluvium._asynchronous")?.call_method1("next_change", (this,))
    }

    /// The next change. With a timeout, in seconds, ``None`` if there is none in that time; without one, ``None`` after the last one.
    #[pyo3(signature = (timeout = None))]
    fn next(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<Change>> {
        let timeout = timeout.map(|seconds| {
            Duration::try_from_secs_f64(seconds.max(0.0))
                .map_err(|_| error::interface(py, "a timeout is a number of seconds, or None"))
        });
        self.within(py, timeout.transpose()?)
    }

    /// The next change if there is one already; else ``None``.
    fn poll(&self, py: Python<'_>) -> PyResult<Option<Change>> {
        self.within(py, Some(Duration::ZERO))
    }

    /// The next change if there is one already; else ``None``, and ``wake`` is called once there may be one. Raises ``StopIteration`` after the
    /// last one.
    fn _poll_or(&self, py: Python<'_>, wake: Py<PyAny>) -> PyResult<Option<Change>> {
        if self.changes.is_closed() {
            return Err(PyStopIteration::new_err(()));
        }
        self.waiting.add(wake);
        let waker = Waker::from(self.waiting.clone());
        let polled = self.changes.call(py, None, |Changes { changes, .. }| {
            match changes.poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(next) => next.map(Some),
                Poll::Pending => Ok(None),
            }
        });
        let polled = match polled {
            // Another thread has closed it meanwhile.
            Err(_) if self.changes.is_closed() => Some(None),
            polled => polled?,
        };
        match polled {
            None => Ok(None),
            Some(Some(change)) => Ok(Some(change.into())),
            Some(None) => Err(PyStopIteration::new_err(())),
        }
    }

    /// The last epoch whose changes have been taken with all before it, if the subscription knows that of itself, as one over a connection does.
    fn _passed(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        self.changes.call(py, None, |Changes { changes, .. }| Ok(changes.passed()))
    }

    /// Does not call what ``_poll_or`` was given.
    fn _forget(&self, wake: Py<PyAny>) {
        self.waiting.forget(&wake);
    }

    /// Ends the subscription.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.changes.shut(py)
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: Option<&Bound<'_, PyType>>,
        _error: Option<&Bound<'_, PyAny>>,
        _traceback: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        self.close(py)
    }

    fn __repr__(&self) -> String {
        let closed = if self.changes.is_closed() { ", closed" } else { "" };
        format!("<alluvium.Subscription to {}{closed}>", self.relation)
    }
}
