//! Reading a table: its snapshot, and the transactions after it.

use std::time::{Duration, Instant};

use alluvium::{Error, Live, Portion, SourcePosition, SourceReader, TransportConnector};

use super::connection::Connection;
use super::failure::{Failure, Result};
use super::pgoutput::{self, Change, Old, Relation, Replicated, Value};
use super::position::{Lsn, Position};
use super::rows::{Rows, place};
use super::settings::Settings;
use super::spelling::fields;
use super::transport::{is_taken, revealed};
use super::upstream::{Shape, Upstream};
use crate::waiting::{Backoff, PATIENCE, check_live};

/// How often the server is asked how far its log is, and told how far it is durable here.
const ASK: Duration = Duration::from_secs(2);

/// How often a place in the log is recorded without rows, so that the server can forget what comes before.
const IDLE: Duration = Duration::from_secs(5);

/// How long a server that is asked may be silent.
const SILENCE: Duration = Duration::from_secs(60);

/// How much a portion has at most.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How many rows.
    pub rows: usize,
    /// How many bytes of texts, give or take one row.
    pub bytes: usize,
}

/// Reads the rows of a table.
pub struct Input {
    connector: TransportConnector,
    settings: Settings,
    shape: Shape,
    most: Limits,
    live: Option<Live>,
    /// Whether positions outlive the engine.
    lasts: bool,
    /// After the last portion that ended a transaction.
    position: Option<Position>,
    /// Whether portions of a transaction were handed on that has not ended.
    is_within: bool,
    /// Whether these are to be forgotten.
    restarts: bool,
    session: Option<Session>,
    backoff: Backoff,
}

/// A connection, and what is read from it.
struct Session {
    connection: Connection,
    table: String,
    rows: Rows,
    phase: Phase,
    /// The table as messages have its columns, and the column there of each column here.
    relation: Option<(Relation, Vec<usize>)>,
    /// The transaction that is being read: where its commit is.
    transaction: Option<Lsn>,
    /// Whether it was read before.
    is_known: bool,
    /// The end of the last transaction.
    committed: Lsn,
    /// All of the log up to here was sent.
    sent: Lsn,
    /// The end of the server's log, as far as it is known.
    end: Lsn,
    heard: Instant,
    asked: Instant,
    recorded: Instant,
}

#[derive(Clone, Copy, PartialEq)]
enum Phase {
    /// The rows of the table as of a place in the log.
    Snapshot(Lsn),
    /// The transactions after it.
    Stream,
}

impl Input {
    /// Begins at a position, or else with a snapshot.
    pub fn new(
        (connector, settings): (TransportConnector, Settings),
        shape: Shape,
        most: Limits,
        live: Option<Live>,
        lasts: bool,
        position: Option<Position>,
    ) -> Self {
        Self {
            connector,
            settings,
            shape,
            most,
            live,
            lasts,
            position,
            is_within: false,
            restarts: false,
            session: None,
            backoff: Backoff::default(),
        }
    }

    /// The next portion over the connection there is, or a new one.
    fn step(&mut self) -> Result<Portion> {
        let mut session = match self.session.take() {
            Some(session) => session,
            None => match self.open()? {
                Some(session) => session,
                None => {
                    // The next portion begins once it is durable that the slot is ours.
                    self.position = Some(Position::Begun);
                    return Ok(Rows::new(&self.shape.schema, &[], &[])
                        .finish("")
                        .map_err(wrong)?);
                }
            },
        };
        let durable = match self.position {
            Some(Position::At(lsn)) => lsn,
            _ => Lsn(0),
        };
        let (most, live) = (self.most, self.live.as_ref());
        let (mut portion, end) = match session.phase {
            Phase::Snapshot(start) => match session.copy(&self.settings, most)? {
                Some(portion) => (portion, None),
                None => (session.rows.finish(&session.table).map_err(wrong)?, Some(start)),
            },
            Phase::Stream => session.follow(most, live, (durable, self.lasts))?,
        };
        self.session = Some(session);
        self.backoff = Backoff::default();
        portion.restarts = std::mem::take(&mut self.restarts);
        portion.continues = end.is_none();
        self.is_within = portion.continues;
        if let Some(end) = end {
            self.position = Some(Position::At(end));
        }
        Ok(portion)
    }

