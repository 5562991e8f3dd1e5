//! Parts of the engine that may change with any release.
//!
//! The other crates of this project use them: the command line reads the syntax trees of a program, readers of files take texts
//! as values of columns and name types as SQL does, and tests replace storage or arm faults. No other program should, unless it pins an exact version.

use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

pub use alluvium_sql::functions::{FunctionKind, function_kind, function_names};
pub use alluvium_sql::planner::type_name;
use alluvium_sql::statement::Named;
pub use alluvium_sql::statement::{
    MOST_COLUMNS, MOST_NAME_BYTES, Setting, Statement as StatementTree, StatementKind, nearest,
};
pub use alluvium_sql::texts;
pub use alluvium_storage::disk::platform;
use alluvium_storage::{ClaimedStorage, Compaction, Elsewhere, Journal, Manifests, Storage};
use alluvium_trace::Schedule;
use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, SchemaRef};

pub use crate::durable::directory::note_address;
pub use crate::durable::followed::{Lag, Promoted};
use crate::error::{Error, Result};
use crate::file_access::FileAccess;
pub use crate::log::LogLine;
use crate::query::Rows;
pub use crate::sequencer::owned_key;
pub use crate::session::clients::ClientInfo;
use crate::session::{Outcome, Prepared};
use crate::statement::Statement;
pub use crate::subscription::{ChangedRows, columns_of_changes};
use crate::value::Value;
pub use crate::wait::thread_waker;

/// Seeded faults of this crate, which judges have to find.
pub mod fault {
    pub use crate::fault::Fault;
}

/// The type of a table's column that SQL calls so.
pub fn named_type(name: &str) -> Result<DataType> {
    Ok(alluvium_sql::statement::named_type(name)?)
}

/// The syntax tree of a statement.
pub fn tree(statement: &Statement) -> &StatementTree {
    statement.tree()
}

/// The kind of an error: the name of its variant, which the SQLSTATE does not tell.
pub fn error_kind(error: &Error) -> &'static str {
    match error {
        Error::Sql { .. } => "Sql",
        Error::Data { .. } => "Data",
        Error::Source { .. } => "Source",
        Error::Denied { .. } => "Denied",
        Error::Failed { .. } => "Failed",
        Error::Conflict { .. } => "Conflict",
        Error::Poisoned { .. } => "Poisoned",
        Error::Behind { .. } => "Behind",
        Error::Gone { .. } => "Gone",
        Error::Interrupted => "Interrupted",
        Error::TimedOut => "TimedOut",
        Error::State { .. } => "State",
        Error::Start { .. } => "Start",
    }
}

/// A statement of a syntax tree.
pub fn with_tree(tree: StatementTree) -> Statement {
    Statement::new(tree)
}

/// Calls of an engine that only this project's command line and standbys need.
pub trait EngineParts {
    /// Waits until no input is read any more: each has come to its end, or failed. The rest as
    /// [`Engine::wait_for_sources`](crate::Engine::wait_for_sources).
    fn wait_for_ends_of_sources(&self) -> Result<()>;

    /// How far the engine is behind the one that it [follows](BuilderParts::follow); `None` if it is no standby, or none any more.
    fn lag(&self) -> Option<Lag>;

    /// Takes the place of the engine that this one [follows](BuilderParts::follow): from now on it commits, and that one cannot any more.
    /// Everything is there that the other one has acknowledged.
    ///
    /// Inputs start, from where the other engine has read them. If one cannot be opened, it is promoted nevertheless, and the answer says why.
    ///
    /// # Errors
    ///
    /// If it is no standby. If the journal cannot be opened, nothing has changed, and it goes on to follow.
    fn promote(&self) -> Result<Promoted>;

    /// The files and secrets that inputs which have not started need, and that are not there: for a standby, before it is promoted.
    fn lacking(&self) -> Vec<String>;

    /// The secrets, connections and sinks that statements have created.
    fn named_for_connectors(&self) -> Vec<NamedForConnectors>;
}

/// A secret, a connection or a sink.
#[derive(Clone, Debug)]
pub struct NamedForConnectors {
    /// `SECRET`, `CONNECTION` or `SINK`.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// The statement that created it.
    pub sql: String,
    /// The relation that a sink writes.
    pub relation: Option<String>,
}

/// The syntax tree of a statement that was prepared.
pub fn prepared_tree(prepared: &Prepared) -> &StatementTree {
    prepared.statement()
}

/// A FETCH of changes that has begun.
#[derive(Clone, Debug)]
pub struct Fetching {
    pub(crate) cursor: Named,
    /// The columns of its rows.
    pub schema: SchemaRef,
    /// How many rows it takes at most.
    pub most: u64,
    /// How long it takes what comes; without a timeout it takes what is there, once there is something.
    pub timeout: Option<Duration>,
    /// Whether rows tell progress, which wakes nobody: it has to be asked for now and then.
    pub has_progress: bool,
    /// When the statement takes longer than statements may.
    pub statement_ends: Option<Instant>,
}

