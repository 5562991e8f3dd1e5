//! Statements that run once for each of many rows of values.
//!
//! A statement is prepared once. One that inserts nothing but values and constants is run for some thousand rows at once: they become a relation, of
//! which it selects. Wherever that could differ from running it row by row, in what it stores or in its error, it is run row by row.

use std::ops::Range;

use alluvium::arrow::array::{ArrayRef, RecordBatch};
use alluvium::arrow::datatypes::{DataType, Field, Schema};
use alluvium::{Prepared, Value};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyIterator, PyList, PyString, PyTuple};

use crate::backend::Session;
use crate::convert;
use crate::error;
use crate::frames::Scope;
use crate::slot::Slot;

/// The most rows that are taken at once.
const ROWS: usize = 1 << 13;

/// The most bytes of texts and the like that are taken at once, but for those of the last row.
const BYTES: usize = 1 << 24;

/// So few rows are run one by one, rather than a part of them at once.
const FEW: usize = 8;

/// A statement that is run for many rows of values.
pub(crate) struct Many<'a> {
    pub(crate) session: &'a Slot<Box<dyn Session>>,
    pub(crate) sql: &'a str,
    /// The statement that inserts the rows of the relation of values; `None` if there is no such.
    pub(crate) insert: Option<&'a str>,
}

/// Rows of values.
struct Batch<'py> {
    rows: Vec<Vec<Bound<'py, PyAny>>>,
    /// The number of the first one.
    first: usize,
    /// Why there is no next one, if that is an error.
    failed: Option<PyErr>,
}

