//! A connection whose client has logged in: the loop that answers its messages.

use std::mem;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use alluvium::Session;
use alluvium::unstable::SessionParts;
use bytes::BytesMut;
use pgwire::messages::response::{ReadyForQuery, TransactionStatus};
use pgwire::messages::startup::ParameterStatus;
use pgwire::messages::{PgWireBackendMessage as Answer, PgWireFrontendMessage as Message};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::time;

use super::failure::{Ended, Failure, code};
use super::kept::Kept;
use super::listening::Listening;
use super::parameters::Parameters;
use super::recent::Recent;
use super::startup::LoggedIn;
use super::statement::{Portal, Statement};
use super::wire::{Broken, Wire};
use crate::client::Client;
use crate::log;
use crate::registry::Registered;
use crate::shared::Shared;
use crate::traffic::{Outcome, Protocol};

/// A connection whose client has logged in.
pub(super) struct Connection<S> {
    pub(super) wire: Wire<S>,
    pub(super) client: Client,
    /// The parameters that the client knows.
    parameters: Parameters,
    /// Prepared statements by name; that without a name is under the empty one.
    pub(super) statements: Kept<Arc<Statement>>,
    /// Those that were prepared last, though they may be closed.
    pub(super) recent: Recent<Statement>,
    /// Portals by name, as statements are.
    pub(super) portals: Kept<Portal>,
    /// Whether an error has come, and messages are skipped until the next Sync.
    is_skipping: bool,
    /// Whether the open transaction is one of several statements that were sent together, and not of a BEGIN.
    pub(super) is_implicit: bool,
    /// The command that has run last.
    pub(super) command: &'static str,
    /// Known to others until it is dropped.
    registered: Registered,
    /// Whether the client has the answers to all that it has sent.
    pub(super) has_answered: bool,
    /// What the client is told of between statements.
    pub(super) listening: Listening,
    pub(super) shared: Arc<Shared>,
    /// Whether the server stops.
    pub(super) stops: watch::Receiver<bool>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    pub(super) fn new(
        wire: Wire<S>,
        logged_in: LoggedIn,
        shared: Arc<Shared>,
        stops: watch::Receiver<bool>,
    ) -> Self {
        let LoggedIn { client, registered, parameters } = logged_in;
        let limits = shared.registry.limits();
        let statements =
            Kept::new(limits.statement_bytes, "prepared statements", "statement_bytes");
        let portals = Kept::new(limits.portal_bytes, "portals", "portal_bytes");
        Self {
            wire,
            client,
            parameters,
            statements,
            recent: Recent::default(),
            portals,
            is_skipping: false,
            is_implicit: false,
            command: "",
            registered,
            has_answered: false,
            listening: Listening::new(),
            shared,
            stops,
        }
    }

    /// Answers messages until the client is gone, or the server stops.
    pub(super) async fn run(mut self) {
        if let Err(Broken::Malformed(malformed)) = self.answer_all().await {
            let _ = self.wire.put(Failure::from(malformed).answer());
        }
        self.wire.close().await;
    }

    async fn answer_all(&mut self) -> Result<(), Broken> {
        self.ready()?;
        loop {
            let Some(message) = self.next_message().await? else { return Ok(()) };
            self.has_answered = false;
            if let Message::Terminate(_) = message {
                return Ok(());
            }
            let is_query = matches!(message, Message::Query(_));
            self.client.cancel().begin();
            self.command = "";
            let begun = Instant::now();
            let answered = self.answer(message).await;
            self.client.cancel().end();
            self.count(begun.elapsed(), &answered);
            self.log(begun, &answered);
            match answered {
                Ok(()) => (),
                Err(Ended::Broken(broken)) => return Err(broken),
                Err(Ended::Failed(failure)) => {
                    self.wire.put(failure.answer())?;
                    if failure.is_fatal() {
                        return Ok(());
                    }
                    // Whatever has failed: a statement, or a message.
                    self.client.abort();
                    self.roll_back_implicit().await?;
                    match is_query {
                        true => self.ready()?,
                        false => self.is_skipping = true,
                    }
                }
            }
        }
    }

