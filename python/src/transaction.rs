//! Transactions of batches.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::backend::{self, Backend, TableColumns, Write};
use crate::error;
use crate::rows::{Columns, Target};
use crate::slot::Slot;

/// Changes of tables that are committed together, or not at all.
///
/// As a context manager it is committed at the end of the block, and rolled back if that raises.
#[pyclass(module = "alluvium", frozen, weakref)]
pub(crate) struct Transaction {
    backend: Arc<Slot<Arc<dyn Backend>>>,
    transaction: Arc<Slot<Box<dyn backend::Transaction>>>,
    /// Whether it was rolled back because a write had failed.
    is_broken: AtomicBool,
}

impl Transaction {
    /// Begins a transaction.
    pub(crate) fn begin(
        py: Python<'_>,
        backend: &Arc<Slot<Arc<dyn Backend>>>,
        key: Option<&str>,
    ) -> PyResult<Self> {
        let begun = backend.share(py, |backend| backend.begin(key))?;
        let transaction = Slot::new(backend.open(), begun);
        Ok(Self { backend: backend.clone(), transaction, is_broken: AtomicBool::new(false) })
    }

    /// Inserts, replaces or deletes rows of a table; returns how many were given.
    pub(crate) fn write(
        &self,
        py: Python<'_>,
        write: Write,
        table: &str,
        rows: &Bound<'_, PyAny>,
    ) -> PyResult<u64> {
        let table = self.backend.share(py, |backend| backend.table(table))?;
        let target = target(&table, write);
        let mut count = 0;
        let written = target.each(rows, &mut |Columns { names, rows }| {
            let given = rows.num_rows() as u64;
            self.transaction
                .call(py, None, |transaction| transaction.write(write, &table, &names, rows))?;
            count += given;
            Ok(())
        });
        // A part of a write cannot be taken back alone.
        if written.is_err() && (count > 0 || self.is_aborted(py)) {
            self.is_broken.store(true, Ordering::SeqCst);
            self.transaction.shut(py)?;
        }
        written.map(|()| count)
    }

    fn is_aborted(&self, py: Python<'_>) -> bool {
        let aborted = self.transaction.call(py, None, |transaction| Ok(transaction.is_aborted()));
        aborted.unwrap_or(false)
    }

    /// Commits; returns the epoch.
    pub(crate) fn end(&self, py: Python<'_>) -> PyResult<u64> {
        if self.is_broken.load(Ordering::SeqCst) {
            return Err(error::interface(
                py,
                "the transaction has been rolled back, because a write failed: after a part of its rows had been taken, or over a connection",
            ));
        }
        self.transaction.consume(py, backend::Transaction::commit)
    }
}

/// What takes rows for a table.
fn target(table: &TableColumns, write: Write) -> Target {
    Target {
        name: table.name.clone(),
        schema: table.schema.clone(),
        key: (write == Write::Delete).then(|| table.primary_key.clone()),
        replaces: write == Write::Upsert,
    }
}

#[pymethods]
impl Transaction {
    /// Inserts rows into a table; returns how many.
    ///
    /// If it fails, nothing of the rows is inserted. If it fails after some ten thousand rows of an iterator, or because of what a server
    /// says, the whole transaction is rolled back.
    fn insert(&self, py: Python<'_>, table: &str, rows: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.write(py, Write::Insert, table, rows)
    }

    /// Inserts rows into a table with a primary key, each in place of the row that has its key; returns how many.
    fn upsert(&self, py: Python<'_>, table: &str, rows: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.write(py, Write::Upsert, table, rows)
    }

    /// Deletes rows from a table, by key if it has a primary key; returns how many were given.
    fn delete(&self, py: Python<'_>, table: &str, rows: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.write(py, Write::Delete, table, rows)
    }

    /// Commits all changes, and returns the epoch that has them.
    fn commit(&self, py: Python<'_>) -> PyResult<u64> {
        self.end(py)
    }

    /// Takes all changes back.
    fn rollback(&self, py: Python<'_>) -> PyResult<()> {
        self.transaction.shut(py)
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        kind: Option<&Bound<'_, PyType>>,
        _error: Option<&Bound<'_, PyAny>>,
        _traceback: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        if kind.is_some() {
            return self.rollback(py);
        }
        // Who has ended it in the block needs nothing more.
        match self.transaction.is_closed() && !self.is_broken.load(Ordering::SeqCst) {
            true => Ok(()),
            false => self.end(py).map(drop),
        }
    }

    fn __repr__(&self) -> &'static str {
        match self.transaction.is_closed() {
            true => "<alluvium.Transaction, ended>",
            false => "<alluvium.Transaction>",
        }
    }
}
