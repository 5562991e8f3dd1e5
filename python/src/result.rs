//! The result of a statement.

use std::collections::VecDeque;
use std::sync::Arc;

use alluvium::arrow::array::RecordBatch;
use alluvium::arrow::datatypes::SchemaRef;
use alluvium::arrow::error::ArrowError;
use parking_lot::Mutex;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use crate::backend::{Answer as Answered, Rows};
use crate::convert;
use crate::error;
use crate::export;
use crate::failure::Fallible;
use crate::frames::Scope;
use crate::open::Open;
use crate::slot::Slot;
use crate::table::{self, Table};

/// How many rows an iteration converts at once.
const ROWS: usize = 1_024;

/// The result of a statement. The rows of a query are computed as they are taken, each once.
///
/// All rows are of the version of the data that the query began with, which takes memory or disk until the last row is taken or the result is
/// closed. The text of a result shows the first rows, which can still be taken.
#[pyclass(module = "alluvium", frozen, weakref)]
pub(crate) struct Result {
    /// `None` if the statement returns no rows.
    answer: Option<Answer>,
    rows_changed: Option<u64>,
    epoch: Option<u64>,
    text: Option<String>,
}

/// The rows of a query.
struct Answer {
    schema: SchemaRef,
    rows: Arc<Slot<Pull>>,
    sql: Arc<str>,
}

/// Rows that are left to be taken.
struct Pull {
    rows: Rows,
    /// Those that are computed already.
    ready: VecDeque<RecordBatch>,
    /// Those that an iterator has, and that come before them.
    lent: Option<Arc<Lent>>,
    /// What a statement reads besides relations.
    _frames: Option<Scope>,
}

/// Rows that an iterator takes one by one, until somebody else takes rows.
struct Lent {
    batch: RecordBatch,
    /// How many of them are taken; `None` once those that are left have been given back.
    taken: Mutex<Option<usize>>,
}

impl Lent {
    /// The number of the next row; `None` if it is not to be had here.
    fn take(&self) -> Option<usize> {
        let mut taken = self.taken.lock();
        let row = taken.filter(|row| *row < self.batch.num_rows())?;
        *taken = Some(row + 1);
        Some(row)
    }

    /// Gives back what is left.
    fn end(&self) -> Option<RecordBatch> {
        let taken = self.taken.lock().take()?;
        let left = self.batch.num_rows() - taken;
        (left > 0).then(|| self.batch.slice(taken, left))
    }
}

impl Drop for Pull {
    fn drop(&mut self) {
        self.take_back();
    }
}

impl Pull {
    /// The next rows, at most so many, for an iterator.
    fn lend(&mut self, most: usize) -> Fallible<Option<Arc<Lent>>> {
        let Some(batch) = self.next(most)? else { return Ok(None) };
        let lent = Arc::new(Lent { batch, taken: Mutex::new(Some(0)) });
        self.lent = Some(lent.clone());
        Ok(Some(lent))
    }

    /// Takes back what an iterator has not taken.
    fn take_back(&mut self) {
        if let Some(left) = self.lent.take().and_then(|lent| lent.end()) {
            self.ready.push_front(left);
        }
    }

    /// The next rows, at most so many; `None` after the last ones.
    fn next(&mut self, most: usize) -> Fallible<Option<RecordBatch>> {
        self.take_back();
        loop {
            let Some(batch) = self
                .ready
                .pop_front()
                .map_or_else(|| self.rows.next().transpose(), |batch| Ok(Some(batch)))?
            else {
                return Ok(None);
            };
            if batch.num_rows() == 0 {
                continue;
            }
            if batch.num_rows() <= most {
                return Ok(Some(batch));
            }
            self.ready.push_front(batch.slice(most, batch.num_rows() - most));
            return Ok(Some(batch.slice(0, most)));
        }
    }

    /// Computes rows until so many are ready. Returns whether there may be more.
    fn prepare(&mut self, count: usize) -> Fallible<bool> {
        self.take_back();
        let mut ready: usize = self.ready.iter().map(RecordBatch::num_rows).sum();
        while ready < count {
            let Some(batch) = self.rows.next().transpose()? else { return Ok(false) };
            ready += batch.num_rows();
            self.ready.push_back(batch);
        }
        Ok(true)
    }
}

impl Answer {
    fn next(&self, py: Python<'_>, most: usize) -> PyResult<Option<RecordBatch>> {
        self.rows.call(py, Some(&self.sql), |rows| rows.next(most))
    }

