//! An engine with all formats, and a folder that its statements' paths count from.

use std::fs;
use std::path::PathBuf;

use alluvium::{Builder, Engine, Error, Outcome, Session};
use arrow::array::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use tempfile::TempDir;

/// A session, and the folder it works in.
pub struct Workspace {
    pub folder: TempDir,
    pub engine: Engine,
    pub session: Session,
}

impl Workspace {
    /// With two workers.
    pub fn new() -> Self {
        Self::with(|builder| builder.workers(2))
    }

    /// With an engine set up as `set` says.
    pub fn with(set: impl FnOnce(Builder) -> Builder) -> Self {
        let engine = set(alluvium_connect::formats(Engine::builder())).open_in_memory().unwrap();
        let folder = TempDir::new().unwrap();
        let mut session = engine.session();
        session.set_base(folder.path());
        session.set_awaits_sources(true);
        Self { folder, engine, session }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Makes a file.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).unwrap();
    }

    /// The contents of a file.
    pub fn content(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// The outcome of the last of some statements.
    pub fn run(&mut self, sql: &str) -> Outcome {
        self.session.execute(sql).unwrap().pop().unwrap()
    }

    /// Why a statement fails, with the folder left out.
    pub fn problem(&mut self, sql: &str) -> String {
        let error = self.session.execute(sql).unwrap_err();
        self.message(&error)
    }

    /// An error's message with the folder left out.
    pub fn message(&self, error: &Error) -> String {
        error.to_string().replace(&format!("{}/", self.folder.path().display()), "")
    }

    /// Rows and refused rows of a COPY.
    pub fn copied(&mut self, sql: &str) -> (u64, u64) {
        match self.run(sql) {
            Outcome::Copied { rows, refused, .. } => (rows, refused),
            other => panic!("not copied: {other:?}"),
        }
    }

    /// The answer to a query as sorted lines, with `|` between values.
    pub fn query(&mut self, sql: &str) -> Vec<String> {
        match self.run(sql) {
            Outcome::Rows(rows) => lines(&rows.into_batches().unwrap()),
            other => panic!("no rows: {other:?}"),
        }
    }

    /// The answer to the last of some statements, a query, or why one fails.
    pub fn try_query(&mut self, sql: &str) -> Result<Vec<String>, String> {
        let outcomes = self.session.execute(sql).map_err(|error| self.message(&error))?;
        match outcomes.into_iter().last() {
            Some(Outcome::Rows(rows)) => {
                rows.into_batches().map(|rows| lines(&rows)).map_err(|error| self.message(&error))
            }
            other => panic!("no rows: {other:?}"),
        }
    }

    /// The names and types of a relation's columns.
    pub fn columns(&self, relation: &str) -> Vec<String> {
        let relations = self.engine.relations().unwrap();
        let relation = relations.into_iter().find(|other| other.name == relation).unwrap();
        let column =
            |field: &arrow::datatypes::FieldRef| format!("{} {}", field.name(), field.data_type());
        relation.schema.fields().iter().map(column).collect()
    }
}

pub fn lines(batches: &[RecordBatch]) -> Vec<String> {
    let options = FormatOptions::default().with_null("NULL");
    let mut lines = Vec::new();
    for batch in batches {
        let columns = batch.columns().iter();
        let columns: Vec<_> =
            columns.map(|column| ArrayFormatter::try_new(column, &options).unwrap()).collect();
        for row in 0..batch.num_rows() {
            let cells = columns.iter().map(|column| column.value(row).to_string());
            lines.push(cells.collect::<Vec<_>>().join("|"));
        }
    }
    lines.sort();
    lines
}