impl Many<'_> {
    /// Runs it for all rows. Returns how many rows of tables it has changed.
    pub(crate) fn run(&self, py: Python<'_>, rows: &Bound<'_, PyIterator>) -> PyResult<u64> {
        let (mut first, mut changed) = (0, 0);
        let mut prepared = None;
        loop {
            let mut batch = Batch::take(rows, first);
            let scope = Scope::begin(self.session.open().frames());
            if first == 0 && !batch.rows.is_empty() {
                prepared = self.prepare(py)?;
            }
            if !batch.rows.is_empty() {
                changed += self.run_batch(py, prepared.as_ref(), &batch)?;
            }
            drop(scope);
            first += batch.rows.len();
            match batch.failed.take() {
                Some(failed) => return Err(failed),
                None if batch.rows.is_empty() => return Ok(changed),
                None => {}
            }
        }
    }

    /// The prepared statement; `None` if it cannot be, and has to be run to know why, or that it can be run with values.
    fn prepare(&self, py: Python<'_>) -> PyResult<Option<Prepared>> {
        let prepared =
            self.session.call(py, Some(self.sql), |session| session.prepare(self.sql))?;
        match &prepared {
            Some(prepared) if prepared.description().columns.is_some() => Err(returns_rows(py)),
            _ => Ok(prepared),
        }
    }

    fn run_batch(
        &self,
        py: Python<'_>,
        prepared: Option<&Prepared>,
        batch: &Batch<'_>,
    ) -> PyResult<u64> {
        if let (Some(insert), Some(prepared)) = (self.insert, prepared)
            && let Some(values) = batch.columns(&prepared.description().parameters)
        {
            return self.insert(py, insert, prepared, batch, &values, 0..batch.rows.len());
        }
        self.run_each(py, prepared, batch, 0..batch.rows.len())
    }

    /// Inserts some of the rows at once, or, if that fails, in parts, so that the first row that is wrong is known.
    fn insert(
        &self,
        py: Python<'_>,
        insert: &str,
        prepared: &Prepared,
        batch: &Batch<'_>,
        values: &RecordBatch,
        range: Range<usize>,
    ) -> PyResult<u64> {
        if range.len() <= FEW {
            return self.run_each(py, Some(prepared), batch, range);
        }
        let frames = self.session.open().frames();
        frames.give(values.slice(range.start, range.len()));
        let inserted = self.session.call(py, Some(self.sql), |session| session.insert(insert));
        if let Some(rows) = inserted? {
            return Ok(rows);
        }
        let middle = range.start + range.len() / 2;
        let before = self.insert(py, insert, prepared, batch, values, range.start..middle)?;
        let after = self.insert(py, insert, prepared, batch, values, middle..range.end)?;
        Ok(before + after)
    }

    /// Runs it for some of the rows, one after the other.
    fn run_each(
        &self,
        py: Python<'_>,
        prepared: Option<&Prepared>,
        batch: &Batch<'_>,
        range: Range<usize>,
    ) -> PyResult<u64> {
        let mut failed = None;
        let mut rows: Vec<Vec<Value>> = Vec::with_capacity(range.len());
        for row in &batch.rows[range.clone()] {
            match row.iter().map(convert::parameter).collect() {
                Ok(values) => rows.push(values),
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        let mut place = range.start;
        let ran = self.session.call(py, Some(self.sql), |session| {
            session.run_each(self.sql, prepared, &rows, &mut place)
        });
        let of_row = |error| error::of_row(py, error, self.sql, batch.first + place);
        match (ran.map_err(of_row)?, failed) {
            (None, _) => Err(returns_rows(py)),
            (Some(_), Some(failed)) => Err(of_row(failed)),
            (Some(changed), None) => Ok(changed),
        }
    }
}

impl<'py> Batch<'py> {
    /// Takes the next rows.
    fn take(rows: &Bound<'py, PyIterator>, first: usize) -> Self {
        let mut batch = Self { rows: Vec::new(), first, failed: None };
        let mut bytes = 0;
        let mut next = rows.clone();
        while batch.rows.len() < ROWS && bytes < BYTES {
            let row = match next.next() {
                None => break,
                Some(row) => row.and_then(|row| values_of(&row)),
            };
            match row {
                Ok(row) => {
                    bytes += row.iter().map(size).sum::<usize>();
                    batch.rows.push(row);
                }
                Err(error) => {
                    batch.failed = Some(error);
                    break;
                }
            }
        }
        batch
    }

    /// The rows as a relation with a column for each value, which are called by their places from one on, and have these types. `None` if the values
    /// are not sure to be the same in it.
    fn columns(&self, types: &[Option<DataType>]) -> Option<RecordBatch> {
        let mut fields = Vec::with_capacity(types.len());
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(types.len());
        for (place, data_type) in types.iter().enumerate() {
            let data_type = data_type.as_ref()?;
            let values = self.rows.iter().map(|row| Some(row.get(place)?.clone()));
            columns.push(convert::exact(&values.collect::<Option<Vec<_>>>()?, data_type)?);
            fields.push(Field::new((place + 1).to_string(), data_type.clone(), true));
        }
        let are_complete = self.rows.iter().all(|row| row.len() == types.len());
        are_complete.then(|| RecordBatch::try_new(Schema::new(fields).into(), columns).ok())?
    }
}

/// The values of a row.
fn values_of<'py>(row: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    if let Ok(row) = row.cast::<PyTuple>() {
        return Ok(row.iter().collect());
    }
    if let Ok(row) = row.cast::<PyList>() {
        return Ok(row.iter().collect());
    }
    row.try_iter()?.collect()
}

/// The bytes of a value beside those that every value has, as far as they may be many.
fn size(value: &Bound<'_, PyAny>) -> usize {
    let may_be_many = value.is_exact_instance_of::<PyString>()
        || value.is_exact_instance_of::<PyBytes>()
        || value.is_exact_instance_of::<PyList>();
    if may_be_many { value.len().unwrap_or(0) } else { 0 }
}

fn returns_rows(py: Python<'_>) -> PyErr {
    error::programming(
        py,
        "executemany() runs statements that return no rows: call execute() for each of the others",
    )
}