    /// Up to so many rows, as tuples.
    fn tuples<'py>(&self, py: Python<'py>, most: usize) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let mut tuples = Vec::new();
        while tuples.len() < most {
            let Some(batch) = self.next(py, most - tuples.len())? else { break };
            tuples.extend(convert::rows(py, &batch, 0, batch.num_rows())?);
        }
        Ok(tuples)
    }

    /// All rows that are left.
    fn table(&self, py: Python<'_>) -> PyResult<Table> {
        let batches = self.rows.call(py, Some(&self.sql), |rows| {
            let mut batches = Vec::new();
            while let Some(batch) = rows.next(usize::MAX)? {
                batches.push(batch);
            }
            Ok(batches)
        })?;
        Ok(Table::new(self.schema.clone(), batches))
    }
}

impl Result {
    /// The result of a statement of this text.
    pub(crate) fn new(
        open: &Arc<Open>,
        answered: Answered,
        frames: Option<Scope>,
        sql: &str,
    ) -> Self {
        let mut this = Self { answer: None, rows_changed: None, epoch: None, text: None };
        match answered {
            Answered::Rows(schema, rows) => {
                let pull = Pull { rows, ready: VecDeque::new(), lent: None, _frames: frames };
                let rows = Slot::new(open, pull);
                this.answer = Some(Answer { schema, rows, sql: sql.into() });
            }
            Answered::Changed(rows, epoch) => {
                (this.rows_changed, this.epoch) = (Some(rows), epoch);
            }
            Answered::Moved(rows) => this.rows_changed = Some(rows),
            Answered::Text(text) => this.text = Some(text),
            Answered::Subscribed | Answered::Done => {}
        }
        this
    }

    /// Rows that are read without SQL.
    pub(crate) fn of_rows(open: &Arc<Open>, schema: SchemaRef, rows: Rows) -> Self {
        Self::new(open, Answered::Rows(schema, rows), None, "")
    }

    fn answer(&self, py: Python<'_>) -> PyResult<&Answer> {
        let no_rows = || error::interface(py, "the statement returns no rows");
        self.answer.as_ref().ok_or_else(no_rows)
    }
}

