//! Sessions over a connection.

use std::cell::Cell;
use std::sync::Arc;

use alluvium::unstable::{StatementKind, tree};
use alluvium::{Prepared, Statement, Value};
use alluvium_client::arrow::array::{Array, AsArray, RecordBatch};
use alluvium_client::{Client, Error, Parameter};
use futures::TryStreamExt;
use parking_lot::Mutex;

use super::pool::{Server, committed};
use super::refused::failure_in;
use super::rows::{Coming, RemoteRows, locked};
use super::wait::Stopped;
use crate::backend::{Answer, Session};
use crate::failure::{Failure, Fallible};

/// One client of a server.
pub(super) struct RemoteSession {
    server: Server,
    client: Client,
    block: Arc<Mutex<Block>>,
    /// The rows that are still coming.
    coming: Option<Arc<Mutex<Coming>>>,
    /// Whether it may have what a new session has not, such as settings and temporary tables.
    has_state: Cell<bool>,
}

/// Commands that leave nothing in a session.
const STATELESS: [&str; 11] = [
    "SELECT",
    "INSERT",
    "UPDATE",
    "DELETE",
    "COPY",
    "SHOW",
    "EXPLAIN",
    "BEGIN",
    "START TRANSACTION",
    "COMMIT",
    "ROLLBACK",
];

/// The transaction that statements have begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Block {
    None,
    Open,
    /// A statement of it has failed.
    Aborted,
    /// A statement of it was asked to end, and has failed unless it was done before.
    Unknown,
}

impl Block {
    /// A statement has failed.
    pub(super) fn fail(&mut self) {
        if *self != Self::None {
            *self = Self::Aborted;
        }
    }

    /// A statement was asked to end.
    pub(super) fn interrupt(&mut self) {
        if *self == Self::Open {
            *self = Self::Unknown;
        }
    }
}

/// Where a statement is in the text of a call.
#[derive(Clone)]
pub(super) struct Place {
    text: Arc<str>,
    begins: (u64, u64),
}

impl Place {
    /// A statement that is the whole text.
    pub(super) fn whole(text: &str) -> Self {
        Self { text: text.into(), begins: (1, 1) }
    }

    /// The failure of the statement.
    pub(super) fn failure(&self, error: Error) -> Failure {
        failure_in(error, &self.text, self.begins)
    }
}

impl From<&Statement> for Place {
    fn from(statement: &Statement) -> Self {
        Self { text: statement.text().into(), begins: statement.position() }
    }
}

impl RemoteSession {
    /// Begins a session of a server.
    pub(super) fn begin(server: Server) -> Fallible<Self> {
        let client = server.take()?;
        let block = Arc::new(Mutex::new(Block::None));
        Ok(Self { server, client, block, coming: None, has_state: Cell::new(false) })
    }

    /// Connects again if the connection is known to be lost. Who would miss what the session had is told instead, once.
    fn revive(&mut self) -> Fallible<()> {
        if !self.client.is_closed() {
            return Ok(());
        }
        self.coming = None;
        let before = std::mem::replace(&mut *self.block.lock(), Block::None);
        let had_state = self.has_state.take();
        self.client = self.server.open()?;
        let lost = match (before, had_state) {
            (Block::None, false) => return Ok(()),
            (Block::None, true) => "with its settings and temporary tables: set it up again",
            _ => "with its open transaction, which is rolled back: run the transaction again",
        };
        let message = format!(
            "the connection to the server was lost, and the session {lost}; the next statement has a new session"
        );
        let sqlstate = Some("08006".to_owned());
        Err(Failure { sqlstate, ..Failure::new("OperationalError", message) })
    }

    /// Waits for a call of a statement there, and notes if it fails.
    fn wait<T>(&self, place: &Place, call: impl Future<Output = Result<T, Error>>) -> Fallible<T> {
        self.noted(place, self.server.wait(call))
    }

