//! A database, as a program in Python holds it.

use std::path::PathBuf;
use std::sync::Arc;

use alluvium::{Builder, Durability, Engine, FileAccess, Policy};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::backend::engine::Embedded;
use crate::backend::server::{self, Server};
use crate::backend::{Backend, Subscribing, Write};
use crate::call;
use crate::error;
use crate::failure::Fallible;
use crate::frames::{FrameSource, Frames};
use crate::function::Function;
use crate::info::{Progress, RelationInfo, State};
use crate::open::{Open, Place};
use crate::result::Result;
use crate::session::Session;
use crate::slot::Slot;
use crate::subscription::Subscription;
use crate::transaction::Transaction;
use crate::view::View;

/// An engine, or a connection to a server. Threads may share it.
#[pyclass(module = "alluvium", frozen, subclass, weakref)]
pub(crate) struct Database {
    backend: Arc<Slot<Arc<dyn Backend>>>,
    /// The session of [`Database::sql`].
    session: Session,
}

/// Which files statements may use.
#[derive(FromPyObject)]
enum Files {
    All(bool),
    Below(Vec<PathBuf>),
}

impl Database {
    fn open(&self) -> &Arc<Open> {
        self.backend.open()
    }

    /// Calls `act` with the backend, without the GIL.
    fn with<R: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&dyn Backend) -> Fallible<R> + Send,
    ) -> PyResult<R> {
        self.backend.share(py, |backend| act(&**backend))
    }

    /// A database that was opened.
    fn opened(
        py: Python<'_>,
        backend: Arc<dyn Backend>,
        number: u64,
        place: Place,
        frames: Arc<Frames>,
    ) -> PyResult<Self> {
        let backend = Open::database(backend, number, place, frames);
        let session = Session::new(py, &backend)?;
        Ok(Self { backend, session })
    }

    fn write(
        &self,
        py: Python<'_>,
        write: Write,
        table: &str,
        rows: &Bound<'_, PyAny>,
    ) -> PyResult<u64> {
        if self.session.in_transaction(py)? {
            return Err(error::interface(
                py,
                "a transaction of SQL is open, which this would not be part of: COMMIT or ROLLBACK first, or write with INSERT … SELECT * FROM the variable",
            ));
        }
        let transaction = Transaction::begin(py, &self.backend, None)?;
        let count = transaction.write(py, write, table, rows)?;
        transaction.end(py)?;
        Ok(count)
    }
}

#[pymethods]
impl Database {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    #[pyo3(signature = (path, *, server, workers, memory, durability, files, strict, history, functions))]
    fn new(
        py: Python<'_>,
        path: Option<String>,
        server: Option<(String, Option<String>, Option<String>)>,
        workers: usize,
        memory: Option<usize>,
        durability: &str,
        files: Files,
        strict: bool,
        history: Option<u64>,
        functions: Vec<Py<Function>>,
    ) -> PyResult<Self> {
        if let Some((url, user, password)) = server {
            return Self::connect(py, &url, user.as_deref(), password.as_deref());
        }
        if workers == 0 {
            return Err(error::interface(py, "an engine has at least one worker"));
        }
        let durability: Durability = durability.parse().map_err(|_| {
            error::interface(
                py,
                "durability is \"always\", \"never\", or \"interval(MS)\" with a number of milliseconds",
            )
        })?;
        let access = match files {
            Files::All(true) => FileAccess::Everything,
            Files::All(false) => FileAccess::Nothing,
            Files::Below(directories) => FileAccess::Below(directories),
        };
        let frames: Arc<Frames> = Arc::default();
        let mut builder: Builder = alluvium_connect::formats(Engine::builder())
            .source(FrameSource(frames.clone()))
            .workers(workers)
            .memory(memory)
            .durability(durability)
            .file_access(access)
            .strict(strict)
            .history(history.unwrap_or(0));
        let number = Open::next_number();
        for function in &functions {
            builder = builder.function(function.get().registered(number));
        }
        if let Some(path) = &path {
            builder = builder.state(format!("file:{path}"));
        }
        let engine = py.detach(|| builder.open());
        let engine = engine.map_err(|error| error::raised(py, &error.into(), None))?;
        let backend = Arc::new(Embedded::new(engine, frames.clone()));
        let place = path.map_or(Place::Memory, Place::Directory);
        Self::opened(py, backend, number, place, frames)
    }

