//! Sessions: SQL, statement by statement.

use std::sync::Arc;

use alluvium::Value;
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyTuple, PyType};

use crate::backend::{self, Answer, Backend};
use crate::convert;
use crate::error;
use crate::frames::Scope;
use crate::many::Many;
use crate::open::Place;
use crate::result::Result;
use crate::slot::Slot;

/// One client: its settings, its temporary tables, and at most one open transaction, which closing it rolls back.
///
/// :meth:`Database.session` begins one. Several sessions run statements at the same time.
#[pyclass(module = "alluvium", frozen, weakref)]
pub(crate) struct Session {
    session: Arc<Slot<Box<dyn backend::Session>>>,
}

impl Session {
    /// A session of a database.
    pub(crate) fn new(py: Python<'_>, backend: &Slot<Arc<dyn Backend>>) -> PyResult<Self> {
        let session = backend.share(py, |backend| backend.session())?;
        Ok(Self { session: Slot::new(backend.open(), session) })
    }

    /// Runs statements, and returns what the last of them does.
    pub(crate) fn run(
        &self,
        py: Python<'_>,
        sql: &str,
        parameters: &Bound<'_, PyTuple>,
    ) -> PyResult<Result> {
        let values = parameters.iter().map(|value| convert::parameter(&value));
        let values: Vec<Value> = values.collect::<PyResult<_>>()?;
        let scope = Scope::begin(self.session.open().frames());
        let answer = self.session.call(py, Some(sql), |session| session.run(sql, &values));
        let frames = scope.end();
        let hinted = |error: PyErr| {
            let hint = |name: &str| match self.session.open().place() {
                Place::Server => Scope::hint_for_server(py, name),
                _ => frames.hint().or_else(|| Scope::hint_for(py, name)),
            };
            error::hinted(py, error, sql, hint)
        };
        match answer.map_err(hinted)? {
            Answer::Subscribed => Err(error::not_supported(
                py,
                "sql() runs no SUBSCRIBE: call Database.subscribe(), which iterates over changes",
            )),
            answer => Ok(Result::new(self.session.open(), answer, Some(frames), sql)),
        }
    }
}

#[pymethods]
impl Session {
    /// Runs SQL and returns the result of its last statement, as :meth:`Database.sql` does.
    #[pyo3(signature = (query, *parameters))]
    fn sql(
        &self,
        py: Python<'_>,
        query: &str,
        parameters: &Bound<'_, PyTuple>,
    ) -> PyResult<Result> {
        self.run(py, query, parameters)
    }

    /// Whether a transaction is open.
    #[getter]
    pub(crate) fn in_transaction(&self, py: Python<'_>) -> PyResult<bool> {
        self.session.call(py, None, |session| Ok(session.in_transaction()))
    }

    /// Runs a statement that returns no rows once for each row of values; returns how many rows it has changed. ``insert`` inserts the rows of the
    /// relation ``values_of_executemany``, if the statement does that with one row.
    ///
    /// A transaction is open, and part of the rows may be changed if it fails.
    #[pyo3(signature = (query, insert, rows))]
    fn _many(
        &self,
        py: Python<'_>,
        query: &str,
        insert: Option<&str>,
        rows: &Bound<'_, PyIterator>,
    ) -> PyResult<u64> {
        Many { session: &self.session, sql: query, insert }.run(py, rows)
    }

    /// Ends the session, and rolls back its transaction.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.session.shut(py)
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

    fn __repr__(&self) -> &'static str {
        match self.session.is_closed() {
            true => "<alluvium.Session, closed>",
            false => "<alluvium.Session>",
        }
    }
}
