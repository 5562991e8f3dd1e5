//! Sessions: a client's SQL, statement by statement.
//!
//! [`Session::run`] has [statements] run: each kind has its place there. [`query`] answers queries. [`settings`] are SET and SHOW, and
//! complete names by the search path; [`identity`] says who the session is, [`rights`] who may do what, [`paths`] where files are. [`description`] says what a statement takes
//! and returns without running it, [`prepared`] are statements that run many times, and [`culprit`] finds the expression that an error
//! is about. [`parts`] is what only a server asks for, [`at_once`] what it may ask for on any thread.

mod at_once;
mod client;
pub(crate) mod clients;
mod culprit;
mod description;
mod identity;
mod outcome;
mod parts;
mod paths;
mod prepared;
mod query;
mod rights;
mod settings;
mod statements;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use alluvium_sql::planner::{Use, check_parameters};
use alluvium_sql::stack;
use alluvium_sql::statement::{ConnectorDefinition, Shape, Statement, StatementKind};
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::Visit;
pub use description::Description;
pub use outcome::Outcome;
pub use prepared::Prepared;

use self::culprit::located;
use self::identity::Identity;
use self::paths::{Paths, Replacement};
use self::rights::KnownUses;
pub(crate) use self::settings::SessionSettings;
use self::statements::block::Block;
use self::statements::cursor::Cursors;
use self::statements::named_statements::NamedStatements;
use self::statements::temporary::TemporaryTables;
use crate::authorizer::Rights;
use crate::catalog::{Catalog, Entries, Entry};
use crate::engine::Engine;
use crate::error::{Error, Result, SqlState};
use crate::file_access::{FileAccess, Purpose};
use crate::instance::Instance;
use crate::interrupt;
use crate::query::{Execution, Files, KeptPlan, Reading, shape_before_parsing, shape_of};
use crate::sequences::{TakenValues, Taker};
use crate::session::clients::OfClient;
use crate::subscription::SubscribeOptions;
use crate::transaction::Transaction;
use crate::value::Value;
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
    /// Whether it does again what was done before.
    is_redoing: bool,
    settings: SessionSettings,
    /// The values of sequences that it has taken.
    taken_values: TakenValues,
    temporary: TemporaryTables,
    file_access: Arc<FileAccess>,
    /// Files that its program has put there for it, which it may read whatever its role.
    private_files: Option<FileAccess>,
    replacement: Option<Replacement>,
    /// Whether parameters have the types of their values.
    types_parameters: bool,
    subscribe_options: SubscribeOptions,
    /// Its roles, if it has some of the catalog.
    identity: Option<Box<Identity>>,
    rights: Option<Box<Rights>>,
    known_uses: KnownUses,
    /// The uses of relations that the last statement has asked for, if the session has rights to some only.
    asked: Arc<[Use]>,
    /// The relations that the statement which runs has the right to, if it has rights to some only.
    authorized: Option<Arc<Entries>>,
    /// The catalog over which the rights to a definition were asked for, if the session has rights to some relations only.
    defines_over: Option<Arc<Entries>>,
    /// Its place among the sessions of clients, if it is one.
    client: Option<OfClient>,
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
            is_redoing: false,
            settings: SessionSettings::default(),
            taken_values: TakenValues::default(),
            temporary: TemporaryTables::default(),
            file_access,
            private_files: None,
            replacement: None,
            types_parameters: false,
            subscribe_options: SubscribeOptions::default(),
            identity: None,
            rights: None,
            known_uses: KnownUses::default(),
            asked: Arc::default(),
            authorized: None,
            defines_over: None,
            client: None,
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

    /// Lets queries name what is no relation: for a name of which there is no relation, `find` says which path is read in its place, as
    /// `SELECT … FROM 'path'` reads it, by a [`Source`](crate::Source) that the engine has. DuckDB calls that a replacement scan. The
    /// path need not be a file, and [file access](Session::set_file_access) does not limit it.
    ///
    /// Relations, and names that the statement itself defines, come first. Views cannot be defined over it.
    pub fn set_replacement_scan(
        &mut self,
        find: impl Fn(&str) -> Option<PathBuf> + Send + Sync + 'static,
    ) {
        self.replacement = Some(Arc::new(find));
    }

    /// Lets parameters of queries, `UPDATE` and `DELETE` have the types of their values where these do not fit the type that is expected, as DuckDB
    /// does: with it `$1 + 1` is 2.5 for 1.5, and without it an error, because an integer is expected beside an integer. At first it is off.
    ///
    /// Texts are read as values of the type that is expected in any case, and what is assigned to a column has to fit it.
    pub fn set_typed_parameters(&mut self, are_typed: bool) {
        self.types_parameters = are_typed;
    }

    /// Says what happens to the session's SUBSCRIBE statements that fall behind, and where they begin; at first, what
    /// [`Engine::subscribe`](crate::Engine::subscribe) says.
    pub fn set_subscribe_options(&mut self, options: SubscribeOptions) {
        self.subscribe_options = options;
    }

    /// Gives the next transaction that the session begins a [key](Transaction::set_key).
    pub fn set_key(&mut self, key: impl Into<String>) {
        self.key = Some(key.into());
    }

    /// The epoch that the last transaction of the session which was committed made, be it a statement or several between BEGIN
    /// and COMMIT; if it changed nothing, the one that it read as of. `None` before the first.
    pub fn committed(&self) -> Option<u64> {
        self.settings.committed
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
        let run = |statement: alluvium_sql::error::Result<Statement>| {
            let statement = statement.inspect_err(|_| self.abort())?;
            let outcome = self.run_tree(&statement, &[])?;
            self.complete(outcome)
        };
        alluvium_sql::statement::parse(sql).map(run).collect()
    }

    /// The outcome, with all of its rows computed.
    fn complete(&mut self, outcome: Outcome) -> Result<Outcome> {
        outcome.complete().inspect_err(|_| self.abort())
    }

    /// Executes one statement with values for its parameters: the first for `$1`, and so on, each of a type
    /// that fits where its parameter stands. SELECT, INSERT, UPDATE and DELETE can have parameters.
    pub fn execute_with(&mut self, sql: &str, parameters: &[Value]) -> Result<Outcome> {
        match self.run_before_parsing(sql, Value::scalars(parameters)) {
            Some(ran) => ran,
            None => {
                let statement = self.parsed(sql)?;
                self.run_tree(&statement, Value::scalars(parameters))
            }
        }
    }

    /// The statement of a text that has one.
    fn parsed(&mut self, sql: &str) -> Result<Statement> {
        one_statement(sql).inspect_err(|_| self.abort())
    }

    /// Executes one statement.
    pub fn run(&mut self, statement: &crate::Statement) -> Result<Outcome> {
        self.run_with(statement, &[])
    }

    /// As [`Session::execute_with`], of a statement that is parsed already.
    pub fn run_with(
        &mut self,
        statement: &crate::Statement,
        parameters: &[Value],
    ) -> Result<Outcome> {
        self.run_tree(statement.tree(), Value::scalars(parameters))
    }

    fn run_tree(&mut self, statement: &Statement, parameters: &[ScalarValue]) -> Result<Outcome> {
        self.note_statement(|| statement.command());
        let _statement = self.logged(Some(statement.command()));
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
        self.apply_requested();
        if self.rights.is_some()
            || self.settings.concern_statements()
            || !self.temporary.are_none()
            || self.is_aborted()
        {
            return None;
        }
        let shape = shape_before_parsing(sql)?;
        let ran = self.within_limits(|session| session.run_shape(sql, &shape, parameters));
        ran.inspect_err(|_| self.abort()).transpose()
    }

    fn run_shape(
        &mut self,
        sql: &str,
        shape: &Shape,
        parameters: &[ScalarValue],
    ) -> Result<Option<Outcome>> {
        let mut statement = self.logged(None);
        self.run_text(sql, parameters, |session| {
            let ran = session.run_kept(shape, parameters, || one_statement(sql).ok())?;
            Ok(ran.map(|(command, outcome)| {
                session.note_statement(|| command);
                statement.has_command(command);
                outcome
            }))
        })
    }

    /// Runs a text that is not parsed yet by `act`; it is parsed to find the place of an error.
    fn run_text(
        &mut self,
        sql: &str,
        parameters: &[ScalarValue],
        act: impl FnOnce(&mut Self) -> Result<Option<Outcome>>,
    ) -> Result<Option<Outcome>> {
        let poison = self.instance().poison.clone();
        poison.check()?;
        let ran = poison.guard(|| {
            let outcome = act(self)?;
            if outcome.is_some() {
                self.instance().reader.check_views()?;
            }
            Ok(outcome)
        });
        ran.map_err(|error| match error {
            Error::Poisoned { .. } => error,
            _ => interrupt::reached().unwrap_or_else(|| {
                let Ok(statement) = one_statement(sql) else { return self.told(error) };
                let error = self.told(self.located(error, &statement, parameters));
                self.file_access.worded(error, &self.base).at(statement.position)
            }),
        })
    }

    /// Runs a statement from the plan that is kept of its shape, and returns its command too; `None` if none is. It is parsed by `statement` if that is needed.
    fn run_kept(
        &mut self,
        shape: &Shape,
        parameters: &[ScalarValue],
        statement: impl FnOnce() -> Option<Statement>,
    ) -> Result<Option<(&'static str, Outcome)>> {
        // Plans are kept over the relations that everybody sees.
        if self.transaction.as_ref().is_some_and(|open| open.definitions().is_some())
            || !self.temporary.are_none()
        {
            return Ok(None);
        }
        let entries = self.catalog_entries();
        let kept = self.instance().reader.plans.get(shape, parameters, &entries);
        let Some((kept, values)) = kept else { return Ok(None) };
        let ran = self.run_plan((shape, &kept), &values, &entries, parameters, statement)?;
        Ok(ran.map(|outcome| (kept.command(), outcome)))
    }

    /// Runs a kept plan of a shape for these values; the rest is as for [`Session::run_kept`].
    fn run_plan(
        &mut self,
        (shape, kept): (&Shape, &KeptPlan),
        values: &[ScalarValue],
        entries: &Arc<Entries>,
        parameters: &[ScalarValue],
        statement: impl FnOnce() -> Option<Statement>,
    ) -> Result<Option<Outcome>> {
        if kept.target().is_some() {
            self.before_reading(kept.reads())?;
            return self.change_kept(shape, parameters);
        }
        match self.answer_kept(kept, values, entries, parameters, statement) {
            // A relation that it reads was replaced: it is planned again.
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
                    check_parameters(&statement.kind, parameters.len())?;
                }
                self.check_read_only(&statement.kind)?;
                let outcome = self.run_authorized(statement, |session| {
                    session
                        .run_owned(execution, Self::run_or_dispatch)
                        .map_err(|error| session.located(error, statement, parameters))
                })?;
                if checks_views {
                    self.instance().reader.check_views()?;
                }
                Ok(outcome)
            })
        });
        ran.map_err(|error| match error {
            Error::Poisoned { .. } => error,
            // Whatever error the interrupted part made of the interrupt.
            _ => interrupt::reached().unwrap_or_else(|| {
                self.file_access.worded(self.told(error), &self.base).at(statement.position)
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
            && let Some((_, outcome)) = self.run_kept(&shape, values, || Some(statement.clone()))?
        {
            return Ok(outcome);
        }
        self.dispatch(execution)
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
        if let Some(session) = self.client_session() {
            transaction.set_session(session);
        }
        if let Some(key) = self.key.take() {
            self.instance().writer.check_key_room(&key)?;
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

    /// The files that a part of a statement reads, with their columns.
    fn files(&self, statement: &impl Visit) -> Result<Files> {
        self.paths().files(self.instance(), &self.catalog_entries(), statement)
    }

    /// The path of a file that a statement names, if the session may use it.
    fn file(&self, written: &str, purpose: Purpose) -> Result<PathBuf> {
        self.paths().file(written, purpose)
    }

    fn paths(&self) -> Paths<'_> {
        let (reads, writes) = (self.file_access(Purpose::Read), self.file_access(Purpose::Write));
        Paths { base: &self.base, reads, writes, replacement: self.replacement.as_ref() }
    }

    /// Fails if the session may not use the file of a connector. Replayed statements may use any file.
    fn check_connectors(&self, connectors: &[ConnectorDefinition], purpose: Purpose) -> Result<()> {
        if self.is_redoing {
            return Ok(());
        }
        let formats = &self.instance().connectors.formats;
        let is_other = |connector: &&ConnectorDefinition| {
            let name = &connector.transport.value;
            formats.transport(name).is_some() || formats.delivery(name).is_some()
        };
        for connector in connectors.iter().filter(is_other) {
            self.check_connects(connector)
                .map_err(|error| error.at(connector.transport.position))?;
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
        // Strictly serializable: whatever anyone knew to be committed before this read began is in it.
        let at_least = self.instance().reader.reported();
        let (transaction, rights) = (self.transaction.as_ref(), self.rights.as_deref());
        let (durable, counts) = (Durable::Yes, true);
        let taker = Some(Taker {
            taken: &self.taken_values,
            search_path: self.settings.search_path(),
            is_read_only: self.is_read_only(),
            settings: &self.settings,
            system: self.instance().definitions.planner.system(),
        });
        let waited = None;
        Reading { entries, files, at_least, transaction, durable, counts, rights, taker, waited }
    }

    /// The relations that the next statement sees.
    fn catalog_entries(&self) -> Arc<Entries> {
        if let Some(authorized) = &self.authorized {
            return authorized.clone();
        }
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

/// The statement of a text that has one.
fn one_statement(sql: &str) -> Result<Statement> {
    let mut statements = alluvium_sql::statement::parse(sql);
    match (statements.next().transpose()?, statements.next().transpose()?) {
        (Some(statement), None) => Ok(statement),
        _ => Err(Error::sql("one statement is expected here")),
    }
}