    /// The state directory; ``None`` of an engine in memory, and over a connection.
    #[getter]
    fn path(&self) -> Option<&str> {
        match self.open().place() {
            Place::Directory(path) => Some(path),
            Place::Memory | Place::Server => None,
        }
    }

    /// Whether it is on a server, and not in this process.
    #[getter]
    fn is_remote(&self) -> bool {
        matches!(self.open().place(), Place::Server)
    }

    /// Whether it is closed.
    #[getter]
    fn is_closed(&self) -> bool {
        self.open().is_closed()
    }

    /// Runs SQL and returns the result of its last statement.
    ///
    /// ``parameters`` are the values of ``$1``, ``$2`` and so on; a text with parameters has one statement. ``BEGIN`` opens a transaction, which
    /// lasts until ``COMMIT`` or ``ROLLBACK`` of this handle. SUBSCRIBE is refused: :meth:`subscribe` returns changes.
    ///
    /// A name of which there is no relation is looked up among the variables of the caller: if the object there has Arrow data, as frames have,
    /// the query reads it.
    #[pyo3(signature = (query, *parameters))]
    fn sql(
        &self,
        py: Python<'_>,
        query: &str,
        parameters: &Bound<'_, PyTuple>,
    ) -> PyResult<Result> {
        self.session.run(py, query, parameters)
    }

    /// The same as :meth:`sql`, as other packages call it.
    #[pyo3(signature = (query, *parameters))]
    fn execute(
        &self,
        py: Python<'_>,
        query: &str,
        parameters: &Bound<'_, PyTuple>,
    ) -> PyResult<Result> {
        self.session.run(py, query, parameters)
    }

    /// Begins a session: a client with settings, temporary tables and a transaction of its own. Statements of one session run one after the
    /// other, those of several at the same time.
    fn session(&self, py: Python<'_>) -> PyResult<Session> {
        Session::new(py, &self.backend)
    }

    /// Whether ``sql`` has begun a transaction that is open.
    #[getter]
    fn in_transaction(&self, py: Python<'_>) -> PyResult<bool> {
        self.session.in_transaction(py)
    }

    /// Inserts rows into a table, as one transaction. Returns how many.
    ///
    /// Rows are a frame of polars or pandas, other Arrow data, a dict of columns, or an iterable of dicts or tuples, one for each row, or of
    /// several such. Columns are found by name, values of tuples by place. Columns that are left out get their DEFAULT, or NULL. Rows are
    /// copied: a frame may be changed afterwards. While ``BEGIN`` of this handle is open, this is refused.
    fn insert(&self, py: Python<'_>, table: &str, rows: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.write(py, Write::Insert, table, rows)
    }

    /// Inserts rows into a table with a primary key, as one transaction. A row takes the place of the row with its key. Returns how many were given.
    ///
    /// Rows are as for :meth:`insert`.
    fn upsert(&self, py: Python<'_>, table: &str, rows: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.write(py, Write::Upsert, table, rows)
    }

    /// Deletes rows from a table, as one transaction. Returns how many were given.
    ///
    /// Rows are as for :meth:`insert`. If the table has a primary key, the columns of the key are enough.
    fn delete(&self, py: Python<'_>, table: &str, rows: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.write(py, Write::Delete, table, rows)
    }

    /// Begins a transaction of batches: ``with db.transaction() as tx`` commits it at the end of the block, or rolls it back if that raises.
    ///
    /// A transaction whose ``key`` was committed before has no effect, so a program that does not know whether a commit succeeded can repeat
    /// it. The engine remembers the last 100,000 keys.
    #[pyo3(signature = (key = None))]
    fn transaction(&self, py: Python<'_>, key: Option<&str>) -> PyResult<Transaction> {
        Transaction::begin(py, &self.backend, key)
    }

