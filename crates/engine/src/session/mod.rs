//! Sessions: a client's SQL, statement by statement.
//!
//! [`Session::run`] dispatches statements: CREATE and DROP go to [`Definitions`](crate::definitions::Definitions) (views
//! with outputs through [`definition`]), COPY is in [`copy`], CREATE TABLE … AS in [`create_as`], SHOW TABLES and DESCRIBE in [`describe`],
//! and INSERT, UPDATE and DELETE are in
//! [`write`](mod@write), with [`conflicts`]. [`locking`] is SELECT … FOR UPDATE. [`block`] is BEGIN, COMMIT, ROLLBACK and savepoints. [`settings`] are SET and SHOW, and complete names by the search path; [`rights`] says who
//! may do what. [`description`] says what a statement takes and returns without running it, and [`prepared`] are statements that
//! run many times, which SQL calls by [names](named_statements). [`several`] are statements about several relations, [`staged`] definitions within transactions, and [`temporary`] tables of one session. [`cursor`] fetches the rows of a query one after the other.

mod block;
mod conflicts;
mod copy;
mod create_as;
mod cursor;
mod definition;
mod describe;
mod description;
mod locking;
mod named_statements;
mod outcome;
mod prepared;
mod rights;
mod settings;
mod several;
mod staged;
mod temporary;
mod write;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use alluvium_sql::name;
use alluvium_sql::physical::{Output, compile};
use alluvium_sql::plan::PlannedView;
use alluvium_sql::planner::{bind, check_parameters, check_values};
use alluvium_sql::stack;
use alluvium_sql::statement::{
    self, ConnectorDefinition, Shape, Statement, StatementKind, TableDefinition, ViewDefinition,
    files,
};
use alluvium_trace::Epoch;
use datafusion::logical_expr::LogicalPlan;
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::{self, Visit};

use self::block::Block;
use self::cursor::Cursors;
use self::named_statements::NamedStatements;
use self::settings::SessionSettings;
use self::temporary::TemporaryTables;
pub(crate) use describe::written;
pub use description::Description;
pub use outcome::Outcome;
pub use prepared::Prepared;
pub(crate) use rights::Rights;

use crate::catalog::{Catalog, Entries, Entry, FileScope};
use crate::definitions::Definitions;
use crate::definitions::alter::Parts;
use crate::engine::Engine;
use crate::error::{Error, Result, SqlState};
use crate::file_access::{FileAccess, Purpose};
use crate::instance::Instance;
use crate::interrupt;
use crate::query::{
    Execution, File, Files, KeptPlan, Reading, Rows, Running, relations, shape_before_parsing,
    shape_of,
};
use crate::sequences::{TakenValues, Taker};
use crate::transaction::{Isolation, Transaction};
use crate::worker::Durable;

/// One client of an engine: it has at most one open transaction, which dropping the session rolls back.
///
/// A statement that is not inside BEGIN and COMMIT is a transaction of its own. Reads are strictly serializable: a
/// query sees everything that any client committed before the query began, and waits until that is complete. Inside
/// a transaction, tables show that state with the transaction's own writes, materialized views that state.
///
/// A statement that fails leaves nothing, and leaves an open transaction as it was, unless the session
/// [aborts it](Session::set_aborts_on_error).
pub struct Session {
    engine: Engine,
    transaction: Option<Transaction>,
    block: Block,
    cursors: Cursors,
    named_statements: NamedStatements,
    base: PathBuf,
    awaits_sources: bool,
    reads_stale: bool,
    /// The key of the next transaction.
    key: Option<String>,
    /// The epoch of its last transaction that was committed.
    committed: Option<Epoch>,
    /// Whether it does again what was done before.
    is_redoing: bool,
    settings: SessionSettings,
    /// The values of sequences that it has taken.
    taken_values: TakenValues,
    temporary: TemporaryTables,
    file_access: Arc<FileAccess>,
    rights: Option<Box<Rights>>,
}

impl Session {
    pub(crate) fn new(engine: Engine) -> Self {
        let base = PathBuf::new();
        let file_access = engine.instance.file_access.clone();
        Self {
            engine,
            transaction: None,
            block: Block::default(),
            cursors: Cursors::default(),
            named_statements: NamedStatements::new(),
            base,
            awaits_sources: false,
            reads_stale: false,
            key: None,
            committed: None,
            is_redoing: false,
            settings: SessionSettings::default(),
            taken_values: TakenValues::default(),
            temporary: TemporaryTables::default(),
            file_access,
            rights: None,
        }
    }

