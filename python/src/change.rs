//! The changes of one epoch.

use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyList};

use crate::table::Table;

/// The changes of one epoch. Iterating gives pairs of a row and its weight; they have no order.
#[pyclass(module = "alluvium", frozen)]
pub(crate) struct Change {
    change: alluvium::Change,
}

impl From<alluvium::Change> for Change {
    fn from(change: alluvium::Change) -> Self {
        Self { change }
    }
}

#[pymethods]
impl Change {
    /// The epoch, which numbers transactions.
    #[getter]
    fn epoch(&self) -> u64 {
        self.change.epoch
    }

    /// The rows that change, each once.
    #[getter]
    fn rows(&self) -> Table {
        Table::new(self.change.rows.schema(), vec![self.change.rows.clone()])
    }

    /// By how much each row changes: copies that are added, or, below zero, taken away.
    #[getter]
    fn weights(&self) -> Vec<i64> {
        self.change.weights.to_vec()
    }

    /// Whether these are all rows as of the end of the epoch, and replace what the subscriber has.
    #[getter]
    fn is_snapshot(&self) -> bool {
        self.change.is_snapshot
    }

    fn __len__(&self) -> usize {
        self.change.rows.num_rows()
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        let rows = self.rows().tuples(py)?;
        PyList::new(py, rows.into_iter().zip(self.weights()))?.try_iter()
    }

    fn __repr__(&self) -> String {
        let kind = if self.change.is_snapshot { "snapshot" } else { "change" };
        format!("<alluvium.Change: {kind} of epoch {}, {} rows>", self.change.epoch, self.__len__())
    }
}
