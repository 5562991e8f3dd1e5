//! Transactions of batches.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use alluvium::Engine;
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::database::target;
use crate::error;
use crate::rows::Columns;
use crate::slot::Slot;

/// What is done with rows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Write {
    Insert,
    Upsert,
    Delete,
}

/// Changes of tables that are committed together, or not at all.
///
/// As a context manager it is committed at the end of the block, and rolled back if that raises.
#[pyclass(module = "alluvium", frozen, weakref)]
pub(crate) struct Transaction {
    engine: Arc<Slot<Engine>>,
    transaction: Arc<Slot<alluvium::Transaction>>,
    /// Whether it was rolled back because a write had failed halfway.
    is_broken: AtomicBool,
}

impl Transaction {
    /// Begins a transaction.
    pub(crate) fn begin(
        py: Python<'_>,
        engine: &Arc<Slot<Engine>>,
        key: Option<&str>,
    ) -> PyResult<Self> {
        let begun = engine.share(py, |engine| {
            let mut begun = engine.begin()?;
            if let Some(key) = key {
                begun.set_key(key);
            }
            Ok(begun)
        })?;
        let transaction = Slot::new(engine.open(), begun);
        Ok(Self { engine: engine.clone(), transaction, is_broken: AtomicBool::new(false) })
    }

    /// Inserts, replaces or deletes rows of a table; returns how many were given.
    pub(crate) fn write(
        &self,
        py: Python<'_>,
        write: Write,
        table: &str,
        rows: &Bound<'_, PyAny>,
    ) -> PyResult<u64> {
        let target = target(py, &self.engine, table, write)?;
        let mut count = 0;
        let written = target.each(rows, &mut |Columns { names, rows }| {
            let given = rows.num_rows() as u64;
            self.transaction.call(py, None, |transaction| {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                match write {
                    Write::Insert => transaction.insert_columns(table, &names, rows),
                    Write::Upsert => transaction.upsert_columns(table, &names, rows),
                    Write::Delete => transaction.delete(table, rows),
                }
            })?;
            count += given;
            Ok(())
        });
        if written.is_err() && count > 0 {
            // A part of a write cannot be taken back alone.
            self.is_broken.store(true, Ordering::SeqCst);
            self.transaction.shut(py)?;
        }
        written.map(|()| count)
    }

    /// Commits; returns the epoch.
    pub(crate) fn end(&self, py: Python<'_>) -> PyResult<u64> {
        if self.is_broken.load(Ordering::SeqCst) {
            return Err(error::interface(
                py,
                "the transaction has been rolled back, because a write failed after a part of its rows had been taken",
            ));
        }
        self.transaction.consume(py, alluvium::Transaction::commit)
    }
}

#[pymethods]
impl Transaction {
    /// Inserts rows into a table; returns how many.
    ///
    /// If it fails, nothing of the rows is inserted. If it fails after some ten thousand rows of an iterator, the whole transaction is rolled back.
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
