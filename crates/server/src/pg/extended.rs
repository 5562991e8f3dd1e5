//! The extended protocol: statements that are prepared, bound to values, and run as portals.

use std::mem;
use std::sync::Arc;

use alluvium::unstable::{SessionParts, StatementKind, StatementTree, prepared_tree};
use alluvium::{Session, SqlState};
use bytes::Bytes;
use pgwire::messages::PgWireBackendMessage as Answer;
use pgwire::messages::extendedquery::{
    Bind, BindComplete, Close, CloseComplete, Describe, Execute, Parse, ParseComplete,
};
use pgwire::messages::response::EmptyQueryResponse;
use tokio::io::{AsyncRead, AsyncWrite};

use super::answers::{Begun, Shape, begin};
use super::arrow_statement;
use super::completion::complete;
use super::connection::Connection;
use super::control::Control;
use super::copy::Copy;
use super::deallocation::Deallocation;
use super::failure::{Ended, Failure};
use super::listening::Listen;
use super::results::Formats;
use super::statement::{Bound, Portal, Preparation, State, Statement};

/// The kind of a message that says that those before it belong together.
const SYNC: u8 = b'S';
/// The kind of object that a message is about: a statement, or else a portal.
const STATEMENT: u8 = b'S';

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Prepares a statement.
    pub(super) async fn parse(&mut self, parse: Parse) -> Result<(), Ended> {
        let name = parse.name.unwrap_or_default();
        if !name.is_empty() && self.statements.contains_key(&name) {
            let message = format!("there is a prepared statement \"{name}\" already");
            return Err(Failure::new(SqlState::DUPLICATE_STATEMENT.as_str(), message).into());
        }
        let sql: Arc<str> = parse.query.into();
        let text = sql.clone();
        self.check_room_for(&name, sql.len())?;
        // The one without a name is replaced, even by one that fails.
        self.statements.remove(&name);
        if let Some(statement) = self.prepared_before(&sql, &parse.type_oids)? {
            self.statements.insert(name, statement, sql.len());
            self.wire.put(Answer::ParseComplete(ParseComplete::new()))?;
            return Ok(());
        }
        let takes_arrow = parse.type_oids == [arrow_statement::PARAMETERS];
        let prepared = self
            .call(move |session| {
                let failed = |error: alluvium::Error| Failure::of(&error, &text);
                if is_empty(&text) {
                    return Ok(Preparation::default());
                }
                if takes_arrow {
                    return parsed_for_arrow(&text);
                }
                let prepared = session.prepare(&text).map_err(failed)?;
                // The others are parsed once.
                let statement = match prepared.command() {
                    "COPY" | "DEALLOCATE" | "DEALLOCATE ALL" | "DISCARD ALL" | "LISTEN"
                    | "UNLISTEN" => parsed(&text).map_err(failed)?,
                    _ => None,
                };
                let is_of_catalog = session.uses_system(prepared_tree(&prepared));
                let prepared = Some(prepared);
                let Some(statement) = statement else {
                    return Ok(Preparation { prepared, is_of_catalog, ..Preparation::default() });
                };
                let copy = Copy::of(&statement, &text)?;
                let (deallocation, listen) = (Deallocation::of(&statement), Listen::of(&statement));
                Ok::<_, Failure>(Preparation {
                    prepared,
                    copy,
                    deallocation,
                    listen,
                    is_of_catalog,
                    arrow: None,
                })
            })
            .await??;
        let bytes = sql.len();
        let oids = parse.type_oids;
        let statement = Arc::new(Statement::new(sql.clone(), prepared, oids.clone()));
        if statement.is_plain() {
            self.recent.keep(sql, oids, statement.clone());
        }
        self.statements.insert(name, statement, bytes);
        self.wire.put(Answer::ParseComplete(ParseComplete::new()))?;
        Ok(())
    }

    /// The statement of a text and types of parameters, if it was prepared before and would be the same again.
    fn prepared_before(
        &mut self,
        sql: &str,
        oids: &[u32],
    ) -> Result<Option<Arc<Statement>>, Ended> {
        // In an aborted transaction it depends on the statement.
        if self.client.is_aborted() {
            return Ok(None);
        }
        let Some(statement) = self.recent.get(sql, oids) else { return Ok(None) };
        if statement.is_arrow() {
            return Ok(Some(statement));
        }
        let Some(prepared) = statement.prepared() else { return Ok(None) };
        let is_current = self.client.call_at_once(|session| session.is_current(prepared))?;
        Ok(is_current.then_some(statement))
    }

    /// Binds values to the parameters of a statement.
    pub(super) fn bind(&mut self, bind: &Bind) -> Result<(), Ended> {
        let name = bind.portal_name.clone().unwrap_or_default();
        let statement = self.statement(bind.statement_name.as_deref().unwrap_or_default())?;
        if !matches!(statement.command(), "COMMIT" | "ROLLBACK" | "ROLLBACK TO") {
            self.check_not_aborted()?;
        }
        if !name.is_empty() && self.portals.contains_key(&name) {
            let message = format!("there is a portal \"{name}\" already");
            return Err(Failure::new(SqlState::DUPLICATE_CURSOR.as_str(), message).into());
        }
        let bytes = bind.parameters.iter().flatten().map(Bytes::len).sum();
        self.portals.check(&name, bytes, 0)?;
        let portal = Portal::new(statement, bind)?;
        self.portals.insert(name, portal, bytes);
        self.wire.put(Answer::BindComplete(BindComplete::new()))?;
        Ok(())
    }

    /// Describes a statement or a portal. A cursor is a portal too, which DECLARE has made.
    pub(super) async fn describe(&mut self, describe: &Describe) -> Result<(), Ended> {
        let name = describe.name.as_deref().unwrap_or_default();
        if describe.target_type == STATEMENT {
            let statement = self.statement(name)?;
            if statement.columns().is_some() {
                self.check_not_aborted()?;
            }
            self.wire.put(statement.parameter_description())?;
            self.wire.put(statement.row_description(&Formats::TEXT))?;
            return Ok(());
        }
        if self.portals.get(name).is_some_and(|portal| portal.statement.columns().is_some()) {
            self.check_not_aborted()?;
        }
        let description = match self.portals.get(name) {
            Some(portal) => portal.statement.row_description(&portal.formats),
            None => self.cursor(name).await?.row_description(&Formats::TEXT),
        };
        self.wire.put(description)?;
        Ok(())
    }

    /// Closes a statement or a portal, which need not be there.
    pub(super) fn close(&mut self, close: &Close) -> Result<(), Ended> {
        let name = close.name.as_deref().unwrap_or_default();
        match close.target_type {
            STATEMENT => drop(self.statements.remove(name)),
            _ => drop(self.portals.remove(name)),
        }
        self.wire.put(Answer::CloseComplete(CloseComplete::new()))?;
        Ok(())
    }

    /// Runs a portal, or goes on with it. What runs before a Sync has come is part of a transaction.
    pub(super) async fn execute(&mut self, execute: &Execute) -> Result<(), Ended> {
        let name = execute.name.clone().unwrap_or_default();
        let portal = self.portals.get_mut(&name).ok_or_else(|| no_portal(&name))?;
        let (statement, formats) = (portal.statement.clone(), portal.formats.clone());
        let values = mem::replace(&mut portal.values, Bound::Arrow(None));
        let state = mem::replace(&mut portal.state, State::Over);
        let command = statement.command();
        let most =
            u64::try_from(execute.max_rows).ok().filter(|most| *most > 0).unwrap_or(u64::MAX);
        if !matches!(state, State::Bound) {
            self.check_not_aborted()?;
        }
        let (results, pulled) = match state {
            State::Over => {
                self.wire.put(complete(command, Some(0)))?;
                return Ok(());
            }
            State::Open(mut results) => {
                self.call_adding(move |_, out| {
                    let pulled = results.pull(most, out)?;
                    Ok((results, pulled))
                })
                .await?
            }
            State::Bound if statement.is_empty() => {
                self.wire.put(Answer::EmptyQueryResponse(EmptyQueryResponse::new()))?;
                return Ok(());
            }
            State::Bound
                if statement.deallocation().is_some_and(|removed| self.deallocate(removed)) =>
            {
                self.wire.put(complete(command, None))?;
                return Ok(());
            }
            State::Bound => {
                let others_follow = self.wire.kind_of_next() != Some(SYNC);
                let Control::Run { begins } = self.control(command, others_follow)? else {
                    return Ok(());
                };
                if self.answer_own(&statement, &formats, begins, most).await? {
                    return Ok(());
                }
                let was_aborted = self.client.is_aborted();
                let shape = Shape {
                    formats: formats.clone(),
                    columns: statement.columns().cloned(),
                    is_of_catalog: statement.is_of_catalog(),
                    is_described: false,
                    most,
                };
                let begun = self.begun(statement, values, begins, shape).await?;
                match begun {
                    Begun::Complete => {
                        return self.ran(command, was_aborted);
                    }
                    Begun::Rows(results, pulled) => (results, pulled),
                    Begun::Subscribed(subscription) => {
                        return self.follow(subscription, formats, false).await;
                    }
                }
            }
        };
        let rest = self.send_rows(results, pulled, command, most).await?;
        if let (Some(rest), Some(portal)) = (rest, self.portals.get_mut(&name)) {
            portal.state = State::Open(rest);
        }
        Ok(())
    }

    /// Answers a statement by which rows or changes go to the client as data, come from it, are fetched as they come, or are told of. Returns whether it
    /// is one.
    async fn answer_own(
        &mut self,
        statement: &Statement,
        formats: &Formats,
        begins: bool,
        most: u64,
    ) -> Result<bool, Ended> {
        if let Some(copy) = statement.copy().cloned() {
            self.copy(copy, statement.sql.clone(), begins).await?;
            return Ok(true);
        }
        if let Some(listen) = statement.listen().cloned() {
            self.listen(listen, statement.sql.clone(), begins).await?;
            return Ok(true);
        }
        let Some(tree) = statement.tree() else { return Ok(false) };
        if let Some(fetching) = self.begin_fetch(tree, &statement.sql)? {
            statement.check_columns(&fetching.schema)?;
            self.fetch(fetching, formats, false, most).await?;
            return Ok(true);
        }
        self.check_prepare(tree)?;
        Ok(false)
    }

    /// Begins a statement, or a transaction and then the statement. If it need not wait it runs here, on the connection's own task.
    async fn begun(
        &mut self,
        statement: Arc<Statement>,
        values: Bound,
        begins: bool,
        shape: Shape,
    ) -> Result<Begun, Ended> {
        let command = statement.command();
        if !begins
            && let Bound::Values(values) = &values
            && let Some(prepared) = statement.prepared()
        {
            let run = |session: &mut Session| session.execute_at_once(prepared, values);
            if let Some(done) = self.client.call_at_once(run)? {
                let outcome = done.map_err(|error| Failure::of(&error, &statement.sql))?;
                return Ok(begin(outcome, command, &shape, self.wire.output())?);
            }
        }
        self.call_adding(move |session, out| {
            if begins {
                session.execute("BEGIN")?;
            }
            let outcome = match (&values, statement.prepared()) {
                (Bound::Values(values), Some(prepared)) => session
                    .execute_prepared(prepared, values)
                    .map_err(|error| Failure::of(&error, &statement.sql))?,
                (Bound::Arrow(parameters), _) => {
                    arrow_statement::run(session, &statement.sql, parameters.as_ref())?
                }
                (Bound::Values(_), None) => return Ok(Begun::Complete),
            };
            begin(outcome, command, &shape, out)
        })
        .await
    }

    /// A statement that has the columns of a cursor of the session.
    async fn cursor(&mut self, name: &str) -> Result<Statement, Ended> {
        let missing = no_portal(name);
        if name.is_empty() || self.client.is_aborted() {
            return Err(missing.into());
        }
        let sql: Arc<str> = format!("FETCH 0 FROM \"{}\"", name.replace('"', "\"\"")).into();
        let text = sql.clone();
        let prepared =
            self.call(move |session| session.prepare(&text)).await?.map_err(|_| missing)?;
        let prepared = Preparation { prepared: Some(prepared), ..Preparation::default() };
        Ok(Statement::new(sql, prepared, Vec::new()))
    }

    /// Fails in a transaction that an error has aborted.
    fn check_not_aborted(&mut self) -> Result<(), Ended> {
        Ok(self.client.session()?.check_not_aborted()?)
    }

    /// Fails if PREPARE would make the connection keep too much.
    pub(super) fn check_prepare(&mut self, statement: &StatementTree) -> Result<(), Ended> {
        let StatementKind::Prepare { name, .. } = &statement.kind else { return Ok(()) };
        self.check_room_for(&name.name, statement.text.len())
    }

    /// Fails if a prepared statement of this name, with a text of so many bytes, would make the connection keep too much.
    fn check_room_for(&mut self, name: &str, bytes: usize) -> Result<(), Ended> {
        // That without a name is not counted.
        if name.is_empty() {
            return Ok(());
        }
        let others = self.client.session()?.named_statement_bytes();
        Ok(self.statements.check(name, bytes, others)?)
    }

    fn statement(&self, name: &str) -> Result<Arc<Statement>, Failure> {
        self.statements.get(name).cloned().ok_or_else(|| {
            let message = format!("there is no prepared statement \"{name}\"");
            Failure::new(SqlState::NO_STATEMENT.as_str(), message)
        })
    }
}

/// The first statement of a text, if it has one.
fn parsed(sql: &str) -> alluvium::Result<Option<alluvium::Statement>> {
    alluvium::parse(sql).next().transpose()
}

/// A text that has a statement, parsed to take and give Arrow.
fn parsed_for_arrow(text: &str) -> Result<Preparation, Failure> {
    let failed = |error: alluvium::Error| Failure::of(&error, text);
    let Some(statement) = parsed(text).map_err(failed)? else { return Ok(Preparation::default()) };
    Ok(Preparation {
        copy: Copy::of(&statement, text)?,
        deallocation: Deallocation::of(&statement),
        listen: Listen::of(&statement),
        arrow: Some(statement),
        ..Preparation::default()
    })
}

/// Whether a text has no statement. One that begins with a letter has: it need not be parsed to know.
fn is_empty(sql: &str) -> bool {
    !sql.trim_start().starts_with(char::is_alphabetic) && matches!(parsed(sql), Ok(None))
}

fn no_portal(name: &str) -> Failure {
    Failure::new(SqlState::NO_CURSOR.as_str(), format!("there is no portal \"{name}\""))
}
