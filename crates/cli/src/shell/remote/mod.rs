//! Statements on a server.
//!
//! Calls of the [client](alluvium_client) are [waited for](wait) by this thread; Ctrl-C drops them, which cancels their statement.
//! [`catalog`] lists relations by SQL, and [`import`] reads files here and sends their rows.

mod catalog;
mod import;
mod wait;

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use alluvium::Statement;
use alluvium::arrow::array::{Array, AsArray, RecordBatch};
use alluvium::name::written;
use alluvium::unstable::{StatementKind, tree};
use alluvium_client::{Address, Batches, Client, SubscribeOptions};
use futures::{StreamExt, TryStreamExt, stream};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use self::wait::Waiting;
use super::backend::{Answer, Around, Backend, Changes, Failure, Listed};
use super::changes::{change_rows, changes_schema};
use super::stop::{Stop, failed};
use super::wake::SourcesEnd;
use crate::console;
use crate::diagnostic::Refused;
use crate::process::interrupt::Interrupt;

/// How long completion waits for the names of relations.
const PATIENCE: Duration = Duration::from_secs(2);

/// A connection to a server.
pub(super) struct Remote {
    address: Address,
    /// Shared with completion at the prompt.
    client: Rc<RefCell<Arc<Client>>>,
    waiting: Waiting,
    transaction: Transaction,
    is_prompt: bool,
    /// Moves the bytes of connections.
    runtime: Runtime,
}

/// The transaction that statements began.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Transaction {
    None,
    Open,
    /// A statement of it has failed.
    Aborted,
}

impl Remote {
    /// Connects to a server.
    pub(super) fn connect(address: &str, interrupt: Interrupt) -> Result<Self, Stop> {
        let address: Address = address.parse().map_err(|error| failed(None, error))?;
        let address = address.application_name("alluvium shell");
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|error| failed(None, error))?;
        let waiting = Waiting::new(interrupt, runtime.handle().clone());
        let client = waiting.wait(Client::connect_to(&address));
        let client = client.map_err(|failed| super::ended(failed.into()))?;
        let client = Rc::new(RefCell::new(Arc::new(client)));
        let transaction = Transaction::None;
        Ok(Self { address, client, waiting, transaction, is_prompt: false, runtime })
    }

    /// The connection. At a prompt, another one if it was lost; a program ends there.
    fn client(&mut self) -> Result<Arc<Client>, Failure> {
        let client = self.client.borrow().clone();
        if !client.is_closed() || !self.is_prompt {
            return Ok(client);
        }
        if std::mem::replace(&mut self.transaction, Transaction::None) != Transaction::None {
            return Err(Failure::new(
                "the connection was lost, and the open transaction with it; the next statement connects again",
            ));
        }
        let again = Arc::new(self.waiting.wait(Client::connect_to(&self.address))?);
        console::report(
            "warning: the connection was lost, and made again: settings are as at first",
        );
        *self.client.borrow_mut() = again.clone();
        Ok(again)
    }

    /// Notes what a statement that was run does to the transaction. Returns whether it was a COMMIT that rolled back.
    fn note(&mut self, statement: &Statement, has_failed: bool) -> bool {
        let was_aborted = self.transaction == Transaction::Aborted;
        self.transaction = match (statement.command(), self.transaction) {
            (_, before) if has_failed => match before {
                Transaction::None => Transaction::None,
                _ => Transaction::Aborted,
            },
            ("BEGIN" | "START TRANSACTION", _) | ("ROLLBACK TO", _) => Transaction::Open,
            ("COMMIT" | "ROLLBACK", _) => Transaction::None,
            (_, before) => before,
        };
        was_aborted && !has_failed && statement.command() == "COMMIT"
    }

    /// Runs a statement that is no subscription.
    fn query(&mut self, statement: &Statement) -> Result<Answer<'_>, Failure> {
        let client = self.client()?;
        let text = statement.text();
        let ran = self.waiting.wait(async {
            let mut batches = client.query_typed(text, &[]).await?;
            let has_rows = !batches.schema().fields().is_empty();
            // Without columns it is run to its end.
            while !has_rows && batches.try_next().await?.is_some() {}
            Ok((batches, has_rows))
        });
        let ran = ran.map_err(|failure| failure.of(statement));
        let rolled_back = self.note(statement, ran.is_err());
        let (batches, has_rows) = ran?;
        if !has_rows {
            let rows = batches.rows_affected().unwrap_or(0);
            return Ok(match statement.command() {
                _ if rolled_back => Answer::RolledBack,
                "INSERT" | "UPDATE" | "DELETE" => Answer::Changed(rows),
                "COPY" => Answer::Copied { rows, refused: 0, messages: Vec::new() },
                "MOVE" => Answer::Moved(rows),
                _ => Answer::Done,
            });
        }
        if statement.command() == "EXPLAIN" {
            let lines = self.waiting.wait(batches.collect());
            let lines = lines.map_err(|failure| failure.of(statement))?;
            return Ok(Answer::Text(texts(&lines, 0).join("\n")));
        }
        let schema = batches.schema().clone();
        let rows = RemoteRows { batches, remote: self, statement: statement.clone() };
        Ok(Answer::Rows(schema, Box::new(rows)))
    }

    /// Subscribes over a connection of its own, so that other statements go on.
    fn subscribe(&mut self, statement: &Statement) -> Result<Answer<'_>, Failure> {
        let StatementKind::Subscribe(changes) = &tree(statement).kind else {
            return self.query(statement);
        };
        let options =
            SubscribeOptions::new().snapshot(changes.has_snapshot).progress(changes.has_progress);
        let options = match changes.as_of {
            Some(epoch) => options.as_of(epoch),
            None => options,
        };
        let client = self.client()?;
        let position = (changes.position.line, changes.position.column);
        let subscribed = self.waiting.wait(client.subscribe(&written(&changes.name), options));
        let subscription = subscribed.map_err(|failure| match failure {
            // Its own position is one in another text.
            wait::Failed::Error(error) => Failure::Error(error.to_string(), Some(position)),
            wait::Failed::Interrupted => Failure::Interrupted,
        })?;
        let schema = changes_schema(subscription.schema());
        let mut rows = subscription.map(|change| {
            let change = change.map_err(|error| Failure::new(error.to_string()))?;
            let change = alluvium::Change::new(change.epoch, change.rows, change.weights);
            // Lists may be of more dimensions than was known.
            let of = changes_schema(&change.rows.schema());
            change_rows(&of, &change).map_err(|error| Failure::new(error.to_string()))
        });
        // It connects again inside of the runtime.
        let runtime = self.runtime.handle().clone();
        let rows = stream::poll_fn(move |context| {
            let _entered = runtime.enter();
            rows.poll_next_unpin(context)
        });
        Ok(Answer::Changes(Changes { schema, rows: rows.boxed_local() }))
    }
}

