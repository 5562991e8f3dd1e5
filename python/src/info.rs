//! What an engine tells of itself.

use pyo3::prelude::*;

use crate::table;

/// A table or a view.
#[pyclass(module = "alluvium", frozen, get_all)]
pub(crate) struct RelationInfo {
    /// Its name: ``t``, or ``s.t`` in a schema.
    pub(crate) name: String,
    /// ``table``, ``view``, ``materialized view``, ``local view`` or ``declared view``.
    pub(crate) kind: String,
    /// The names of its columns.
    pub(crate) columns: Vec<String>,
    /// The types of its columns, as SQL has them.
    pub(crate) types: Vec<String>,
    /// The columns of its primary key; none of a view.
    pub(crate) primary_key: Vec<String>,
    /// The statement that makes it.
    pub(crate) sql: String,
    /// Why it has failed; ``None`` of one that is kept up to date.
    pub(crate) failed: Option<String>,
}

impl From<alluvium::RelationInfo> for RelationInfo {
    fn from(info: alluvium::RelationInfo) -> Self {
        let columns = table::names(&info.schema);
        Self {
            kind: info.kind.noun().to_owned(),
            types: table::types(&info.schema),
            primary_key: info.primary_key.iter().map(|column| columns[*column].clone()).collect(),
            columns,
            name: info.name,
            sql: info.sql,
            failed: info.failed,
        }
    }
}

#[pymethods]
impl RelationInfo {
    fn __repr__(&self) -> String {
        format!(
            "<alluvium.RelationInfo: {} {} ({})>",
            self.kind,
            self.name,
            self.columns.join(", ")
        )
    }
}

/// How far an engine has come.
#[pyclass(module = "alluvium", frozen, get_all)]
pub(crate) struct Progress {
    /// The last epoch that was committed.
    pub(crate) committed: u64,
    /// The last epoch whose changes are in all views; ``None`` over a connection, where reads wait by themselves.
    pub(crate) complete: Option<u64>,
}

#[pymethods]
impl Progress {
    fn __repr__(&self) -> String {
        match self.complete {
            Some(complete) => {
                format!("<alluvium.Progress: committed {}, complete {complete}>", self.committed)
            }
            None => format!("<alluvium.Progress: committed {}>", self.committed),
        }
    }
}

impl From<alluvium::Progress> for Progress {
    fn from(progress: alluvium::Progress) -> Self {
        Self { committed: progress.committed, complete: Some(progress.complete) }
    }
}

/// How much state an engine has.
#[pyclass(module = "alluvium", frozen, get_all)]
pub(crate) struct State {
    /// How many rows.
    rows: u64,
    /// How many bytes these take, in memory and in files.
    bytes: u64,
    /// How much of the memory budget is used, in bytes.
    memory_bytes: u64,
    /// How much room files take, in bytes.
    disk_bytes: u64,
}

#[pymethods]
impl State {
    fn __repr__(&self) -> String {
        let Self { rows, bytes, memory_bytes, disk_bytes } = self;
        format!(
            "<alluvium.State: {rows} rows in {bytes} bytes; {memory_bytes} bytes of memory, {disk_bytes} of disk>"
        )
    }
}

impl From<alluvium::State> for State {
    fn from(state: alluvium::State) -> Self {
        let alluvium::State { rows, bytes, memory_bytes, disk_bytes, .. } = state;
        Self { rows, bytes, memory_bytes, disk_bytes }
    }
}
