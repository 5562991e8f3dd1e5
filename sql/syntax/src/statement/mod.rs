//! SQL text as statements.
//!
//! A text is split into statements at its semicolons, and each statement is parsed when it is reached. All positions refer
//! to the original text. Parsing does not look at the catalog: the planner resolves names.
//!
//! - `statements` splits the text, `kind` parses each statement and refuses unsupported ones;
//! - `dialect` lists the differences from sqlparser's generic SQL, `respelled` spells ASOF joins, types and GROUPING SETS for it, and `room` bounds the
//!   depth of its trees;
//! - `table` and `view` read definitions, `temporary` those of a session's own tables, `declared` what is declared before, `lateness` how late rows may come, `connector` and
//!   `json` their connectors;
//! - `alter` reads ALTER, and `source` edits definitions in their text, `reading` those that read a relation which gets another name; `schema` reads CREATE SCHEMA, `function` CREATE FUNCTION, `index`
//!   CREATE INDEX;
//! - `changes` reads SUBSCRIBE and LISTEN; `comment` reads COMMENT ON; `copy` reads COPY, `file` finds the files that queries name;
//! - `rights` reads CREATE ROLE, SET ROLE, GRANT and REVOKE;
//! - `transaction` reads BEGIN, COMMIT, ROLLBACK and savepoints, `setting` SET, SHOW and RESET;
//! - `nested` reads PREPARE, EXECUTE and cursors, whose statements are read as others are;
//! - `unqualified` finds the names that a search path completes, outside of the `scopes` of WITH;
//! - `shape` is a text without its literals, before it is parsed.
mod alter;
mod changes;
mod column_type;
mod comment;
mod connector;
mod constraint;
mod copy;
mod declared;
mod default;
mod dialect;
mod file;
mod function;
mod index;
mod json;
mod kind;
mod lateness;
mod locking;
mod nested;
mod refused;
mod respelled;
mod rights;
mod room;
mod schema;
mod scopes;
mod sequence;
mod setting;
mod shape;
mod source;
mod statements;
mod syntax_error;
mod table;
mod temporary;
mod transaction;
mod unqualified;
mod view;

use sqlparser::ast;
use std::time::Duration;

pub use self::alter::{Alter, AlteredKind, Change, Constraint};
pub use self::changes::Subscribe;
pub use self::column_type::{MoreTypes, column_type, named_type};
pub use self::comment::{Comment, CommentedKind};
pub use self::connector::connection::ConnectionDefinition;
pub use self::connector::pause::SourceChange;
pub use self::connector::secret::SecretDefinition;
pub use self::connector::sink::SinkDefinition;
pub use self::connector::{ConnectorDefinition, Setting};
pub use self::constraint::check::{Check, check_names};
pub use self::constraint::unique::{Unique, unique_names};
pub use self::declared::ViewDeclaration;
pub use self::default::ColumnDefault;
pub use self::dialect::Alluvium;
pub use self::file::{FileName, files, relations};
pub use self::function::{FunctionDefinition, Parameter};
pub use self::index::IndexDefinition;
pub use self::kind::ExplainFormat;
pub use self::lateness::{Lateness, ViewLateness};
pub use self::locking::{IfLocked, LockingQuery};
pub use self::nested::{CursorDefinition, Steps};
pub use self::rights::{
    Grant, GrantKind, GrantObject, Granted, OwnerChange, PUBLIC, Password, Privilege, RoleChange,
    RoleDefinition, RoleOptions,
};
pub use self::schema::SchemaDefinition;
pub use self::sequence::{Generated, SequenceDefinition, SequenceOptions, SequenceRestart};
pub use self::setting::{Lasts, SetSetting, SetSettings, SettingValue};
pub use self::shape::{Literal, LiteralValue, Shape};
pub use self::statements::{Statements, parse};
pub use self::table::nearest;
pub use self::table::{KEEPING, MOST_COLUMNS, MOST_NAME_BYTES, TableDefinition, is_column_type};
pub use self::temporary::OnCommit;
pub use self::transaction::TransactionModes;
pub use self::unqualified::{NamedKind, Qualified, Unqualified, unqualified, with_schemas};
pub use self::view::{DEFAULT_ROUNDS, EmitFinal, ViewDefinition, ViewKind};
use crate::error::Position;
pub use crate::name::{CLAUSES, Named, fold, relation_name};
pub use crate::syntax::replaces;

/// One statement of a text.
#[derive(Clone, Debug)]
pub struct Statement {
    /// Its kind, with its parts.
    pub kind: StatementKind,
    /// Its source, without the semicolon.
    pub text: String,
    /// Where it starts.
    pub position: Position,
    /// A bound of the number of levels of its syntax tree, for [`with_room`](crate::stack::with_room).
    pub depth: usize,
}

/// The action of a definition if a relation of its kind has its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IfTaken {
    /// It fails.
    #[default]
    Fail,
    /// `IF NOT EXISTS`: nothing.
    Keep,
    /// `OR REPLACE`: it replaces the other.
    Replace,
}