    /// Counts relative paths in SQL from this directory; at first, from the process's own.
    pub fn set_base(&mut self, base: impl AsRef<Path>) {
        self.base = base.as_ref().to_owned();
    }

    /// Makes statements that read wait until all inputs of tables have been read to their ends. Otherwise they read what
    /// inputs have committed so far.
    ///
    /// In any case the first statement that reads a table or a view starts all inputs there are.
    pub fn set_awaits_sources(&mut self, awaits: bool) {
        self.awaits_sources = awaits;
    }

    /// Makes queries outside of transactions answer as of the last complete epoch at once, instead of waiting until all that
    /// was committed before them is complete. So they may miss the newest commits, also those of this session. Statements
    /// that write, and queries inside a transaction, read as before.
    pub fn set_reads_stale(&mut self, stale: bool) {
        self.reads_stale = stale;
    }

    /// Says which files statements may read and write from now on; at first, those that the
    /// [engine](crate::Builder::file_access) lets sessions use.
    pub fn set_file_access(&mut self, access: FileAccess) {
        self.file_access = Arc::new(access);
    }

    /// Gives the next transaction that the session begins a [key](Transaction::set_key).
    pub fn set_key(&mut self, key: impl Into<String>) {
        self.key = Some(key.into());
    }

    /// The epoch that the last transaction of the session which was committed made, be it a statement or several between BEGIN
    /// and COMMIT; if it changed nothing, the one that it read as of. `None` before the first.
    pub fn committed(&self) -> Option<u64> {
        self.committed
    }

    /// Whether a transaction is open, even if it [has been aborted](Session::is_aborted).
    pub fn in_transaction(&self) -> bool {
        self.transaction.is_some() || self.is_aborted()
    }

    /// Executes statements, one after the other; stops at the first error. The rows of each are computed before the next one
    /// runs, and count meanwhile as memory that queries take; [`Session::run`] leaves them to be pulled.
    pub fn execute(&mut self, sql: &str) -> Result<Vec<Outcome>> {
        if let Some(ran) = self.run_before_parsing(sql, &[]) {
            return Ok(vec![self.complete(ran?)?]);
        }
        let statements = alluvium_sql::statement::parse(sql);
        let run = |statement: alluvium_sql::error::Result<Statement>| {
            let statement = statement.inspect_err(|_| self.abort())?;
            let outcome = self.run(&statement)?;
            self.complete(outcome)
        };
        statements.map(run).collect()
    }

    /// The outcome, with all of its rows computed.
    fn complete(&mut self, outcome: Outcome) -> Result<Outcome> {
        outcome.complete().inspect_err(|_| self.abort())
    }

    /// Executes one statement with values for its parameters: the first for `$1`, and so on, each of a type
    /// that fits where its parameter stands. SELECT, INSERT, UPDATE and DELETE can have parameters.
    pub fn execute_with(&mut self, sql: &str, parameters: &[ScalarValue]) -> Result<Outcome> {
        match self.run_before_parsing(sql, parameters) {
            Some(ran) => ran,
            None => {
                let statement = self.parsed(sql)?;
                self.run_with(&statement, parameters)
            }
        }
    }

    /// The statement of a text that has one.
    fn parsed(&mut self, sql: &str) -> Result<Statement> {
        one_statement(sql).inspect_err(|_| self.abort())
    }

    /// Executes one statement.
    pub fn run(&mut self, statement: &Statement) -> Result<Outcome> {
        self.run_with(statement, &[])
    }

    /// As [`Session::execute_with`], of a statement that is parsed already.
    pub fn run_with(
        &mut self,
        statement: &Statement,
        parameters: &[ScalarValue],
    ) -> Result<Outcome> {
        self.in_block(Some(&statement.kind), |session| session.run_in_block(statement, parameters))
    }

    fn run_in_block(
        &mut self,
        statement: &Statement,
        parameters: &[ScalarValue],
    ) -> Result<Outcome> {
        let Some(qualified) = self.qualified(statement)? else {
            return self.perform(Execution { statement, values: parameters, own: None }, true);
        };
        let statement = &qualified.statement;
        let performed = self.perform(Execution { statement, values: parameters, own: None }, true);
        performed.map_err(|error| error.moved(|position| qualified.moved(position)))
    }

