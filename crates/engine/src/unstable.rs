//! Parts of the engine that may change with any release.
//!
//! The other crates of this project use them: the command line reads the syntax trees of a program, readers of files take texts
//! as values of columns and name types as SQL does, and tests replace storage or arm faults. No other program should, unless it pins an exact version.

use std::sync::Arc;

pub use alluvium_sql::functions::{FunctionKind, function_kind, function_names};
pub use alluvium_sql::planner::type_name;
pub use alluvium_sql::statement::{
    MOST_COLUMNS, MOST_NAME_BYTES, Setting, Statement as StatementTree, StatementKind,
};
pub use alluvium_sql::texts;
use alluvium_storage::{ClaimedStorage, Compaction, Journal, Manifests, Storage};
use alluvium_trace::Schedule;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use crate::error::Result;
use crate::file_access::FileAccess;
use crate::session::Prepared;
use crate::statement::Statement;

/// Seeded faults of this crate, which judges have to find.
pub mod fault {
    pub use crate::fault::Fault;
}

/// The syntax tree of a statement.
pub fn tree(statement: &Statement) -> &StatementTree {
    statement.tree()
}

/// A statement of a syntax tree.
pub fn with_tree(tree: StatementTree) -> Statement {
    Statement::new(tree)
}

/// Calls of an engine that only this project's command line needs.
pub trait EngineParts {
    /// Waits until no input is read any more: each has come to its end, or failed. The rest as
    /// [`Engine::wait_for_sources`](crate::Engine::wait_for_sources).
    fn wait_for_ends_of_sources(&self) -> Result<()>;
}

/// The syntax tree of a statement that was prepared.
pub fn prepared_tree(prepared: &Prepared) -> &StatementTree {
    prepared.statement()
}

/// Calls of a session that only this project's server needs: `COPY … FROM STDIN`, whose rows come from a client, and what a client
/// is told.
pub trait SessionParts {
    /// Whether the statement is a query that names a view, or calls a function, of the
    /// [program's own](crate::Builder::system_sql).
    fn uses_system(&self, statement: &StatementTree) -> bool;

    /// Gives the session its number among the clients of a server, which `current_setting('alluvium.session')` shows.
    fn set_number(&mut self, number: i32);

    /// Lets the session read these files, which its program has put there for it, whatever its role.
    fn set_private_files(&mut self, access: FileAccess);

    /// The columns of the rows that the statement takes, in their order.
    fn columns_from_client(&mut self, statement: &Statement) -> Result<SchemaRef>;

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

    /// Merges state and cuts batches in another way: results do not depend on it.
    fn schedule(self, schedule: Schedule) -> Self;
}