    /// Connects, and begins to read where the position says. `None` if it has to be recorded first that the slot is ours.
    fn open(&mut self) -> Result<Option<Session>> {
        // Its password may be another one now.
        self.settings = Settings::read(&revealed(&self.connector)?)?;
        let mut connection = Connection::open(&self.settings, true, self.live.as_ref())?;
        let settings = &self.settings;
        let mut upstream = Upstream { connection: &mut connection, settings };
        let table = upstream.table(&self.shape)?;
        let mut rows = Rows::new(&self.shape.schema, &table.columns, &self.shape.key);
        let phase = match self.position {
            Some(Position::At(lsn)) if self.lasts => {
                if upstream.slot_with(lsn)?.is_active {
                    return Err(Failure::Passing("the slot is in use".to_owned()));
                }
                upstream.follow(lsn)?;
                Phase::Stream
            }
            None if self.lasts => {
                return match upstream.slot()? {
                    Some(_) => Err(is_taken(settings).into()),
                    None => Ok(None),
                };
            }
            position => {
                match upstream.slot()? {
                    Some(slot) if slot.is_active => {
                        return Err(Failure::Passing("the slot is in use".to_owned()));
                    }
                    Some(_) if self.lasts => upstream.drop_slot()?,
                    Some(_) => return Err(is_taken(settings).into()),
                    None => {}
                }
                if position.is_some() && !self.lasts {
                    rows.truncate();
                }
                Phase::Snapshot(upstream.begin_snapshot((&table, &self.shape), !self.lasts)?)
            }
        };
        let (schema, name) = settings.table();
        let start = match (phase, self.position) {
            (Phase::Stream, Some(Position::At(lsn))) => lsn,
            _ => Lsn(0),
        };
        let now = Instant::now();
        Ok(Some(Session {
            connection,
            table: format!("{schema}.{name}"),
            rows,
            phase,
            relation: None,
            transaction: None,
            is_known: false,
            committed: start,
            sent: start,
            end: start,
            heard: now,
            asked: now,
            recorded: now,
        }))
    }
}

impl Session {
    /// Rows of the snapshot, or `None` once it has ended and the slot is followed: then the last of them are left.
    fn copy(&mut self, settings: &Settings, most: Limits) -> Result<Option<Portion>> {
        let Phase::Snapshot(start) = self.phase else { return Ok(None) };
        let what = format!("cannot read the table \"{}\"", self.table);
        while let Some(line) = self.connection.copied(&what)? {
            let line = std::str::from_utf8(&line).map_err(|error| {
                Failure::last(format!("{what}: a row is not in UTF-8: {error}"))
            })?;
            let fields: Vec<_> = fields(line).collect();
            let values: Vec<Value<'_>> = fields
                .iter()
                .map(|field| field.as_deref().map_or(Value::Null, Value::Text))
                .collect();
            self.rows.push(&values, false, start);
            if self.is_full(most) {
                return self.rows.finish(&self.table).map(Some).map_err(wrong);
            }
        }
        self.connection.query(&what, "COMMIT")?;
        Upstream { connection: &mut self.connection, settings }.follow(start)?;
        self.phase = Phase::Stream;
        (self.committed, self.sent, self.end) = (start, start, start.max(self.end));
        let now = Instant::now();
        (self.heard, self.asked, self.recorded) = (now, now, now);
        Ok(None)
    }