    /// Runs a text that is not parsed yet from the plan that is kept of its shape; `None` if none is, or if the session has to
    /// look at the statement: for its rights, its search path, or transactions that only read or have been aborted.
    fn run_before_parsing(
        &mut self,
        sql: &str,
        parameters: &[ScalarValue],
    ) -> Option<Result<Outcome>> {
        if self.rights.is_some()
            || self.settings.concern_statements()
            || !self.temporary.are_none()
            || self.is_aborted()
        {
            return None;
        }
        let shape = shape_before_parsing(sql)?;
        check_values(parameters).ok()?;
        let ran = self.within_limits(|session| session.run_shape(sql, &shape, parameters));
        ran.inspect_err(|_| self.abort()).transpose()
    }

    fn run_shape(
        &mut self,
        sql: &str,
        shape: &Shape,
        parameters: &[ScalarValue],
    ) -> Result<Option<Outcome>> {
        let poison = self.instance().poison.clone();
        poison.check()?;
        let ran = poison.guard(|| {
            let outcome = self.run_kept(shape, parameters, || one_statement(sql).ok())?;
            if outcome.is_some() {
                self.instance().reader.check_views()?;
            }
            Ok(outcome)
        });
        ran.map_err(|error| match error {
            Error::Poisoned { .. } => error,
            _ => interrupt::reached().unwrap_or_else(|| {
                let Ok(statement) = one_statement(sql) else { return error };
                let error = self.located(error, &statement, parameters);
                self.file_access.worded(error, &self.base).at(statement.position)
            }),
        })
    }

    /// Runs a statement from the plan that is kept of its shape; `None` if none is. It is parsed by `statement` if that is needed.
    fn run_kept(
        &mut self,
        shape: &Shape,
        parameters: &[ScalarValue],
        statement: impl FnOnce() -> Option<Statement>,
    ) -> Result<Option<Outcome>> {
        // Plans are kept over the relations that everybody sees.
        if self.transaction.as_ref().is_some_and(|open| open.definitions().is_some())
            || !self.temporary.are_none()
        {
            return Ok(None);
        }
        let entries = self.catalog_entries();
        let kept = self.instance().reader.plans.get(shape, parameters, &entries);
        let Some((kept, values)) = kept else { return Ok(None) };
        if kept.target().is_some() {
            self.before_reading(kept.reads())?;
            return self.change_kept(shape, parameters);
        }
        match self.answer_kept(&kept, &values, &entries, parameters, statement) {
            // What it reads was replaced: it is planned again.
            Err(Error::Conflict { .. }) if self.transaction.is_none() => Ok(None),
            answer => Ok(Some(Outcome::Rows(answer?))),
        }
    }

    /// Executes a definition that was executed before: what its views fail for is no error of it.
    pub(crate) fn redo(&mut self, statement: &Statement) -> Result<()> {
        self.is_redoing = true;
        let execution = Execution { statement, values: &[], own: None };
        let done = self.perform(execution, false).map(drop);
        self.is_redoing = false;
        done
    }

    fn perform(&mut self, execution: Execution<'_>, checks_views: bool) -> Result<Outcome> {
        self.within_limits(|session| session.perform_within_limits(execution, checks_views))
    }

    /// Runs `act` for as long as a statement may take.
    fn within_limits<R>(&mut self, act: impl FnOnce(&mut Self) -> R) -> R {
        match self.settings.deadline() {
            None => act(self),
            deadline => interrupt::limited(deadline, || act(self)),
        }
    }

    fn perform_within_limits(
        &mut self,
        execution: Execution<'_>,
        checks_views: bool,
    ) -> Result<Outcome> {
        let Execution { statement, values: parameters, own } = execution;
        let poison = self.instance().poison.clone();
        poison.check()?;
        let catalog = &self.instance().definitions.catalog;
        let depth = depth(catalog, statement);
        let ran = poison.guard(|| {
            stack::with_room(depth, || {
                // Those of a prepared statement have been counted.
                if own.is_none() {
                    check_parameters(&statement.kind, parameters)?;
                }
                self.check_read_only(&statement.kind)?;
                self.authorize(statement)?;
                let outcome = self
                    .run_or_dispatch(execution)
                    .map_err(|error| self.located(error, statement, parameters))?;
                if checks_views {
                    self.instance().reader.check_views()?;
                }
                Ok(outcome)
            })
        });
        ran.map_err(|error| match error {
            Error::Poisoned { .. } => error,
            // Whatever the part of it that was ended made of that.
            _ => interrupt::reached().unwrap_or_else(|| {
                self.file_access.worded(error, &self.base).at(statement.position)
            }),
        })
    }