    /// Notes if a call of a statement there has failed.
    fn noted<T>(&self, place: &Place, called: Result<T, Stopped>) -> Fallible<T> {
        match called {
            Ok(done) => Ok(done),
            Err(Stopped::Interrupted) => {
                self.block.lock().interrupt();
                Err(Failure::interrupted())
            }
            Err(Stopped::Failed(error)) if error.is_lost() => {
                // Who asks is told, and need not be again.
                *self.block.lock() = Block::None;
                self.has_state.set(false);
                let mut failure = place.failure(error);
                failure.message.push_str("; the next statement has a new session");
                Err(failure)
            }
            Err(Stopped::Failed(error)) => {
                self.block.lock().fail();
                Err(place.failure(error))
            }
        }
    }

    /// Makes the connection free for another statement.
    fn settle(&mut self) -> Fallible<()> {
        if let Some(coming) = self.coming.take() {
            let gathered = locked(&coming).and_then(|mut coming| coming.gather());
            if gathered.is_err() {
                self.coming = Some(coming);
            }
            gathered?;
        }
        Ok(())
    }

    /// Runs one statement.
    fn run_one(&mut self, statement: &Statement, values: &[Parameter]) -> Fallible<Answer> {
        let place = Place::from(statement);
        let command = statement.command();
        match &tree(statement).kind {
            StatementKind::Subscribe(_) => return Ok(Answer::Subscribed),
            StatementKind::Copy { path: None, .. } => {
                return Err(Failure::not_supported(
                    "sql() has no rows for COPY FROM STDIN: insert() takes them",
                ));
            }
            StatementKind::CopyTo { path: None, .. } | StatementKind::CopyChanges { .. } => {
                return Err(Failure::not_supported(
                    "sql() takes no rows of COPY TO STDOUT: it returns those of a query",
                ));
            }
            _ => {}
        }
        self.settle()?;
        self.revive()?;
        if command == "COMMIT" {
            self.check_commits(&place)?;
        }
        let mut ran = self.server.wait(self.client.query_typed(statement.text(), values));
        let is_first = matches!(command, "BEGIN" | "START TRANSACTION") && !self.has_state.get();
        if is_first && matches!(&ran, Err(Stopped::Failed(error)) if error.is_lost()) {
            // Nothing has run.
            self.client = self.server.open()?;
            ran = self.server.wait(self.client.query_typed(statement.text(), values));
        }
        let mut batches = self.noted(&place, ran)?;
        self.has_state.set(self.has_state.get() || !STATELESS.contains(&command));
        let schema = batches.schema().clone();
        if schema.fields().is_empty() {
            while self.wait(&place, batches.try_next())?.is_some() {}
            self.note(statement);
            return self.done(command, batches.rows_affected().unwrap_or(0));
        }
        // A statement that changes rows is not done before the last of those that it returns.
        let is_whole = matches!(command, "INSERT" | "UPDATE" | "DELETE");
        let server = self.server.clone();
        let coming = Coming::begin(server, batches, self.block.clone(), place, is_whole)?;
        let is_over = coming.is_over();
        let coming = Arc::new(Mutex::new(coming));
        let rows = RemoteRows(coming.clone());
        if command == "EXPLAIN" {
            return rows
                .map(|batch| Ok(lines(&batch?)))
                .collect::<Fallible<Vec<_>>>()
                .map(|lines| Answer::Text(lines.concat().join("\n")));
        }
        if !is_over {
            self.coming = Some(coming);
        }
        Ok(Answer::Rows(schema, Box::new(rows)))
    }

    /// The answer to a statement without rows that has run.
    fn done(&self, command: &str, rows: u64) -> Fallible<Answer> {
        Ok(match command {
            "INSERT" | "UPDATE" | "DELETE" | "COPY" => {
                let is_alone = *self.block.lock() == Block::None;
                let epoch = match is_alone {
                    true => self.server.wait(committed(&self.client))?,
                    false => None,
                };
                Answer::Changed(rows, epoch)
            }
            "MOVE" => Answer::Moved(rows),
            _ => Answer::Done,
        })
    }

