//! Rows in memory.

use std::sync::Arc;

use alluvium::arrow::array::RecordBatch;
use alluvium::arrow::datatypes::SchemaRef;
use pyo3::exceptions::{PyIndexError, PyKeyError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyIterator, PyList, PyTuple};

use crate::{convert, export};

/// Rows in memory. They can be read again and again.
#[pyclass(module = "alluvium", frozen, weakref)]
#[derive(Clone)]
pub(crate) struct Table {
    schema: SchemaRef,
    batches: Arc<[RecordBatch]>,
}

impl Table {
    /// These rows.
    pub(crate) fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        Self { schema, batches: batches.into() }
    }

    /// All rows as tuples.
    pub(crate) fn tuples<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let mut tuples = Vec::with_capacity(self.count());
        for batch in self.batches.iter() {
            tuples.extend(convert::rows(py, batch, 0, batch.num_rows())?);
        }
        Ok(tuples)
    }

    fn count(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }
}

/// The names of columns.
pub(crate) fn names(schema: &SchemaRef) -> Vec<String> {
    schema.fields().iter().map(|field| field.name().clone()).collect()
}

/// The types of columns, as SQL has them.
pub(crate) fn types(schema: &SchemaRef) -> Vec<String> {
    schema.fields().iter().map(|field| convert::sql_type(field.data_type())).collect()
}

#[pymethods]
impl Table {
    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        names(&self.schema)
    }

    /// The types of the columns, as SQL has them.
    #[getter]
    fn types(&self) -> Vec<String> {
        types(&self.schema)
    }

    fn __len__(&self) -> usize {
        self.count()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        PyList::new(py, self.tuples(py)?)?.try_iter()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, row: isize) -> PyResult<Bound<'py, PyTuple>> {
        let count = self.count() as isize;
        let mut place = if row < 0 { row + count } else { row };
        if (0..count).contains(&place) {
            for batch in self.batches.iter() {
                if place < batch.num_rows() as isize {
                    return Ok(convert::rows(py, batch, place as usize, 1)?.remove(0));
                }
                place -= batch.num_rows() as isize;
            }
        }
        Err(PyIndexError::new_err(format!("there is no row {row} of {count}")))
    }

    /// The values of a column. Raises ``KeyError`` if there is no column of this name.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let place = self.schema.index_of(name);
        let place = place.map_err(|_| PyKeyError::new_err(name.to_owned()))?;
        let mut values = Vec::with_capacity(self.count());
        for batch in self.batches.iter() {
            values.extend(convert::column(py, batch.column(place))?);
        }
        PyList::new(py, values)
    }

    /// All rows, as tuples.
    fn fetchall<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        self.tuples(py)
    }

    /// A table of pyarrow, which shares the memory of this one. It needs pyarrow.
    fn arrow<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        export::pyarrow(this.as_any())
    }

    /// A frame of polars. It needs polars.
    fn pl<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        export::polars(this.as_any())
    }

    /// A frame of pandas. It needs pandas and pyarrow.
    fn df<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        export::pandas(this.as_any())
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let batches = (*self.batches).to_vec();
        let batches = batches.into_iter().map(Ok);
        export::stream(py, &self.schema, batches, requested_schema)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        export::schema(py, &self.schema)
    }

    fn __repr__<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        this.py().import("alluvium._display")?.call_method1("text", (this,))
    }

    fn _repr_html_<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        this.py().import("alluvium._display")?.call_method1("html", (this,))
    }
}