    /// Runs a statement from its kept plan, if there is one.
    fn run_or_dispatch(&mut self, execution: Execution<'_>) -> Result<Outcome> {
        let Execution { statement, values, own } = execution;
        let may_be_kept = matches!(
            statement.kind,
            StatementKind::Query(_)
                | StatementKind::Insert(_)
                | StatementKind::Update(_)
                | StatementKind::Delete(_)
        );
        if own.is_none()
            && may_be_kept
            && let Some(shape) = shape_of(&statement.text)
            && let Some(outcome) = self.run_kept(&shape, values, || Some(statement.clone()))?
        {
            return Ok(outcome);
        }
        self.dispatch(execution)
    }

    fn dispatch(&mut self, execution: Execution<'_>) -> Result<Outcome> {
        let Execution { statement, values: parameters, .. } = execution;
        if let Some(outcome) = self.run_temporary(statement)? {
            return Ok(outcome);
        }
        if self.transaction.is_some()
            && let Some(outcome) = self.stage_definition(&statement.kind)?
        {
            return Ok(outcome);
        }
        let engine = self.engine.clone();
        let Instance { definitions, writer, connectors, .. } = &*engine.instance;
        match &statement.kind {
            StatementKind::CreateTable(table) => {
                self.outside("CREATE TABLE")?;
                self.check_connectors(&table.connectors, Purpose::Read)?;
                let base = self.instance().recorded_path(&self.base)?;
                definitions.create_table(table, &base, writer, connectors)?;
                Ok(Outcome::Done)
            }
            StatementKind::CreateView(view) => {
                self.outside("CREATE VIEW")?;
                self.check_connectors(&view.connectors, Purpose::Write)?;
                self.create_view(view)?;
                Ok(Outcome::Done)
            }
            StatementKind::DeclareView(declaration) => {
                self.outside("DECLARE RECURSIVE VIEW")?;
                let base = self.instance().recorded_path(&self.base)?;
                let declared = definitions.declare_view(declaration, &base, writer);
                declared.map(|()| Outcome::Done).map_err(|error| error.at(declaration.position))
            }
            StatementKind::Lateness(declared) => {
                self.outside("LATENESS")?;
                let base = self.instance().recorded_path(&self.base)?;
                let said = definitions.declare_lateness(declared, &base, writer, connectors);
                said.map(|()| Outcome::Done).map_err(|error| error.at(declared.position))
            }
            StatementKind::CreateSchema(schema) => {
                self.outside("CREATE SCHEMA")?;
                let created = definitions.create_schema(schema);
                created.map(|()| Outcome::Done).map_err(|error| error.at(schema.position))
            }
            StatementKind::DropSchema(schema) => {
                self.outside("DROP SCHEMA")?;
                let dropped = definitions.drop_schema(schema, writer, connectors);
                dropped.map(|()| Outcome::Done).map_err(|error| error.at(schema.position))
            }
            StatementKind::CreateSequence(sequence) => {
                self.outside("CREATE SEQUENCE")?;
                let created = definitions.create_sequence(sequence);
                created.map(|()| Outcome::Done).map_err(|error| error.at(sequence.position))
            }
            StatementKind::DropSequence(sequence) => {
                self.outside("DROP SEQUENCE")?;
                let dropped = definitions.drop_sequence(sequence);
                dropped.map(|()| Outcome::Done).map_err(|error| error.at(sequence.position))
            }
            StatementKind::RestartSequence(restart) => {
                self.outside("ALTER SEQUENCE")?;
                let restarted = definitions.restart_sequence(restart);
                restarted.map(|()| Outcome::Done).map_err(|error| error.at(restart.position))
            }
            StatementKind::CreateFunction(function) => {
                self.outside("CREATE FUNCTION")?;
                let created = definitions.create_function(function);
                created.map(|()| Outcome::Done).map_err(|error| error.at(function.position))
            }
            StatementKind::DropFunction(function) => {
                self.outside("DROP FUNCTION")?;
                let dropped = definitions.drop_function(function);
                dropped.map(|()| Outcome::Done).map_err(|error| error.at(function.position))
            }
            StatementKind::Alter(alter) => {
                self.outside("ALTER")?;
                let base = &self.instance().recorded_path(&self.base)?;
                let reader = &self.instance().reader;
                let altered = definitions.alter(alter, Parts { writer, reader, connectors, base });
                altered.map(|()| Outcome::Done).map_err(|error| error.at(alter.position))
            }
            StatementKind::DropTable(table) => {
                self.outside("DROP TABLE")?;
                let dropped = definitions.drop_table(table, writer, connectors);
                dropped.map(|()| Outcome::Done).map_err(|error| error.at(table.position))
            }
            StatementKind::DropView(view) => {
                self.outside("DROP VIEW")?;
                let dropped = definitions.drop_view(view, connectors);
                dropped.map(|()| Outcome::Done).map_err(|error| error.at(view.position))
            }
            StatementKind::DropSeveral(drops) => {
                self.in_one_transaction(|session| session.drop_several(drops))?;
                Ok(Outcome::Done)
            }
            StatementKind::Truncate(deletes) => {
                self.before_reading(true)?;
                self.truncate(deletes)
            }
            StatementKind::Refresh { name, position } => {
                // It is always up to date.
                let refreshed = self.relation(name).and_then(|entry| entry.check_materialized());
                refreshed.map(|()| Outcome::Done).map_err(|error| error.at(*position))
            }
            StatementKind::Comment(comment) => {
                let said = definitions.comment(comment);
                said.map(|()| Outcome::Done).map_err(|error| error.at(comment.position))
            }
            StatementKind::CreateIndex(index) => {
                self.outside("CREATE INDEX")?;
                let base = self.instance().recorded_path(&self.base)?;
                let created = definitions.create_index(index, &base, writer, !self.is_redoing);
                created.map(|()| Outcome::Done).map_err(|error| error.at(index.position))
            }
            StatementKind::DropIndex(index) => {
                self.outside("DROP INDEX")?;
                let dropped = definitions.drop_index(index);
                dropped.map(|()| Outcome::Done).map_err(|error| error.at(index.position))
            }
            StatementKind::Insert(insert) => {
                // Its own table is one of them.
                let reads = insert.on.is_some() || statement::relations(&**insert).len() > 1;
                self.before_reading(reads)?;
                self.insert(execution, insert)
            }
            StatementKind::Update(update) => {
                self.before_reading(true)?;
                self.update(execution, update)
            }
            StatementKind::Delete(delete) => {
                self.before_reading(true)?;
                self.delete(execution, delete)
            }
            StatementKind::CreateTableFrom { name, position, path, options } => {
                let created = self.create_table_from(name, *position, path, options);
                created.map_err(|error| error.at(*position))
            }
            StatementKind::CreateTableAs { name, position, if_taken, temporary, query } => {
                let taken = (*if_taken, *temporary);
                self.create_table_as((name, *position), taken, query, parameters)
            }
            StatementKind::Copy { table, position, columns, path, options } => {
                self.copy(table, columns, path, options).map_err(|error| error.at(*position))
            }
            StatementKind::CopyTo { query, position, path, options } => {
                self.copy_to(statement, query, path, options).map_err(|error| error.at(*position))
            }
            StatementKind::Start => {
                self.outside("START")?;
                self.engine.start()?;
                Ok(Outcome::Done)
            }
            StatementKind::Checkpoint => {
                self.engine.checkpoint()?;
                Ok(Outcome::Done)
            }
            StatementKind::Begin(modes) => self.begin(*modes),
            StatementKind::Commit { and_chain } => self.commit(*and_chain),
            StatementKind::Rollback { and_chain } => self.rollback(*and_chain),
            StatementKind::Savepoint(savepoint) => self.savepoint(savepoint),
            StatementKind::RollbackTo(savepoint) => self.roll_back_to(savepoint),
            StatementKind::Release(savepoint) => self.release(savepoint),
            StatementKind::Prepare { name, statement } => self.prepare_named(name, statement),
            StatementKind::Execute { name, values } => {
                self.execute_named(name, values.as_deref(), parameters)
            }
            StatementKind::Deallocate(name) => self.deallocate(name.as_ref()),
            StatementKind::DeclareCursor(cursor) => self.declare_cursor(cursor, parameters),
            StatementKind::Fetch { cursor, steps } => self.fetch(cursor, *steps),
            StatementKind::Move { cursor, steps } => self.go(cursor, *steps),
            StatementKind::Close(cursor) => self.close(cursor.as_ref()),
            StatementKind::Query(query) => Ok(Outcome::Rows(self.answer(execution, query)?)),
            StatementKind::LockingQuery(query) => {
                self.before_reading(true)?;
                self.lock(execution, query)
            }
            StatementKind::ShowTables => {
                describe::show_tables(&self.catalog_entries(), self.rights.as_deref())
            }
            StatementKind::Set(set) => self.set_all(set),
            StatementKind::Show { name, position } => self.show(name.as_deref(), *position),
            StatementKind::Reset { name, position } => self.reset(name.as_deref(), *position),
            StatementKind::DiscardAll => self.discard_all(),
            StatementKind::Describe { name, position } => {
                let entry = self.relation(name).map_err(|error| error.at(*position))?;
                describe::describe(&entry)
            }
            StatementKind::Subscribe { name, position } => {
                let subscription =
                    self.engine.subscribe(name).map_err(|error| error.at(*position))?;
                self.engine.start()?;
                Ok(Outcome::Subscribed(subscription))
            }
            StatementKind::ExplainSelect(query) => {
                Ok(Outcome::Text(self.explain(query, parameters)?))
            }
            StatementKind::ExplainView { name, position } => {
                let entry = self.relation(name).map_err(|error| error.at(*position))?;
                let view = entry.as_view().map_err(|error| error.at(*position))?;
                let there = |index| view.uses.all.contains_key(&index);
                Ok(Outcome::Text(alluvium_sql::plan::explain(&view.plan, &there)?))
            }
            StatementKind::ExplainState { name, position } => {
                let entry = self.relation(name).map_err(|error| error.at(*position))?;
                entry.as_view().map_err(|error| error.at(*position))?;
                let entries = self.catalog_entries();
                Ok(Outcome::Text(self.instance().reader.explain_state(&entry, &entries)?))
            }
        }
    }