    /// The epoch of the transaction that was committed with a key; ``None`` if none was, or if 100,000 others came after it.
    fn committed(&self, py: Python<'_>, key: &str) -> PyResult<Option<u64>> {
        self.with(py, |backend| backend.committed(key))
    }

    /// Subscribes to the changes of a view or a table: a snapshot, then a change for each epoch that changes it.
    ///
    /// With ``after`` there is no snapshot, and changes begin with the first one after that epoch. It raises ``GoneError`` if they are not kept
    /// any more: ``history`` of :func:`alluvium.open` says for how many epochs they are.
    ///
    /// Changes that are not taken wait, for at most ``epochs`` epochs, by default 1,024. Beyond that the policy ``block`` holds up commits,
    /// ``disconnect`` ends the subscription with ``BehindError``, and ``resync`` sends a snapshot in place of the changes.
    #[pyo3(signature = (relation, *, after = None, policy = "block", epochs = None))]
    fn subscribe(
        &self,
        py: Python<'_>,
        relation: &str,
        after: Option<u64>,
        policy: &str,
        epochs: Option<u64>,
    ) -> PyResult<Subscription> {
        let policy = match policy {
            "block" => Policy::Block,
            "disconnect" => Policy::Disconnect,
            "resync" => Policy::Resync,
            _ => {
                return Err(error::interface(
                    py,
                    "a policy is \"block\", \"disconnect\" or \"resync\"",
                ));
            }
        };
        let options = Subscribing { after, policy, epochs };
        let changes = self.with(py, |backend| backend.subscribe(relation, options))?;
        Ok(Subscription::new(self.open(), relation, changes))
    }

    /// Looks up a table or a materialized view, to be read by key.
    ///
    /// The key is the primary key of a table, or the columns on which no two rows of a view agree, such as those of its GROUP BY.
    fn view(&self, py: Python<'_>, name: &str) -> PyResult<View> {
        Ok(View::new(self.open(), self.with(py, |backend| backend.view(name))?))
    }

    /// Describes all tables and views, in the order of their names.
    fn relations(&self, py: Python<'_>) -> PyResult<Vec<RelationInfo>> {
        self.with(py, |backend| backend.relations())
    }

    /// Waits until all changes up to an epoch are in all views. Reads by SQL and by key wait by themselves; subscribers and outputs do not.
    fn wait(&self, py: Python<'_>, epoch: u64) -> PyResult<()> {
        self.with(py, |backend| backend.wait(epoch))
    }

    /// Starts the connectors of all tables, and waits until they have read everything.
    fn wait_for_sources(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |backend| backend.wait_for_sources())
    }

    /// Waits as :meth:`wait_for_sources` does, and writes the outputs of views: the end of a program that reads and writes files.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |backend| backend.finish())
    }

    /// Takes a checkpoint of a state directory, so that the next start is quick. The engine takes them by itself, too.
    fn checkpoint(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |backend| backend.checkpoint())
    }

    /// The last epoch that was committed, and the last that is complete in all views. Does not wait.
    fn progress(&self, py: Python<'_>) -> PyResult<Progress> {
        self.with(py, |backend| backend.progress())
    }

    /// The size of the state, in memory and on disk. Does not wait.
    fn state(&self, py: Python<'_>) -> PyResult<State> {
        self.with(py, |backend| backend.state())
    }

    /// Ends all calls that are running on this database, in whatever thread: they raise ``InterruptedError`` and leave nothing.
    fn interrupt(&self) {
        self.open().interrupt();
    }

    /// Ends all calls that are running, and closes the database with all that belongs to it.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.open().close(py)
    }
}

impl Database {
    /// A database on a server.
    fn connect(
        py: Python<'_>,
        url: &str,
        user: Option<&str>,
        password: Option<&str>,
    ) -> PyResult<Self> {
        let raised = |failure| error::raised(py, &failure, None);
        let address = server::address(url, user, password).map_err(raised)?;
        let server = call::opening(py, || Server::connect(address))?;
        Self::opened(py, Arc::new(server), Open::next_number(), Place::Server, Arc::default())
    }
}