/// Calls of a session that only this project's server needs: `COPY … FROM STDIN`, whose rows come from a client, FETCH of changes, which
/// waits on no thread, what a client is told, and statements that do not block.
pub trait SessionParts {
    /// As [`Session::execute_prepared`](crate::Session::execute_prepared), of BEGIN, and of a statement that finds a row by its key, ran before, and need
    /// not wait for anything: a read, or inside of BEGIN and COMMIT a change. `None`, without an effect, of all others.
    fn execute_at_once(&mut self, prepared: &Prepared, values: &[Value])
    -> Option<Result<Outcome>>;

    /// As [`SessionParts::execute_at_once`], of the text of one statement that is not parsed yet, but BEGIN. Returns its command too.
    fn execute_text_at_once(&mut self, sql: &str) -> Option<Result<(&'static str, Outcome)>>;

    /// Whether to prepare the same text again would make the same, of a statement that ran before. Does not block.
    fn is_current(&mut self, prepared: &Prepared) -> bool;

    /// Whether the statement is a query that names a view, or calls a function, of the
    /// [program's own](crate::Builder::system_sql).
    fn uses_system(&self, statement: &StatementTree) -> bool;

    /// Makes the session that of a client, which `alluvium.sessions` lists as long as the session is there.
    fn set_client(&mut self, info: &ClientInfo);

    /// A call for the client begins; [`SessionParts::end_call`] follows it.
    fn begin_call(&mut self);

    /// A call for the client has ended.
    fn end_call(&mut self);

    /// Lets the session read these files, which its program has put there for it, whatever its role.
    fn set_private_files(&mut self, access: FileAccess);

    /// The columns of the rows that the statement takes, in their order.
    fn columns_from_client(&mut self, statement: &Statement) -> Result<SchemaRef>;

    /// The rows that `COPY … TO STDOUT` sends.
    fn copy_to_client(&mut self, statement: &Statement) -> Result<Rows>;

    /// Begins a FETCH of changes, if the statement is one; `None` if it fetches rows of a query, or is another one.
    fn begin_fetch(&mut self, statement: &StatementTree) -> Result<Option<Fetching>>;

    /// The next changes of a FETCH, at most so many, of one epoch; `None` once nothing will come any more. Does not wait: `waker` is woken
    /// once there is something. If it fails, the open transaction is aborted as by a statement.
    fn poll_fetch(
        &mut self,
        fetching: &Fetching,
        most: u64,
        waker: Option<&Waker>,
    ) -> Poll<Result<Option<RecordBatch>>>;

    /// Fails as a statement does if the open transaction [has been aborted](crate::Session::is_aborted).
    fn check_not_aborted(&mut self) -> Result<()>;

    /// How many savepoints of the open transaction there are to return to.
    fn savepoints(&self) -> usize;

    /// The relation that LISTEN names, whose changes the session may have.
    fn listened(&mut self, statement: &StatementTree) -> Result<String>;

    /// The bytes of the texts of statements that PREPARE has made, and of their names.
    fn named_statement_bytes(&self) -> usize;

    /// Runs the statement with the rows that `next` gives until there are no more, and returns how many they were. If it fails,
    /// nothing is copied.
    fn copy_from_client(
        &mut self,
        statement: &Statement,
        next: &mut dyn FnMut() -> Result<Option<RecordBatch>>,
    ) -> Result<u64>;
}

/// Parts that an engine uses in place of its own.
pub trait BuilderParts: Sized {
    /// Merges state here instead of on threads of its own.
    fn compaction(self, compaction: impl Compaction + 'static) -> Self;

    /// Spills state here instead of to a folder of its own.
    fn storage(self, storage: impl Storage + 'static) -> Self;

    /// Keeps everything here instead of in a state directory.
    fn store(
        self,
        journal: Arc<dyn Journal>,
        manifests: Arc<dyn Manifests>,
        blobs: Arc<ClaimedStorage>,
    ) -> Self;

    /// As [`BuilderParts::store`], with this journal, the rest in memory, and no checkpoints.
    fn journal(self, journal: Arc<dyn Journal>) -> Self;

    /// Keeps the journal of the state directory there, and not in the directory. Who has opened that journal before cannot commit any more.
    ///
    /// The directory belongs to this journal from then on: it is opened with no other one, and not without it.
    fn elsewhere(self, journal: Arc<dyn Elsewhere>) -> Self;

    /// Follows the engine that writes to the journal [elsewhere](BuilderParts::elsewhere), under a name of its own: the engine is a
    /// [standby](EngineParts::promote), which does what that one records, answers reads, and refuses what writes.
    ///
    /// The journal keeps for it what it has not in a checkpoint yet. It has to begin where the journal does: with a new directory if the
    /// journal has all of its records, or else with a copy of the writer's directory.
    fn follow(self, follower: impl Into<String>) -> Self;

    /// Shows these lines as `alluvium.log`: the last ones of the log of the process, the oldest first.
    fn log(self, lines: impl Fn() -> Vec<LogLine> + Send + Sync + 'static) -> Self;

    /// Merges state and cuts batches in another way: results do not depend on it.
    fn schedule(self, schedule: Schedule) -> Self;
}