    /// The error, at the expression that it is about if that can be known before the statement runs.
    fn located(&self, error: Error, statement: &Statement, parameters: &[ScalarValue]) -> Error {
        let reading = (self.transaction.as_ref(), self.rights.as_deref());
        let over = (self.paths(), self.catalog_entries());
        located(self.instance(), over, reading, (statement, parameters), error)
    }

    /// A transaction with the key that was set for it.
    fn begin_transaction(&mut self) -> Result<Transaction> {
        let mut transaction = self.engine.begin()?;
        if let Some(key) = self.key.take() {
            transaction.set_key(key);
        }
        Ok(transaction)
    }

    /// Some definitions take effect at once, for everybody.
    fn outside(&self, statement: &str) -> Result<()> {
        match self.transaction {
            None => Ok(()),
            Some(_) => Err(Error::sql(format!(
                "{statement} inside a transaction is not supported; COMMIT first"
            ))
            .with_sqlstate(SqlState::ACTIVE_TRANSACTION)),
        }
    }

    /// The physical plan of a query, as text.
    fn explain(&self, query: &ast::Query, parameters: &[ScalarValue]) -> Result<String> {
        let planner = &self.instance().definitions.planner;
        let entries = self.catalog_entries();
        let files = self.files(query)?;
        let scope = FileScope { entries: &entries, files: &files };
        let plan = bind(planner.query(query, &scope)?, parameters)?;
        self.instance().reader.explain(plan, self.reading(&entries, &files))
    }

