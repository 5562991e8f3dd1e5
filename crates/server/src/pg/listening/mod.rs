//! LISTEN: clients who want to know that a relation has changed, and not how.
//!
//! ```text
//! subscription of a relation ─► its task in channels ─► mailboxes ─► connections, between statements
//!          (one)                      (one)             (one for each client)
//! ```
//!
//! All clients that listen to a relation share one subscription, which begins without rows, and one task that takes its changes. What a
//! client does not read waits in its [`mailbox`]: epochs, no rows, and not more than a number of them.

mod channels;
mod mailbox;

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium::unstable::{SessionParts, StatementKind, StatementTree, tree};
use alluvium::{Action, Object, Session, Statement};
use pgwire::messages::PgWireBackendMessage as Answer;
use pgwire::messages::response::NotificationResponse;
use tokio::io::{AsyncRead, AsyncWrite};

pub(crate) use self::channels::Channels;
use self::channels::Joined;
use self::mailbox::{Heard, Mailbox};
use super::completion::complete;
use super::connection::Connection;
use super::failure::{Ended, Failure, code, notice, warning};
use super::wire::Broken;

/// What LISTEN or UNLISTEN asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Wish {
    /// To be told of the changes of a relation, by this name.
    Listen(String),
    /// Not to be told any more; `None` is of anything.
    Unlisten(Option<String>),
}

/// A LISTEN or UNLISTEN of a client.
#[derive(Clone)]
pub(super) struct Listen {
    wish: Wish,
    statement: Statement,
}

impl Listen {
    /// What a statement asks for, if it is one of these.
    pub(super) fn of(statement: &Statement) -> Option<Self> {
        let wish = wish(tree(statement))?;
        Some(Self { wish, statement: statement.clone() })
    }
}

fn wish(statement: &StatementTree) -> Option<Wish> {
    match &statement.kind {
        StatementKind::Listen(relation) => Some(Wish::Listen(relation.name.clone())),
        StatementKind::Unlisten(relation) => {
            Some(Wish::Unlisten(relation.as_ref().map(|relation| relation.name.clone())))
        }
        _ => None,
    }
}

/// What a client listens to.
pub(super) struct Listening {
    /// By the names that the client has given.
    channels: BTreeMap<String, Joined>,
    /// What the open transaction changes if it is committed.
    staged: Vec<Staged>,
    /// How much of that there was at each of its savepoints.
    savepoints: Vec<usize>,
    mailbox: Arc<Mailbox>,
}

/// A change of what a client listens to.
enum Staged {
    Listen(String, Joined),
    Unlisten(Option<String>),
}

impl Listening {
    /// Nothing.
    pub(super) fn new() -> Self {
        let (channels, staged, savepoints) = Default::default();
        Self { channels, staged, savepoints, mailbox: Arc::default() }
    }

    /// Whether the client listens to something.
    pub(super) fn is_any(&self) -> bool {
        !self.channels.is_empty()
    }

    /// Waits for something to tell; forever if the client listens to nothing. It may be dropped and called again.
    pub(super) async fn arrives(&self) {
        match self.channels.is_empty() {
            true => std::future::pending().await,
            false => self.mailbox.arrives().await,
        }
    }

    /// The transaction has a new savepoint, after which there are so many.
    pub(super) fn save(&mut self, savepoints: usize) {
        self.savepoints.truncate(savepoints.saturating_sub(1));
        self.savepoints.push(self.staged.len());
    }

    /// The transaction has returned to a savepoint, the last one of so many: nothing of what it has changed since counts.
    pub(super) fn return_to(&mut self, savepoints: usize) {
        self.savepoints.truncate(savepoints);
        self.staged.truncate(self.savepoints.last().copied().unwrap_or_default());
    }

    /// The transaction has ended. What it has changed counts if it was committed.
    pub(super) fn settle(&mut self, is_committed: bool) {
        self.savepoints.clear();
        for staged in std::mem::take(&mut self.staged).into_iter().filter(|_| is_committed) {
            self.apply(staged);
        }
    }

    /// The client listens to nothing any more.
    pub(super) fn clear(&mut self) {
        self.staged.clear();
        self.savepoints.clear();
        self.channels.clear();
        self.mailbox.clear();
    }

