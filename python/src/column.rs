//! A column for a function in Python.

use alluvium::arrow::array::ArrayRef;
use alluvium::arrow::datatypes::FieldRef;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList, PyTuple};
use pyo3_arrow::ffi::{to_array_pycapsules, to_schema_pycapsule};

use crate::convert;
use crate::error;
use crate::export;

/// An array of Arrow: ``pyarrow.array``, ``polars.Series`` and others take it.
#[pyclass(module = "alluvium", frozen)]
pub(crate) struct Column {
    field: FieldRef,
    values: ArrayRef,
}

impl Column {
    /// These values of a field.
    pub(crate) fn new(field: FieldRef, values: ArrayRef) -> Self {
        Self { field, values }
    }
}

#[pymethods]
impl Column {
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let field = export::field(&self.field);
        let values = export::values(&self.values, &field);
        let values = values.map_err(|error| error::arrow(py, &error))?;
        Ok(to_array_pycapsules(py, field, &values, requested_schema)?)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        Ok(to_schema_pycapsule(py, export::field(&self.field).as_ref())?)
    }

    fn __len__(&self) -> usize {
        self.values.len()
    }

    /// The values, as Python has them.
    fn to_pylist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, convert::column(py, &self.values)?)
    }
}