    /// The rows of a query, once inputs have started or, if the session awaits them, come to their ends.
    fn answer(&self, execution: Execution<'_>, query: &ast::Query) -> Result<Rows> {
        loop {
            match self.answer_once(execution, query) {
                // What it reads was replaced since it was planned.
                Err(Error::Conflict { .. }) if self.transaction.is_none() => interrupt::check()?,
                answer => return answer,
            }
        }
    }

    fn answer_once(&self, execution: Execution<'_>, query: &ast::Query) -> Result<Rows> {
        let Instance { definitions: Definitions { catalog, planner, .. }, reader, .. } =
            self.instance();
        let Execution { statement, values, own } = execution;
        let entries = self.entries(execution)?;
        let located = || Some(statement.clone());
        if let Some(own) = own
            && let Some(kept) = own.get(values, &entries)
        {
            return self.answer_kept(&kept, values, &entries, values, located);
        }
        let files = self.files(query)?;
        let scope = FileScope { entries: &entries, files: &files };
        let plan = planner.query(query, &scope)?;
        let read = relations(&plan)?;
        self.before_reading(read.iter().any(|name| !files.contains_key(name)))?;
        let reading = self.reading_of_query(&entries, &files)?;
        let plan = reader.plan(execution, plan, None, reading)?;
        self.rows(reader.start(plan, reading)?, depth(catalog, statement), values, located)
    }