    /// The next message, until which the client is told what it listens to; `None` when the connection is to end.
    async fn next_message(&mut self) -> Result<Option<Message>, Broken> {
        let idle = self.client.session().ok().and_then(|session| session.idle_timeout());
        let mut idle = pin!(elapsed(idle));
        loop {
            let listens = self.has_answered && !self.client.is_in_transaction();
            // What a slow client does not take stays in its mailbox, and not in the output.
            let sends = listens && self.listening.is_any() && self.wire.unsent() > 0;
            let wire = &mut self.wire;
            let step = async {
                match sends {
                    true => wire.flush().await.map(|()| None),
                    false => wire.next().await.map(Some),
                }
            };
            let failure = tokio::select! {
                step = step => match step? {
                    Some(next) => return Ok(next),
                    None => continue,
                },
                () = self.listening.arrives(), if listens && !sends => {
                    self.tell()?;
                    continue;
                }
                () = &mut idle => idle_too_long(self.client.is_in_transaction()),
                failure = stops(&mut self.stops) => failure,
            };
            self.wire.put(failure.answer())?;
            return Ok(None);
        }
    }

    /// Counts the statements of a message as one, but subscriptions, whose time is the client's own.
    fn count(&self, time: Duration, answered: &Result<(), Ended>) {
        let outcome = match answered {
            _ if self.command == "SUBSCRIBE" => return,
            Err(Ended::Failed(failure)) => Outcome::of_error(failure.code()),
            _ if self.command.is_empty() => return,
            Ok(()) => Outcome::Done,
            Err(Ended::Broken(_)) => Outcome::Canceled,
        };
        self.shared.traffic(Protocol::Postgres).ran(outcome, time);
    }

    /// Logs what was slow, and faults of the server. Of a subscription the time is the client's own.
    fn log(&self, begun: Instant, answered: &Result<(), Ended>) {
        let (number, identity) = (self.registered.number, &self.registered.identity);
        let (time, slow) = (begun.elapsed(), self.shared.registry.limits().slow_statement);
        if slow != Duration::ZERO && time >= slow && !matches!(self.command, "" | "SUBSCRIBE") {
            log::slow(number, identity, self.command, time);
        }
        if matches!(answered, Err(Ended::Failed(failure)) if failure.is_fault()) {
            log::fault(number, identity, self.command);
        }
    }

    async fn answer(&mut self, message: Message) -> Result<(), Ended> {
        if self.is_skipping && !matches!(message, Message::Sync(_)) {
            return Ok(());
        }
        match message {
            Message::Query(query) => {
                self.query(&query.query).await?;
                self.ready()?;
            }
            Message::Parse(parse) => self.parse(parse).await?,
            Message::Bind(bind) => self.bind(&bind)?,
            Message::Describe(describe) => self.describe(&describe).await?,
            Message::Execute(execute) => self.execute(&execute).await?,
            Message::Close(close) => self.close(&close)?,
            Message::Flush(_) => self.wire.flush().await?,
            Message::Sync(_) => self.sync().await?,
            // What is left of a COPY that has failed.
            Message::CopyData(_) | Message::CopyDone(_) | Message::CopyFail(_) => (),
            _ => {
                let message = "a message has come that has no place after the login";
                return Err(Failure::fatal(code::PROTOCOL, message).into());
            }
        }
        Ok(())
    }

    /// The end of messages that belong together: their transaction is committed, unless it is one of a BEGIN.
    async fn sync(&mut self) -> Result<(), Ended> {
        self.is_skipping = false;
        let committed = self.commit_implicit().await;
        if !self.client.is_in_transaction() {
            self.portals.clear();
        }
        if let Err(Ended::Failed(failure)) = committed {
            self.wire.put(failure.answer())?;
        } else {
            committed?;
        }
        self.ready()?;
        Ok(())
    }

    /// Commits the transaction of statements that were sent together.
    pub(super) async fn commit_implicit(&mut self) -> Result<(), Ended> {
        if !mem::take(&mut self.is_implicit) || !self.client.is_in_transaction() {
            return Ok(());
        }
        // Portals read the versions that the transaction began with.
        self.portals.clear();
        self.call(|session| session.execute("COMMIT").map(drop)).await??;
        self.listening.settle(true);
        Ok(())
    }

    /// A statement of this command has run, before which the transaction had been aborted or not.
    pub(super) fn ran(&mut self, command: &str, was_aborted: bool) -> Result<(), Ended> {
        match command {
            "COMMIT" => self.listening.settle(!was_aborted),
            "ROLLBACK" => self.listening.settle(false),
            "SAVEPOINT" => self.listening.save(self.client.session()?.savepoints()),
            "ROLLBACK TO" => self.listening.return_to(self.client.session()?.savepoints()),
            "DISCARD ALL" => self.listening.clear(),
            _ => (),
        }
        Ok(())
    }