    fn apply(&mut self, staged: Staged) {
        match staged {
            Staged::Listen(name, joined) => {
                self.channels.entry(name).or_insert(joined);
            }
            Staged::Unlisten(Some(name)) => drop(self.channels.remove(&name)),
            Staged::Unlisten(None) => self.channels.clear(),
        }
    }

    /// The names by which the client listens to a relation.
    fn names_of(&self, relation: &str) -> Vec<String> {
        let of = self.channels.iter().filter(|(_, joined)| joined.relation() == relation);
        of.map(|(name, _)| name.clone()).collect()
    }
}

/// The messages that tell a client what was heard, and whether it listens on.
fn told(heard: &Heard, names: &[String], may: bool) -> (Vec<Answer>, bool) {
    let each = |message: &dyn Fn(&String) -> Answer| names.iter().map(message).collect();
    match heard {
        Heard::Changed { epoch, .. } if may => {
            let process = i32::try_from(std::process::id()).unwrap_or_default();
            let message = |name: &String| {
                let told = NotificationResponse::new(process, name.clone(), epoch.to_string());
                Answer::NotificationResponse(told)
            };
            (each(&message), true)
        }
        Heard::Changed { .. } => {
            let message = |name: &String| {
                let text = format!(
                    "LISTEN \"{name}\" has ended: the role may not have its changes any more"
                );
                warning(code::NO_RIGHT, &text)
            };
            (each(&message), false)
        }
        Heard::Ended { reason, .. } => {
            let message = |name: &String| match reason {
                None => notice(&format!("LISTEN \"{name}\" has ended: the relation is gone")),
                Some(reason) => {
                    warning(code::WARNING, &format!("LISTEN \"{name}\" has ended: {reason}"))
                }
            };
            (each(&message), false)
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Answers LISTEN and UNLISTEN, before which a transaction may begin. Within a transaction they count once it is committed.
    pub(super) async fn listen(
        &mut self,
        listen: Listen,
        sql: Arc<str>,
        begins: bool,
    ) -> Result<(), Ended> {
        let Listen { wish, statement } = listen;
        let begin = move |session: &mut Session| match begins {
            true => session.execute("BEGIN").map(drop),
            false => Ok(()),
        };
        let (command, staged) = match wish {
            Wish::Listen(name) => {
                let (shared, mailbox) = (self.shared.clone(), self.listening.mailbox.clone());
                let joined = self
                    .call(move |session| {
                        begin(session)?;
                        let failed = |error: alluvium::Error| Failure::of(&error, &sql);
                        let relation = session.listened(tree(&statement)).map_err(failed)?;
                        Channels::join(&shared, &relation, &mailbox).map_err(failed)
                    })
                    .await??;
                ("LISTEN", Staged::Listen(name, joined))
            }
            Wish::Unlisten(name) => {
                self.client.session()?.check_not_aborted()?;
                if begins {
                    self.call(begin).await??;
                }
                ("UNLISTEN", Staged::Unlisten(name))
            }
        };
        match self.client.is_in_transaction() {
            true => self.listening.staged.push(staged),
            false => self.listening.apply(staged),
        }
        self.wire.put(complete(command, None))?;
        Ok(())
    }

    /// Tells the client what was heard, if it is between transactions and statements.
    pub(super) fn tell(&mut self) -> Result<(), Broken> {
        if self.client.is_in_transaction() || !self.has_answered {
            return Ok(());
        }
        while let Some(heard) = self.listening.mailbox.take() {
            let names = self.listening.names_of(heard.relation());
            if names.is_empty() {
                continue;
            }
            let right = Object::Relation(heard.relation());
            let session = self.client.session().ok();
            let may = session.is_some_and(|session| session.may(Action::Subscribe, right));
            let (messages, goes_on) = told(&heard, &names, may);
            for message in messages {
                self.wire.put(message)?;
            }
            if !goes_on {
                names.iter().for_each(|name| drop(self.listening.channels.remove(name)));
            }
        }
        if self.listening.mailbox.take_lost() {
            let message = "the client has not read for so long that notifications were lost: those that came last are the newest";
            self.wire.put(warning(code::WARNING, message))?;
        }
        Ok(())
    }
}