    /// The rows of a query with a kept plan, which takes these values; `statement` and `parameters` are as for [`Session::rows`].
    fn answer_kept(
        &self,
        kept: &KeptPlan,
        values: &[ScalarValue],
        entries: &Arc<Entries>,
        parameters: &[ScalarValue],
        statement: impl FnOnce() -> Option<Statement>,
    ) -> Result<Rows> {
        let reader = &self.instance().reader;
        self.before_reading(kept.reads())?;
        let files = Files::new();
        let reading = self.reading_of_query(entries, &files)?;
        if let Some(rows) = reader.look_up(kept, values, reading)? {
            return Ok(rows.with_written_names());
        }
        // Plans are kept of shallow statements only.
        self.rows(reader.start(kept.bind(values)?, reading)?, 0, parameters, statement)
    }

    /// The rows of a query that runs, of a statement with so many levels. The first ones are computed here; errors of the others
    /// have positions as those of the statement have, which is made only if there are such.
    fn rows(
        &self,
        running: Running,
        depth: usize,
        parameters: &[ScalarValue],
        statement: impl FnOnce() -> Option<Statement>,
    ) -> Result<Rows> {
        let rows = Rows::of(running, &self.instance().poison, depth)?.with_written_names();
        let rows = rows.aborting(self.aborter());
        Ok(rows.located(|| {
            let (engine, base) = (self.engine.clone(), self.base.clone());
            let access = self.file_access.clone();
            let (statement, parameters) = (statement(), parameters.to_vec());
            let own = (!self.temporary.are_none()).then(|| self.catalog_entries());
            move |error| {
                let Some(statement) = &statement else { return access.worded(error, &base) };
                let paths = Paths { base: &base, access: &access };
                let ran = (statement, &parameters[..]);
                let entries = own.clone();
                let entries =
                    entries.unwrap_or_else(|| engine.instance.definitions.catalog.entries());
                let over = (paths, entries);
                let error = located(&engine.instance, over, (None, None), ran, error);
                access.worded(error, &base).at(statement.position)
            }
        }))
    }

    /// As [`Session::reading`], for a query, which may read an older epoch. A transaction that is not serializable does not depend on
    /// it, and reads the last version if it is to see what was committed.
    fn reading_of_query<'a>(
        &'a self,
        entries: &'a Arc<Entries>,
        files: &'a Files,
    ) -> Result<Reading<'a>> {
        let mut reading = self.reading(entries, files);
        let Some(transaction) = &self.transaction else {
            if self.reads_stale {
                reading.at_least = 0;
            }
            return Ok(reading);
        };
        let isolation = self.settings.isolation();
        reading.counts = isolation == Isolation::Serializable;
        if isolation == Isolation::ReadCommitted {
            match transaction.go_on(&transaction.read_before()) {
                // It stays at the version that what it has written depends on.
                Ok(()) | Err(Error::Conflict { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(reading)
    }

    /// The files that a part of a statement reads, with their columns.
    fn files(&self, statement: &impl Visit) -> Result<Files> {
        self.paths().files(self.instance(), statement)
    }

    /// The path of a file that a statement names, if the session may use it.
    fn file(&self, written: &str, purpose: Purpose) -> Result<PathBuf> {
        self.paths().file(written, purpose)
    }

    fn paths(&self) -> Paths<'_> {
        Paths { base: &self.base, access: &self.file_access }
    }

    /// Fails if the session may not use the file of a connector. What was done before is done again wherever that is.
    fn check_connectors(&self, connectors: &[ConnectorDefinition], purpose: Purpose) -> Result<()> {
        if self.is_redoing {
            return Ok(());
        }
        let settings = connectors.iter().flat_map(|connector| &connector.config);
        settings.filter(|setting| setting.name == "path").try_for_each(|path| {
            let allowed = self.file(&path.value, purpose);
            allowed.map(drop).map_err(|error| error.at(path.position))
        })
    }

    /// Starts the inputs of tables before the first statement that reads a relation. Inside a transaction it does not wait
    /// for them: that reads one version.
    fn before_reading(&self, reads: bool) -> Result<()> {
        if reads {
            self.engine.start()?;
        }
        match reads && self.awaits_sources && self.transaction.is_none() {
            true => self.engine.wait_for_sources(),
            false => Ok(()),
        }
    }

    fn reading<'a>(&'a self, entries: &'a Arc<Entries>, files: &'a Files) -> Reading<'a> {
        // Strictly serializable: whatever anyone committed before this read began is in it.
        let at_least = self.instance().reader.last();
        let (transaction, rights) = (self.transaction.as_ref(), self.rights.as_deref());
        let (durable, counts) = (Durable::Yes, true);
        let taker = Some(Taker {
            taken: &self.taken_values,
            search_path: self.settings.search_path(),
            is_read_only: self.is_read_only(),
        });
        Reading { entries, files, at_least, transaction, durable, counts, rights, taker }
    }

    /// The relations that there are for the next statement.
    fn catalog_entries(&self) -> Arc<Entries> {
        let of_others = match &self.transaction {
            Some(transaction) => transaction.entries(),
            None => self.instance().definitions.catalog.entries(),
        };
        self.temporary.with(of_others)
    }

    /// The relation of this name.
    fn relation(&self, name: &str) -> Result<Arc<Entry>> {
        self.catalog_entries().relation(name)
    }

    fn instance(&self) -> &Instance {
        &self.engine.instance
    }
}