#[pymethods]
impl Result {
    /// The names of the columns; none of a statement that returns no rows.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.answer.as_ref().map_or_else(Vec::new, |answer| table::names(&answer.schema))
    }

    /// The types of the columns, as SQL has them.
    #[getter]
    fn types(&self) -> Vec<String> {
        self.answer.as_ref().map_or_else(Vec::new, |answer| table::types(&answer.schema))
    }

    /// Whether the statement returns rows.
    #[getter]
    fn has_rows(&self) -> bool {
        self.answer.is_some()
    }

    /// How many rows the statement has inserted, updated or deleted; ``None`` of one that changes no rows.
    #[getter]
    fn rows_changed(&self) -> Option<u64> {
        self.rows_changed
    }

    /// The epoch that the statement has made; ``None`` of a query, of a definition, and inside of a transaction.
    #[getter]
    fn epoch(&self) -> Option<u64> {
        self.epoch
    }

    /// The text that an EXPLAIN answers.
    #[getter]
    fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// The next row; ``None`` after the last one.
    fn fetchone<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        Ok(self.answer(py)?.tuples(py, 1)?.pop())
    }

    /// The next rows, at most ``size``; fewer at the end.
    #[pyo3(signature = (size = 1))]
    fn fetchmany<'py>(&self, py: Python<'py>, size: usize) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        self.answer(py)?.tuples(py, size)
    }

    /// All rows that are left.
    fn fetchall<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        self.answer(py)?.tuples(py, usize::MAX)
    }

    fn __iter__(this: Py<Self>, py: Python<'_>) -> PyResult<RowIterator> {
        this.get().answer(py)?;
        Ok(RowIterator { result: this, lent: None, tuples: Vec::new() })
    }

    /// Iterates over tables of the rows that are left, some thousand rows each.
    fn batches(this: Py<Self>, py: Python<'_>) -> PyResult<Batches> {
        this.get().answer(py)?;
        Ok(Batches { result: this })
    }

    /// The rows that are left, in memory.
    fn table(&self, py: Python<'_>) -> PyResult<Table> {
        self.answer(py)?.table(py)
    }

    /// The rows that are left, as a table of pyarrow.
    fn arrow<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        export::pyarrow(Bound::new(py, self.table(py)?)?.as_any())
    }

    /// The rows that are left, as a reader of pyarrow. It computes them as they are read, and keeps none.
    fn reader<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        export::reader(this.as_any())
    }

    /// The rows that are left, as a frame of polars.
    fn pl<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        export::polars(Bound::new(py, self.table(py)?)?.as_any())
    }

    /// The rows that are left, as a frame of pandas; it needs pyarrow.
    fn df<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        export::pandas(Bound::new(py, self.table(py)?)?.as_any())
    }

    /// The first of the rows that are left, which stay, and the number of those that are left; ``None`` if it is not known yet.
    fn peek(&self, py: Python<'_>, rows: usize) -> PyResult<(Table, Option<usize>)> {
        let answer = self.answer(py)?;
        let looked_at = rows.saturating_add(1).max(ROWS);
        let (batches, count) = answer.rows.call(py, Some(&answer.sql), |pull| {
            let has_more = pull.prepare(looked_at)?;
            let count: usize = pull.ready.iter().map(RecordBatch::num_rows).sum();
            let mut left = rows;
            let mut batches = Vec::new();
            for batch in &pull.ready {
                let taken = left.min(batch.num_rows());
                batches.push(batch.slice(0, taken));
                left -= taken;
                if left == 0 {
                    break;
                }
            }
            Ok((batches, (!has_more).then_some(count)))
        })?;
        Ok((Table::new(answer.schema.clone(), batches), count))
    }

    /// Drops the rows that are left, and the version of the data that they are read from.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.answer.as_ref().map_or(Ok(()), |answer| answer.rows.shut(py))
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let answer = self.answer(py)?;
        let (rows, sql) = (answer.rows.clone(), answer.sql.clone());
        let batches = std::iter::from_fn(move || {
            let next = Python::try_attach(|py| {
                rows.call(py, Some(&sql), |rows| rows.next(usize::MAX)).map_err(|error| {
                    let text = error.to_string();
                    interrupt_again(py, &error);
                    ArrowError::ExternalError(text.into())
                })
            });
            next.unwrap_or(Ok(None)).transpose()
        });
        export::stream(py, &answer.schema, batches, requested_schema)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        export::schema(py, &self.answer(py)?.schema)
    }

    fn __repr__<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        this.py().import("alluvium._display")?.call_method1("text", (this,))
    }

    fn _repr_html_<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        this.py().import("alluvium._display")?.call_method1("html", (this,))
    }
}

/// What reads a stream makes an error of its own of any exception. Ctrl-C is to be seen by who has called it.
fn interrupt_again(py: Python<'_>, error: &PyErr) {
    if error.is_instance_of::<PyKeyboardInterrupt>(py)
        && let Ok(threads) = py.import("_thread")
    {
        // It fails if nothing handles the signal.
        let _ = threads.call_method0("interrupt_main");
    }
}

/// Iterates over the rows of a result.
#[pyclass(module = "alluvium")]
pub(crate) struct RowIterator {
    result: Py<Result>,
    lent: Option<Arc<Lent>>,
    /// The rows that are lent.
    tuples: Vec<Py<PyTuple>>,
}

#[pymethods]
impl RowIterator {
    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __next__(&mut self, py: Python<'_>) -> PyResult<Option<Py<PyTuple>>> {
        loop {
            if let Some(row) = self.lent.as_ref().and_then(|lent| lent.take()) {
                return Ok(Some(self.tuples[row].clone_ref(py)));
            }
            // A loop takes more and more at once; one of many that take turns few.
            let is_through = self.lent.take().is_some_and(|lent| lent.taken.lock().is_some());
            let most = if is_through { ROWS.min(self.tuples.len() * 2) } else { 1 };
            let answer = self.result.get().answer(py)?;
            let Some(lent) = answer.rows.call(py, Some(&answer.sql), |rows| rows.lend(most))?
            else {
                return Ok(None);
            };
            let tuples = convert::rows(py, &lent.batch, 0, lent.batch.num_rows())?;
            self.tuples = tuples.into_iter().map(Bound::unbind).collect();
            self.lent = Some(lent);
        }
    }
}

/// Iterates over the rows of a result, some at a time.
#[pyclass(module = "alluvium", frozen)]
pub(crate) struct Batches {
    result: Py<Result>,
}

#[pymethods]
impl Batches {
    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Table>> {
        let answer = self.result.get().answer(py)?;
        let batch = answer.next(py, usize::MAX)?;
        Ok(batch.map(|batch| Table::new(answer.schema.clone(), vec![batch])))
    }
}