impl Backend for Remote {
    fn set_base(&mut self, _: &Path) {
        // Paths in statements are the server's.
    }

    fn at_prompt(&mut self) {
        self.is_prompt = true;
    }

    fn run(&mut self, statement: &Statement, _: &mut dyn Around) -> Result<Answer<'_>, Failure> {
        let position = Some(statement.position());
        match &tree(statement).kind {
            StatementKind::Copy { path: None, .. } => Err(Failure::Error(
                "COPY FROM STDIN cannot be typed here: .import FILE TABLE reads a file of this machine"
                    .to_owned(),
                position,
            )),
            StatementKind::CopyTo { path: None, .. } | StatementKind::CopyChanges { .. } => {
                Err(Failure::Error(
                    "COPY TO STDOUT cannot be shown here: .output FILE, .mode csv and a query write a file of this machine"
                        .to_owned(),
                    position,
                ))
            }
            StatementKind::Subscribe(_) => self.subscribe(statement),
            _ => self.query(statement),
        }
    }

    fn import(&mut self, path: &str, table: &str) -> Result<Vec<Answer<'_>>, Failure> {
        let client = self.client()?;
        import::import(&client, &self.waiting, path, table).map(|answer| vec![answer])
    }

    fn relations(&mut self) -> Result<Vec<Listed>, Failure> {
        let client = self.client()?;
        Ok(self.waiting.wait(catalog::relations(&client))?)
    }

    fn names(&self) -> Box<dyn Fn() -> Vec<Listed>> {
        let (client, runtime) = (self.client.clone(), self.runtime.handle().clone());
        Box::new(move || {
            let client = client.borrow().clone();
            let listed =
                runtime.block_on(async { timeout(PATIENCE, catalog::relations(&client)).await });
            // The next statement reports what is wrong.
            listed.ok().and_then(Result::ok).unwrap_or_default()
        })
    }

    fn functions(&mut self) -> Vec<String> {
        Vec::new()
    }

    fn refused(&mut self) -> Refused {
        Refused::default()
    }

    fn gained_errors(&mut self, _: bool) -> Result<Vec<(String, i64, String)>, Failure> {
        // They may be those of others.
        Ok(Vec::new())
    }

    fn sources_end(&self) -> Result<Option<SourcesEnd>, Stop> {
        Ok(None)
    }

    fn settle(&self) -> Result<(), Failure> {
        Ok(())
    }
}

/// The rows of a statement, as the server sends them.
struct RemoteRows<'a> {
    batches: Batches,
    remote: &'a mut Remote,
    statement: Statement,
}

impl Iterator for RemoteRows<'_> {
    type Item = Result<RecordBatch, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.remote.waiting.wait(self.batches.try_next()) {
            Ok(rows) => rows.map(Ok),
            Err(failure) => {
                self.remote.note(&self.statement, true);
                Some(Err(failure.of(&self.statement)))
            }
        }
    }
}

/// The texts of a column; NULL is an empty one.
fn texts(rows: &RecordBatch, column: usize) -> Vec<String> {
    match rows.column(column).as_string_opt::<i32>() {
        Some(texts) => (0..texts.len())
            .map(|row| if texts.is_null(row) { "" } else { texts.value(row) }.to_owned())
            .collect(),
        None => Vec::new(),
    }
}