/// The levels of the trees that are made of a statement.
fn depth(catalog: &Catalog, statement: &Statement) -> usize {
    catalog.with_functions(statement.depth) + catalog.deepest()
}

/// Where the files are that statements name, and which of them may be used.
#[derive(Clone, Copy)]
struct Paths<'a> {
    base: &'a Path,
    access: &'a FileAccess,
}

impl Paths<'_> {
    /// The path of a file that a statement names, if it may be used.
    fn file(&self, written: &str, purpose: Purpose) -> Result<PathBuf> {
        let path = self.base.join(written);
        self.access.check(written, &path, purpose)?;
        Ok(path)
    }

    /// The files that a part of a statement reads, with their columns.
    fn files(&self, instance: &Instance, statement: &impl Visit) -> Result<Files> {
        let file = |name: String| {
            let path = self.file(&name, Purpose::Read)?;
            let name = name::qualified(None, &name);
            let source = instance.connectors.formats.source(None, &path)?;
            let inferred = instance.connectors.formats.infer(&*source, &path, &[])?;
            let schema = TableDefinition::columns(&inferred.schema)?;
            Ok((name, File::new(source, path, schema, inferred, &instance.settings)))
        };
        files(statement).into_iter().map(file).collect()
    }
}

/// The error of a statement, at the expression that it is about if that can be known before the statement runs.
fn located(
    instance: &Instance,
    (paths, entries): (Paths<'_>, Arc<Entries>),
    (transaction, rights): (Option<&Transaction>, Option<&Rights>),
    (statement, parameters): (&Statement, &[ScalarValue]),
    error: Error,
) -> Error {
    if !has_no_place(&error) {
        return error;
    }
    let files = match &statement.kind {
        StatementKind::Query(query) | StatementKind::ExplainSelect(query) => {
            paths.files(instance, query)
        }
        StatementKind::Insert(insert) => paths.files(instance, insert),
        _ => Ok(Files::new()),
    };
    let Ok(files) = files else { return error };
    // Which rows there are does not matter.
    let (entries, files, durable, counts) = (&entries, &files, Durable::No, false);
    let (at_least, taker) = (0, None);
    let reading = Reading { entries, files, at_least, transaction, durable, counts, rights, taker };
    let check = |plan| instance.reader.failure(plan, parameters, reading);
    located_by(instance, error, statement, FileScope { entries, files }, &check)
}

/// As [`located`], over these relations, where `check` says why a plan fails.
fn located_by(
    instance: &Instance,
    error: Error,
    statement: &Statement,
    scope: FileScope<'_>,
    check: &dyn Fn(LogicalPlan) -> Option<String>,
) -> Error {
    if !has_no_place(&error) {
        return error;
    }
    let planner = &instance.definitions.planner;
    let build = |view: &ViewDefinition, planned| {
        let planned = PlannedView::built(view, planned, &[])?;
        compile(&planned.plan, Output::Rows, &|_| false).map(drop)
    };
    match planner.culprit(&statement.kind, &scope, &error.to_string(), check, &build) {
        Some(culprit) => error.at(culprit),
        None => error,
    }
}

/// The statement of a text that has one.
fn one_statement(sql: &str) -> Result<Statement> {
    let mut statements = alluvium_sql::statement::parse(sql);
    match (statements.next().transpose()?, statements.next().transpose()?) {
        (Some(statement), None) => Ok(statement),
        _ => Err(Error::sql("one statement is expected here")),
    }
}

/// Whether an error could have a place in a statement, and has none.
fn has_no_place(error: &Error) -> bool {
    matches!(error, Error::Sql { position: None, .. } | Error::Data { position: None, .. })
}
