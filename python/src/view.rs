//! Rows by key, without SQL.

use std::ops::Bound as End;
use std::sync::Arc;

use alluvium::Value;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::backend;
use crate::convert;
use crate::error;
use crate::open::Open;
use crate::result::Result;
use crate::slot::Slot;
use crate::table::{self, Table};

/// A table or a materialized view, read by key without SQL.
///
/// Reads see everything that was committed before they began, and wait until it is complete. They are not part of a transaction.
#[pyclass(module = "alluvium", frozen, weakref)]
pub(crate) struct View {
    view: Arc<Slot<Arc<dyn backend::View>>>,
    name: String,
    columns: Vec<String>,
    types: Vec<String>,
    key: Vec<usize>,
}

impl View {
    /// A view of a database.
    pub(crate) fn new(open: &Arc<Open>, view: Arc<dyn backend::View>) -> Self {
        let (name, key) = (view.name().to_owned(), view.key().to_vec());
        let (columns, types) = (table::names(view.schema()), table::types(view.schema()));
        Self { view: Slot::new(open, view), name, columns, types, key }
    }

    /// The rows with a key, or with the first values of one.
    fn rows(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyTuple>,
    ) -> PyResult<alluvium::arrow::array::RecordBatch> {
        let key = values(key.as_any())?;
        self.view.share(py, |view| view.get(&key))
    }
}

/// The values of a key, or the first ones.
fn values(key: &Bound<'_, PyAny>) -> PyResult<Vec<Value>> {
    key.try_iter()?.map(|value| convert::parameter(&value?)).collect()
}

#[pymethods]
impl View {
    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// The names of its columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.columns.clone()
    }

    /// The types of its columns, as SQL has them.
    #[getter]
    fn types(&self) -> Vec<String> {
        self.types.clone()
    }

    /// The columns that rows are found by, in order; none if it has no key.
    #[getter]
    fn key(&self) -> Vec<String> {
        self.key.iter().map(|column| self.columns[*column].clone()).collect()
    }

    /// The row with this key; ``None`` if there is none. Raises ``InterfaceError`` if the key has more columns than values are given.
    #[pyo3(signature = (*key))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyTuple>,
    ) -> PyResult<Option<Bound<'py, PyTuple>>> {
        if key.len() < self.key.len() {
            let message = format!(
                "the key of \"{}\" is {}: give a value for each column, or call prefix()",
                self.name,
                self.key().join(", ")
            );
            return Err(error::interface(py, &message));
        }
        let rows = self.rows(py, key)?;
        match rows.num_rows() {
            0 => Ok(None),
            _ => Ok(convert::rows(py, &rows, 0, 1)?.pop()),
        }
    }

    /// The rows whose keys begin with these values.
    #[pyo3(signature = (*key))]
    fn prefix(&self, py: Python<'_>, key: &Bound<'_, PyTuple>) -> PyResult<Table> {
        let rows = self.rows(py, key)?;
        Ok(Table::new(rows.schema(), vec![rows]))
    }

    /// The rows between two keys, both included, in the order of the key. An end may have the first values of a key only, or be ``None``.
    #[pyo3(signature = (low = None, high = None))]
    fn range(
        &self,
        py: Python<'_>,
        low: Option<&Bound<'_, PyAny>>,
        high: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Result> {
        let (low, high) = (low.map(values).transpose()?, high.map(values).transpose()?);
        let (schema, rows) = self.view.share(py, |view| {
            let end = |key| Option::map_or(key, End::Unbounded, End::Included);
            view.range(end(low.as_deref()), end(high.as_deref()))
        })?;
        Ok(Result::of_rows(self.view.open(), schema, rows))
    }

    /// The same view, whose reads do not wait: they answer as of the last epoch that is complete, and may miss newer commits.
    fn stale(&self, py: Python<'_>) -> PyResult<Self> {
        let stale = self.view.share(py, |view| view.stale())?;
        Ok(Self::new(self.view.open(), stale))
    }

    fn __repr__(&self) -> String {
        format!("<alluvium.View {} ({})>", self.name, self.columns.join(", "))
    }
}
