//! Parsing SQL text.
//!
//! The tokens of a text are split into statements at semicolons, and each statement is parsed when it is reached.
//! Positions refer to the whole text. Names are resolved later, by the [planner](crate::planner).
//!
//! In reading order: `statements` splits text, `dialect` extends sqlparser's generic SQL, and `kind` classifies
//! statements and refuses unsupported ones. `table` and `view` read definitions, `nested_types` rewrites type
//! names, and `connector` reads connectors (as `json` or flat options). `copy` reads COPY, and `file` finds the
//! files that queries name.
mod connector;
mod copy;
mod dialect;
mod file;
mod json;
mod kind;
mod nested_types;
mod statements;
mod table;
mod view;

use sqlparser::ast;

pub use self::connector::{ConnectorDefinition, Setting};
pub use self::file::{files, relations};
pub(crate) use self::kind::{fold, relation_name};
pub use self::statements::{Statements, parse};
pub use self::table::{TableDefinition, is_column_type};
pub use self::view::{ViewDefinition, ViewKind};
use crate::error::Position;

/// One statement of a text.
#[derive(Clone, Debug)]
pub struct Statement {
    /// Its kind, with its contents.
    pub kind: StatementKind,
    /// Its source, without the semicolon.
    pub text: String,
    /// The position at which it starts.
    pub position: Position,
}

/// What a definition does if its name is taken by a relation of the same kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IfTaken {
    /// Fails.
    #[default]
    Fail,
    /// `IF NOT EXISTS`: does nothing.
    Keep,
    /// `OR REPLACE`: replaces the other relation.
    Replace,
}

/// `DROP TABLE` or `DROP VIEW`.
#[derive(Clone, Debug)]
pub struct Drop {
    /// The relation.
    pub name: String,
    /// The position of its name.
    pub position: Position,
    /// Whether it is no error if the relation does not exist.
    pub if_exists: bool,
    /// Whether to drop everything that depends on it.
    pub cascade: bool,
}

/// The kinds of statements. Names are folded; positions are those of names.
#[derive(Clone, Debug)]
pub enum StatementKind {
    /// `CREATE TABLE`
    CreateTable(TableDefinition),
    /// `CREATE [LOCAL | MATERIALIZED] VIEW`
    CreateView(ViewDefinition),
    /// `DROP TABLE`
    DropTable(Drop),
    /// `DROP [MATERIALIZED] VIEW`
    DropView(Drop),
    /// `INSERT INTO … VALUES` or `SELECT`
    Insert(Box<ast::Insert>),
    /// `UPDATE … SET`
    Update(Box<ast::Update>),
    /// `DELETE FROM`
    Delete(Box<ast::Delete>),
    /// `BEGIN` or `START TRANSACTION`
    Begin,
    /// `COMMIT` or `END`
    Commit,
    /// `ROLLBACK`
    Rollback,
    /// `CREATE TABLE table FROM 'path' (NAME value, …)`
    CreateTableFrom {
        /// The table.
        name: String,
        /// The position of its name.
        position: Position,
        /// The path of its columns and rows, as written.
        path: String,
        /// The options for reading.
        options: Vec<Setting>,
    },
    /// `START`: starts all connectors that have not started.
    Start,
    /// `COPY table (columns) FROM 'path' (NAME value, …)`
    Copy {
        /// The table that is copied into.
        table: String,
        /// The position of its name.
        position: Position,
        /// The columns of the rows and the positions of their names; empty for all columns.
        columns: Vec<(String, Position)>,
        /// The path of the rows, as written.
        path: String,
        /// The options for reading.
        options: Vec<Setting>,
    },
    /// `COPY table (columns) TO 'path' (NAME value, …)`, or of a query
    CopyTo {
        /// The query whose rows are copied.
        query: Box<ast::Query>,
        /// The position of its name.
        position: Position,
        /// The path to write to, as written.
        path: String,
        /// The options for writing.
        options: Vec<Setting>,
    },
    /// `SELECT`, `WITH` or `VALUES`
    Query(Box<ast::Query>),
    /// `SUBSCRIBE relation`
    Subscribe {
        /// The view or table.
        name: String,
        /// The position of its name.
        position: Position,
    },
    /// `EXPLAIN VIEW`
    ExplainView {
        /// The view.
        name: String,
        /// The position of its name.
        position: Position,
    },
    /// `EXPLAIN SELECT`
    ExplainSelect(Box<ast::Query>),
}