    /// Rows of transactions, and where the last of them ends, if it has. What comes before `durable` is told to the server.
    fn follow(
        &mut self,
        most: Limits,
        live: Option<&Live>,
        (durable, lasts): (Lsn, bool),
    ) -> Result<(Portion, Option<Lsn>)> {
        let mut durable = durable;
        loop {
            let is_whole = self.transaction.is_none();
            let is_enough = self.is_full(most) || is_whole && !self.connection.has_more();
            if is_enough && !self.rows.is_empty() {
                return self.portion();
            }
            self.tell(durable)?;
            let what = format!("the replication of \"{}\" ends", self.table);
            let Some(message) = self.connection.replicated(&what, PATIENCE)? else {
                check_live(live)?;
                if self.heard.elapsed() > SILENCE {
                    return Err(Failure::Passing("the server is silent".to_owned()));
                }
                continue;
            };
            self.heard = Instant::now();
            match pgoutput::read(&message)? {
                Replicated::Alive(sent, asks) => {
                    (self.sent, self.end) = (self.sent.max(sent), self.end.max(sent));
                    if asks {
                        self.connection.reply(&pgoutput::feedback(durable, false))?;
                    }
                    if is_whole && self.rows.is_empty() && self.sent > durable {
                        // A temporary slot ends with the connection: nobody comes back to it.
                        if !lasts {
                            durable = self.sent;
                        } else if self.recorded.elapsed() >= IDLE {
                            self.committed = self.sent;
                            return self.portion();
                        }
                    }
                }
                Replicated::Change(change, end) => {
                    self.end = self.end.max(end);
                    let before = self.take(change, durable)?;
                    if let Some(portion) = before {
                        return Ok((portion, None));
                    }
                }
            }
        }
    }

    /// The rows so far, and where their transaction ends, if it has.
    fn portion(&mut self) -> Result<(Portion, Option<Lsn>)> {
        let portion = self.rows.finish(&self.table).map_err(wrong)?;
        self.recorded = Instant::now();
        let end = self.transaction.is_none().then_some(self.committed);
        Ok((portion, end))
    }

    /// Takes a change in. Returns the rows before it, if it cannot be in one portion with them.
    fn take(&mut self, change: Change<'_>, durable: Lsn) -> Result<Option<Portion>> {
        let known = self.relation.as_ref().map(|(relation, _)| relation.id);
        let is_ours = |relation: u32| known == Some(relation) && !self.is_known;
        match change {
            Change::Begin(commit) => {
                self.transaction = Some(commit);
                self.is_known = commit < durable.max(self.committed);
            }
            Change::Commit(end) => {
                self.transaction = None;
                self.is_known = false;
                self.committed = self.committed.max(end);
                self.sent = self.sent.max(end);
            }
            Change::Relation(relation) => self.meet(relation)?,
            Change::Insert { relation, new } if is_ours(relation) => {
                let values = self.picked(&new);
                self.rows.push(&values, false, self.at());
            }
            Change::Update { relation, old, new } if is_ours(relation) => {
                return self.update(old, &new);
            }
            Change::Delete { relation, old } if is_ours(relation) => {
                let values = self.picked(&old.values);
                self.rows.push(&values, true, self.at());
            }
            Change::Truncate(relations) if relations.iter().any(|&one| is_ours(one)) => {
                self.rows.truncate();
            }
            _ => {}
        }
        Ok(None)
    }