    async fn roll_back_implicit(&mut self) -> Result<(), Broken> {
        if !mem::take(&mut self.is_implicit) || !self.client.is_in_transaction() {
            return Ok(());
        }
        self.portals.clear();
        match self.call(|session| session.execute("ROLLBACK").map(drop)).await {
            Err(Ended::Broken(broken)) => Err(broken),
            // There is nothing to roll back then.
            Err(Ended::Failed(_)) | Ok(_) => Ok(()),
        }
    }

    /// Says that the next statement may come.
    fn ready(&mut self) -> Result<(), Broken> {
        let (is_open, is_aborted) = (self.client.is_in_transaction(), self.client.is_aborted());
        let status = match (is_open, is_aborted) {
            (_, true) => TransactionStatus::Error,
            (true, false) => TransactionStatus::Transaction,
            (false, false) => TransactionStatus::Idle,
        };
        if let Ok(session) = self.client.session() {
            for (name, value) in self.parameters.update(session) {
                let status = ParameterStatus::new(name.to_owned(), value);
                self.wire.put(Answer::ParameterStatus(status))?;
            }
        }
        if !is_open {
            self.listening.settle(false);
        }
        self.has_answered = true;
        self.tell()?;
        self.wire.put(Answer::ReadyForQuery(ReadyForQuery::new(status)))
    }

    /// Fails if too many statements wait already.
    fn check_room(&self) -> Result<(), Failure> {
        let Some(waiting) = self.client.is_refused() else { return Ok(()) };
        let message = format!(
            "{waiting} statements wait already, as many as may by the limit \"waiting\": try again"
        );
        Err(Failure::new(code::WAITING, message))
    }

    /// Runs a call of the engine on a thread. If the client goes meanwhile, it is ended.
    pub(super) async fn call<R: Send + 'static>(
        &mut self,
        act: impl FnOnce(&mut Session) -> R + Send + 'static,
    ) -> Result<R, Ended> {
        self.check_room()?;
        self.run_call(act).await
    }

    async fn run_call<R: Send + 'static>(
        &mut self,
        act: impl FnOnce(&mut Session) -> R + Send + 'static,
    ) -> Result<R, Ended> {
        let mut call = self.client.begin(act)?;
        let cancel = self.client.cancel().clone();
        tokio::select! {
            biased;
            done = self.client.end(&mut call) => return Ok(done?),
            () = self.wire.gone() => cancel.request(),
        }
        self.client.end(&mut call).await?;
        Err(Broken::gone().into())
    }

    /// As [`Connection::call`], of a call that adds messages to those that are sent next.
    pub(super) async fn call_adding<R: Send + 'static>(
        &mut self,
        act: impl FnOnce(&mut Session, &mut BytesMut) -> Result<R, Failure> + Send + 'static,
    ) -> Result<R, Ended> {
        // Before the messages that are not sent yet are taken.
        self.check_room()?;
        let mut output = mem::take(self.wire.output());
        let (done, output) = self
            .run_call(move |session| {
                let done = act(session, &mut output);
                (done, output)
            })
            .await?;
        *self.wire.output() = output;
        Ok(done?)
    }
}

/// Waits for so long; forever if there is no time.
pub(super) async fn elapsed(time: Option<Duration>) {
    match time {
        Some(time) => time::sleep(time).await,
        None => std::future::pending().await,
    }
}

/// Waits until the server stops, and says so.
pub(super) async fn stops(stops: &mut watch::Receiver<bool>) -> Failure {
    // Without a server there is none to wait for.
    let _ = stops.wait_for(|stops| *stops).await;
    Failure::fatal(code::SHUTDOWN, "the server stops")
}

fn idle_too_long(is_in_transaction: bool) -> Failure {
    match is_in_transaction {
        true => Failure::fatal(
            "25P03",
            "the connection was idle in a transaction for longer than idle_in_transaction_session_timeout allows, and has ended",
        ),
        false => Failure::fatal(
            "57P05",
            "the connection was idle for longer than idle_session_timeout allows, and has ended",
        ),
    }
}