/// `DROP` of a table, view, index, schema, sequence or function.
#[derive(Clone, Debug)]
pub struct Drop {
    /// The relation, index, schema, sequence or function.
    pub name: String,
    /// Where it is named.
    pub position: Position,
    /// Whether it may be missing.
    pub if_exists: bool,
    /// Whether relations that depend on it, or are in it, are dropped with it.
    pub cascade: bool,
}

/// The kind of a statement. Names are folded; positions are those of names.
#[derive(Clone, Debug)]
pub enum StatementKind {
    /// `CREATE TABLE`
    CreateTable(TableDefinition),
    /// `CREATE [LOCAL | MATERIALIZED] VIEW`
    CreateView(ViewDefinition),
    /// `DECLARE RECURSIVE VIEW`
    DeclareView(ViewDeclaration),
    /// `LATENESS view.column expression`
    Lateness(Box<ViewLateness>),
    /// `CREATE SCHEMA`
    CreateSchema(SchemaDefinition),
    /// `DROP SCHEMA`
    DropSchema(Drop),
    /// `CREATE SEQUENCE`
    CreateSequence(SequenceDefinition),
    /// `DROP SEQUENCE`
    DropSequence(Drop),
    /// `ALTER SEQUENCE … RESTART`
    RestartSequence(SequenceRestart),
    /// `CREATE FUNCTION` or `CREATE MACRO`
    CreateFunction(FunctionDefinition),
    /// `DROP FUNCTION` or `DROP MACRO`
    DropFunction(Drop),
    /// `ALTER TABLE` or `ALTER [MATERIALIZED] VIEW`
    Alter(Box<Alter>),
    /// `CREATE SECRET`
    CreateSecret(Box<SecretDefinition>),
    /// `DROP SECRET`
    DropSecret(Drop),
    /// `CREATE CONNECTION`
    CreateConnection(Box<ConnectionDefinition>),
    /// `DROP CONNECTION`
    DropConnection(Drop),
    /// `CREATE SINK`
    CreateSink(Box<SinkDefinition>),
    /// `DROP SINK`
    DropSink(Drop),
    /// `ALTER SOURCE … PAUSE` or `RESUME`
    AlterSource(SourceChange),
    /// `DROP TABLE`
    DropTable(Drop),
    /// `DROP [MATERIALIZED] VIEW`
    DropView(Drop),
    /// `DROP TABLE` or `DROP [MATERIALIZED] VIEW` of several: each of them
    DropSeveral(Vec<Statement>),
    /// `TRUNCATE` of several tables: each as a `DELETE`. That of one is a `DELETE`.
    Truncate(Vec<Statement>),
    /// `VACUUM` or `ANALYZE`, of whatever
    Vacuum,
    /// `REFRESH MATERIALIZED VIEW`
    Refresh {
        /// The view.
        name: String,
        /// Where it is named.
        position: Position,
    },
    /// `COMMENT ON`
    Comment(Box<Comment>),
    /// `CREATE ROLE`, `CREATE USER` or `CREATE GROUP`
    CreateRole(Box<RoleDefinition>),
    /// `ALTER ROLE` or `ALTER USER`
    AlterRole(Box<RoleDefinition>),
    /// `DROP ROLE`, `DROP USER` or `DROP GROUP`
    DropRole {
        /// The roles.
        roles: Vec<Named>,
        /// Whether they may be missing.
        if_exists: bool,
    },
    /// `GRANT` or `REVOKE`
    Grant(Box<Grant>),
    /// `ALTER … OWNER TO`
    SetOwner(Box<OwnerChange>),
    /// `SET ROLE` or `SET SESSION AUTHORIZATION`
    SetRole(RoleChange),
    /// `CREATE INDEX`
    CreateIndex(IndexDefinition),
    /// `DROP INDEX`
    DropIndex(Drop),
    /// `INSERT INTO … VALUES` or `SELECT`
    Insert(Box<ast::Insert>),
    /// `UPDATE … SET`
    Update(Box<ast::Update>),
    /// `DELETE FROM`
    Delete(Box<ast::Delete>),
    /// `BEGIN` or `START TRANSACTION`
    Begin(TransactionModes),
    /// `COMMIT` or `END`
    Commit {
        /// Whether another transaction with the same modes begins at once.
        and_chain: bool,
    },
    /// `ROLLBACK` or `ABORT`
    Rollback {
        /// As of `COMMIT`.
        and_chain: bool,
    },
    /// `SAVEPOINT name`
    Savepoint(Named),
    /// `ROLLBACK TO name`
    RollbackTo(Named),
    /// `RELEASE name`
    Release(Named),
    /// `PREPARE name AS statement`
    Prepare {
        /// Its name.
        name: Named,
        /// The statement, in which parameters are cast to the types that are given for them.
        statement: Box<Statement>,
    },
    /// `EXECUTE name [(value, …)]`
    Execute {
        /// The prepared statement.
        name: Named,
        /// A query of one row, of the values.
        values: Option<Box<Statement>>,
    },
    /// `DEALLOCATE name`; `None` is `ALL`
    Deallocate(Option<Named>),
    /// `DECLARE cursor CURSOR FOR query`, or FOR SUBSCRIBE
    DeclareCursor(CursorDefinition),
    /// `FETCH steps FROM cursor`
    Fetch {
        /// The cursor.
        cursor: Named,
        /// How far it goes.
        steps: Steps,
        /// How long it waits for changes, as it was written.
        timeout: Option<Setting>,
    },
    /// `MOVE steps IN cursor`
    Move {
        /// The cursor.
        cursor: Named,
        /// How far it goes.
        steps: Steps,
    },
    /// `CLOSE cursor`; `None` is `ALL`
    Close(Option<Named>),
    /// `CREATE TABLE table FROM 'path' (NAME value, …)`
    CreateTableFrom {
        /// The table.
        name: String,
        /// Where it is named.
        position: Position,
        /// Where its columns and rows come from, as it was written.
        path: String,
        /// How to read them.
        options: Vec<Setting>,
    },
    /// `CREATE TABLE table AS query`
    CreateTableAs {
        /// The table.
        name: String,
        /// Where it is named.
        position: Position,
        /// The action if one of its name exists: it does not replace that.
        if_taken: IfTaken,
        /// If it is temporary, its fate when a transaction commits.
        temporary: Option<OnCommit>,
        /// Where its columns and rows come from.
        query: Box<ast::Query>,
    },
    /// `START`: connectors that have not started do.
    Start,
    /// `CHECKPOINT`
    Checkpoint,
    /// `COPY table (columns) FROM 'path' | STDIN (NAME value, …)`
    Copy {
        /// The table that is copied into.
        table: String,
        /// Where it is named.
        position: Position,
        /// The columns that the rows have, and where each is named; none stands for all.
        columns: Vec<(String, Position)>,
        /// Where the rows come from, as it was written; `None` if the client sends them.
        path: Option<String>,
        /// How to read them.
        options: Vec<Setting>,
    },
    /// `COPY table (columns) TO 'path' | STDOUT (NAME value, …)`, or of a query
    CopyTo {
        /// The query whose rows are copied.
        query: Box<ast::Query>,
        /// Where it is named.
        position: Position,
        /// Where the rows go, as it was written; `None` if they are sent to the client.
        path: Option<String>,
        /// How to write them.
        options: Vec<Setting>,
    },
    /// `SELECT`, `WITH` or `VALUES`
    Query(Box<ast::Query>),
    /// `SELECT … FOR UPDATE` or `FOR SHARE`
    LockingQuery(LockingQuery),
    /// `SHOW TABLES`
    ShowTables,
    /// `SHOW SOURCES`
    ShowSources,
    /// `SHOW SINKS`
    ShowSinks,
    /// `SET name = value`, in all of its spellings
    Set(SetSettings),
    /// `SHOW name` or `SHOW ALL`
    Show {
        /// The setting in lower case; `None` is all of them.
        name: Option<String>,
        /// Where it is named.
        position: Position,
    },
    /// `RESET name` or `RESET ALL`
    Reset {
        /// The setting in lower case; `None` is all of them.
        name: Option<String>,
        /// Where it is named.
        position: Position,
    },
    /// `DISCARD ALL`
    DiscardAll,
    /// `DESCRIBE relation`
    Describe {
        /// The table or view.
        name: String,
        /// Where it is named.
        position: Position,
    },
    /// `DESCRIBE 'path' (NAME value, …)`
    DescribeFile {
        /// The name of the file, with its options.
        file: FileName,
        /// Where it is named.
        position: Position,
    },
    /// `SUBSCRIBE relation`
    Subscribe(Subscribe),
    /// `COPY (SUBSCRIBE relation) TO STDOUT (NAME value, …)`
    CopyChanges {
        /// What is copied.
        changes: Subscribe,
        /// How to write it.
        options: Vec<Setting>,
    },
    /// `LISTEN relation`
    Listen(Named),
    /// `UNLISTEN relation`; `None` is all of them.
    Unlisten(Option<Named>),
    /// `EXPLAIN VIEW`
    ExplainView {
        /// The view.
        name: String,
        /// Where it is named.
        position: Position,
        /// What its answer is written as.
        format: ExplainFormat,
    },
    /// `EXPLAIN STATE`
    ExplainState {
        /// The view.
        name: String,
        /// Where it is named.
        position: Position,
        /// What its answer is written as.
        format: ExplainFormat,
    },
    /// `EXPLAIN ANALYZE`
    ExplainAnalyze {
        /// The view.
        name: String,
        /// Where it is named.
        position: Position,
        /// For how long its operators are watched; `None` tells what they have done so far.
        time: Option<Duration>,
        /// What its answer is written as.
        format: ExplainFormat,
    },
    /// `EXPLAIN SELECT`, and `EXPLAIN ANALYZE SELECT`
    ExplainSelect {
        /// The query.
        query: Box<ast::Query>,
        /// Whether it runs, and its operators are measured.
        analyze: bool,
        /// What its answer is written as.
        format: ExplainFormat,
    },
}
