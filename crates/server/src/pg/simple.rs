//! The simple protocol: texts of statements, whose answers are text.

use std::sync::Arc;

use alluvium::Statement;
use alluvium::unstable::{SessionParts, tree};
use pgwire::messages::PgWireBackendMessage as Answer;
use pgwire::messages::response::EmptyQueryResponse;
use tokio::io::{AsyncRead, AsyncWrite};

use super::answers::{Begun, Shape, begin};
use super::completion::complete;
use super::connection::Connection;
use super::control::Control;
use super::copy::Copy;
use super::deallocation::Deallocation;
use super::failure::{Ended, Failure};
use super::listening::Listen;
use super::results::Formats;

/// Longer texts are parsed on a thread of the pool.
const SHORT: usize = 16 << 10;

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Answers the statements of a text.
    pub(super) async fn query(&mut self, sql: &str) -> Result<(), Ended> {
        self.portals.remove("");
        if self.query_at_once(sql).await? {
            return Ok(());
        }
        let sql: Arc<str> = sql.into();
        let statements = self.statements_of(sql.clone()).await?;
        let Some(last) = statements.len().checked_sub(1) else {
            self.wire.put(Answer::EmptyQueryResponse(EmptyQueryResponse::new()))?;
            return Ok(());
        };
        for (place, statement) in statements.into_iter().enumerate() {
            self.run_statement(statement, &sql, place < last).await?;
        }
        self.commit_implicit().await
    }

    /// Answers a text that is a statement by key which need not wait: it runs here, on the connection's own task. Returns whether it is one.
    async fn query_at_once(&mut self, sql: &str) -> Result<bool, Ended> {
        let done = self.client.call_at_once(|session| session.execute_text_at_once(sql))?;
        let Some(done) = done else { return Ok(false) };
        let (command, outcome) = done.map_err(|error| Failure::of(&error, sql))?;
        self.command = command;
        // What is of the catalog has no key.
        let begun = begin(outcome, command, &Shape::of_text(false), self.wire.output())?;
        if let Begun::Rows(results, pulled) = begun {
            self.send_rows(results, pulled, command, u64::MAX).await?;
        }
        Ok(true)
    }

    /// The statements of a text, all parsed before the first of them runs.
    async fn statements_of(&mut self, sql: Arc<str>) -> Result<Vec<Statement>, Ended> {
        let is_short = sql.len() <= SHORT;
        let parse = move || {
            let parsed: alluvium::Result<Vec<Statement>> = alluvium::parse(&sql).collect();
            parsed.map_err(|error| Failure::of(&error, &sql))
        };
        let parsed = match is_short {
            true => parse(),
            false => self.call(move |_| parse()).await?,
        };
        Ok(parsed?)
    }

    /// Runs a statement of a text, which others may follow.
    async fn run_statement(
        &mut self,
        statement: Statement,
        sql: &Arc<str>,
        others_follow: bool,
    ) -> Result<(), Ended> {
        let command = statement.command();
        if let Some(removed) = Deallocation::of(&statement)
            && self.deallocate(&removed)
        {
            self.wire.put(complete(command, None))?;
            return Ok(());
        }
        let Control::Run { begins } = self.control(command, others_follow)? else { return Ok(()) };
        let sql = sql.clone();
        if let Some(copy) = Copy::of(&statement, &sql)? {
            return self.copy(copy, sql, begins).await;
        }
        if let Some(listen) = Listen::of(&statement) {
            return self.listen(listen, sql, begins).await;
        }
        if let Some(fetching) = self.begin_fetch(tree(&statement), &sql)? {
            return self.fetch(fetching, &Formats::TEXT, true, u64::MAX).await;
        }
        self.check_prepare(tree(&statement))?;
        let was_aborted = self.client.is_aborted();
        let is_of_catalog = self.client.session()?.uses_system(tree(&statement));
        let shape = Shape::of_text(is_of_catalog);
        let begun = self
            .call_adding(move |session, out| {
                if begins {
                    session.execute("BEGIN")?;
                }
                let outcome = session.run(&statement);
                begin(outcome.map_err(|error| Failure::of(&error, &sql))?, command, &shape, out)
            })
            .await?;
        match begun {
            Begun::Complete => self.ran(command, was_aborted)?,
            Begun::Rows(results, pulled) => {
                self.send_rows(results, pulled, command, u64::MAX).await?;
            }
            Begun::Subscribed(subscription) => {
                self.follow(subscription, Formats::TEXT, true).await?
            }
        }
        Ok(())
    }
}
