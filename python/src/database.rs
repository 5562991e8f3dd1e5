//! An engine, as a program in Python holds it.

use std::path::PathBuf;
use std::sync::Arc;

use alluvium::{Builder, Durability, Engine, FileAccess, Policy, SubscribeOptions};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::error;
use crate::frames::{FrameSource, Frames};
use crate::function::Function;
use crate::info::{Progress, RelationInfo, State};
use crate::open::Open;
use crate::result::Result;
use crate::rows::Target;
use crate::session::Session;
use crate::slot::Slot;
use crate::subscription::Subscription;
use crate::transaction::{Transaction, Write};
use crate::view::View;

/// An engine. Threads may share it.
#[pyclass(module = "alluvium", frozen, subclass, weakref)]
pub(crate) struct Database {
    engine: Arc<Slot<Engine>>,
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
        self.engine.open()
    }

    /// Calls `act` with the engine, without the GIL.
    fn with<R: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&Engine) -> alluvium::Result<R> + Send,
    ) -> PyResult<R> {
        self.engine.share(py, act)
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
        let transaction = Transaction::begin(py, &self.engine, None)?;
        let count = transaction.write(py, write, table, rows)?;
        transaction.end(py)?;
        Ok(count)
    }
}

/// The table that rows are written to.
pub(crate) fn target(
    py: Python<'_>,
    engine: &Arc<Slot<Engine>>,
    table: &str,
    write: Write,
) -> PyResult<Target> {
    let info = engine.share(py, |engine| engine.relation(table))?;
    let key = (write == Write::Delete).then_some(info.primary_key);
    let replaces = write == Write::Upsert;
    Ok(Target { name: info.name, schema: info.schema, key, replaces })
}

#[pymethods]
impl Database {
    #[new]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    #[pyo3(signature = (path, *, workers, memory, durability, files, strict, history, functions))]
    fn new(
        py: Python<'_>,
        path: Option<String>,
        workers: usize,
        memory: Option<usize>,
        durability: &str,
        files: Files,
        strict: bool,
        history: Option<u64>,
        functions: Vec<Py<Function>>,
    ) -> PyResult<Self> {
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
        let engine = engine.map_err(|error| error::raised(py, &error, None))?;
        let engine = Open::engine(engine, number, path, frames);
        let session = Session::new(py, &engine)?;
        Ok(Self { engine, session })
    }

    /// The state directory; ``None`` of an engine in memory.
    #[getter]
    fn path(&self) -> Option<&str> {
        self.open().path()
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
        Session::new(py, &self.engine)
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
        Transaction::begin(py, &self.engine, key)
    }

    /// The epoch of the transaction that was committed with a key; ``None`` if none was, or if 100,000 others came after it.
    fn committed(&self, py: Python<'_>, key: &str) -> PyResult<Option<u64>> {
        self.with(py, |engine| engine.committed(key))
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
        let mut options = SubscribeOptions::new().policy(policy);
        if let Some(after) = after {
            options = options.after(after);
        }
        if let Some(epochs) = epochs {
            options = options.epochs(epochs);
        }
        let subscribed = self.with(py, |engine| engine.subscribe_with(relation, options))?;
        Ok(Subscription::new(self.open(), relation, subscribed))
    }

    /// Looks up a table or a materialized view, to be read by key.
    ///
    /// The key is the primary key of a table, or the columns on which no two rows of a view agree, such as those of its GROUP BY.
    fn view(&self, py: Python<'_>, name: &str) -> PyResult<View> {
        Ok(View::new(self.open(), self.with(py, |engine| engine.view(name))?))
    }

    /// Describes all tables and views, in the order of their names.
    fn relations(&self, py: Python<'_>) -> PyResult<Vec<RelationInfo>> {
        let relations = self.with(py, Engine::relations)?;
        Ok(relations.into_iter().map(RelationInfo::from).collect())
    }

    /// Waits until all changes up to an epoch are in all views. Reads by SQL and by key wait by themselves; subscribers and outputs do not.
    fn wait(&self, py: Python<'_>, epoch: u64) -> PyResult<()> {
        self.with(py, |engine| engine.wait(epoch))
    }

    /// Starts the connectors of all tables, and waits until they have read everything.
    fn wait_for_sources(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |engine| {
            engine.start()?;
            engine.wait_for_sources()
        })
    }

    /// Waits as :meth:`wait_for_sources` does, and writes the outputs of views: the end of a program that reads and writes files.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, Engine::finish)
    }

    /// Takes a checkpoint of a state directory, so that the next start is quick. The engine takes them by itself, too.
    fn checkpoint(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, Engine::checkpoint)
    }

    /// The last epoch that was committed, and the last that is complete in all views. Does not wait.
    fn progress(&self, py: Python<'_>) -> PyResult<Progress> {
        self.with(py, |engine| Ok(engine.progress())).map(Progress::from)
    }

    /// The size of the state, in memory and on disk. Does not wait.
    fn state(&self, py: Python<'_>) -> PyResult<State> {
        self.with(py, |engine| Ok(engine.state())).map(State::from)
    }

    /// Ends all calls that are running on this engine, in whatever thread: they raise ``InterruptedError`` and leave nothing.
    fn interrupt(&self) {
        self.open().interrupt();
    }

    /// Ends all calls that are running, and closes the engine with all that belongs to it.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.open().close(py)
    }
}