    fn update(&mut self, old: Option<Old<'_>>, new: &[Value<'_>]) -> Result<Option<Portion>> {
        let (at, mut values) = (self.at(), self.picked(new));
        if let Some(old) = old {
            let before = self.picked(&old.values);
            if old.is_full {
                for (value, before) in values.iter_mut().zip(&before) {
                    if *value == Value::Unchanged {
                        *value = *before;
                    }
                }
            }
            let key = self.rows.key();
            if key.is_empty() || key.iter().any(|&column| before[column] != values[column]) {
                let is_whole = !values.contains(&Value::Unchanged);
                self.rows.push(&before, true, at);
                if !is_whole {
                    let message = "the key of a row has changed, and a large value of it has not: the server does not tell \
                                   that value, unless the table there has REPLICA IDENTITY FULL";
                    self.rows.refuse(place(&self.table, at), message.to_owned());
                    return Ok(None);
                }
            }
        }
        let before = match self.rows.is_apart(&values) {
            true => Some(self.rows.finish(&self.table).map_err(wrong)?),
            false => None,
        };
        self.rows.push(&values, false, at);
        Ok(before)
    }

    /// The table is, from now on, as a message says.
    fn meet(&mut self, relation: Relation) -> Result<()> {
        if format!("{}.{}", relation.schema, relation.name) != self.table {
            return Ok(());
        }
        let at = self.at();
        let mut columns = Vec::new();
        for name in self.rows.names() {
            let found = relation.columns.iter().position(|(other, _)| other == name);
            let Some(found) = found else {
                return Err(Failure::last(format!(
                    "the table \"{}\" has no column \"{name}\" any more, from {at} on; drop the table here and create it again \
                     without it",
                    self.table
                )));
            };
            columns.push(found);
        }
        if let Some((before, places)) = &self.relation {
            let changed = places.iter().zip(&columns).filter(|(before_at, at)| {
                before.columns[**before_at].1 != relation.columns[**at].1
            });
            let changed: Vec<String> =
                changed.map(|(_, at)| relation.columns[*at].0.clone()).collect();
            for name in changed {
                let message = format!(
                    "the column \"{name}\" is of another type there from here on; values that are none of its type here are refused"
                );
                self.rows.refuse(place(&self.table, at), message);
            }
        }
        self.relation = Some((relation, columns));
        Ok(())
    }

    /// The values of the columns that are read.
    fn picked<'a>(&self, values: &[Value<'a>]) -> Vec<Value<'a>> {
        let columns = self.relation.iter().flat_map(|(_, columns)| columns);
        columns.map(|&column| values.get(column).copied().unwrap_or(Value::Null)).collect()
    }

    /// Where the transaction is that is being read.
    fn at(&self) -> Lsn {
        self.transaction.unwrap_or(self.committed)
    }

    fn is_full(&self, most: Limits) -> bool {
        let (rows, bytes) = self.rows.size();
        rows >= most.rows || bytes >= most.bytes
    }

    /// Tells the server how far its log is durable here, from time to time, and asks how far it is.
    fn tell(&mut self, durable: Lsn) -> Result<()> {
        if self.asked.elapsed() < ASK {
            return Ok(());
        }
        self.asked = Instant::now();
        self.connection.reply(&pgoutput::feedback(durable, true))
    }
}

impl SourceReader for Input {
    fn next(&mut self) -> alluvium::Result<Option<Portion>> {
        loop {
            match self.step() {
                Ok(portion) => return Ok(Some(portion)),
                Err(Failure::Final(error)) => return Err(error),
                Err(Failure::Passing(reason)) => {
                    if self.backoff.is_over(self.live.as_ref()) {
                        let place = self.settings.place();
                        return Err(Error::source(format!("{place} cannot be read: {reason}")));
                    }
                    self.session = None;
                    self.restarts |= std::mem::take(&mut self.is_within);
                }
            }
            self.backoff.wait(self.live.as_ref())?;
        }
    }

    fn position(&self) -> Option<SourcePosition> {
        let position = self.position.as_ref()?;
        Some(SourcePosition::new(position.bytes(), position.to_string()))
    }

    fn replays(&self) -> bool {
        false
    }

    fn unread_bytes(&self) -> Option<u64> {
        let (session, Some(Position::At(at))) = (self.session.as_ref()?, self.position) else {
            return None;
        };
        Some(session.end.0.saturating_sub(at.0))
    }
}

fn wrong(error: impl Into<alluvium::Error>) -> Failure {
    Failure::Final(error.into())
}