    /// Notes what a statement that has run does to the transaction.
    fn note(&self, statement: &Statement) {
        let mut block = self.block.lock();
        *block = match statement.command() {
            "BEGIN" | "START TRANSACTION" | "ROLLBACK TO" => Block::Open,
            "COMMIT" | "ROLLBACK" if chains(statement) => Block::Open,
            "COMMIT" | "ROLLBACK" => Block::None,
            _ => return,
        };
    }

    /// Fails if COMMIT would roll back, and rolls back.
    fn check_commits(&mut self, place: &Place) -> Fallible<()> {
        let block = *self.block.lock();
        if block == Block::Unknown {
            // Fails if the transaction is aborted.
            let _ = self.wait(place, self.client.execute("SELECT 1", &[]));
        }
        if *self.block.lock() != Block::Aborted {
            return Ok(());
        }
        self.wait(place, self.client.execute_batch("ROLLBACK"))?;
        *self.block.lock() = Block::None;
        Err(Failure {
            sqlstate: Some("25P02".to_owned()),
            position: Some(place.begins),
            ..Failure::new(
                "OperationalError",
                "COMMIT has rolled back: a statement that failed had aborted the transaction",
            )
        })
    }
}

impl Session for RemoteSession {
    fn run(&mut self, sql: &str, values: &[Value]) -> Fallible<Answer> {
        let values = parameters(values)?;
        let mut last = Answer::Done;
        for (ran, statement) in alluvium::parse(sql).enumerate() {
            let statement = statement?;
            if ran > 0 && !values.is_empty() {
                return Err(Failure {
                    position: Some(statement.position()),
                    ..Failure::new("ProgrammingError", "a text with parameters has one statement")
                });
            }
            if let Answer::Rows(_, rows) = last {
                rows.into_iter().try_for_each(|batch| batch.map(drop))?;
            }
            last = self.run_one(&statement, &values)?;
        }
        Ok(last)
    }

    fn in_transaction(&self) -> bool {
        *self.block.lock() != Block::None
    }

    fn prepare(&mut self, _: &str) -> Fallible<Option<Prepared>> {
        Ok(None)
    }

    fn insert(&mut self, _: &str) -> Fallible<Option<u64>> {
        Ok(None)
    }

    fn run_each(
        &mut self,
        sql: &str,
        _: Option<&Prepared>,
        rows: &[Vec<Value>],
        place: &mut usize,
    ) -> Fallible<Option<u64>> {
        self.settle()?;
        let whole = Place::whole(sql);
        let rows = rows.iter().map(|values| parameters(values)).collect::<Fallible<Vec<_>>>()?;
        let mut failed = None;
        let mut returns_rows = false;
        let changed = self.wait(&whole, async {
            self.client.execute_each(sql, &rows).await.map_err(|row| {
                failed = Some(row.row);
                returns_rows = matches!(row.error, Error::ReturnsRows);
                row.error
            })
        });
        *place += failed.unwrap_or(rows.len());
        match returns_rows {
            true => Ok(None),
            false => changed.map(Some),
        }
    }
}

/// The values of parameters.
pub(super) fn parameters(values: &[Value]) -> Fallible<Vec<Parameter>> {
    let parameter = |value: &Value| match value.is_null() {
        true => Ok(Parameter::null()),
        false => Ok(Parameter::of(&value.to_array()?, 0)),
    };
    values.iter().map(parameter).collect()
}

/// Whether another transaction begins when this statement ends one.
fn chains(statement: &Statement) -> bool {
    let words: Vec<String> =
        statement.text().split_whitespace().map(str::to_ascii_uppercase).collect();
    words.windows(2).any(|words| words == ["AND", "CHAIN"])
}

/// The texts of the first column.
fn lines(batch: &RecordBatch) -> Vec<String> {
    let Some(texts) = batch.column(0).as_string_opt::<i32>() else { return Vec::new() };
    (0..texts.len()).map(|row| texts.value(row).to_owned()).collect()
}
