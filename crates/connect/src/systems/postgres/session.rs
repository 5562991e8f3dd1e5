//! A connection to the server of a table, and what is read from it.

use std::time::{Duration, Instant};

use alluvium::{Live, Portion};

use super::connection::Connection;
use super::failure::{Failure, Result};
use super::pgoutput::{self, Change, Old, Relation, Replicated, Value};
use super::position::Lsn;
use super::rows::{Rows, place};
use super::settings::Settings;
use super::spelling::fields;
use super::upstream::Upstream;
use crate::systems::waiting::{PATIENCE, check_live};

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

/// A connection, and what is read from it.
pub struct Session {
    connection: Connection,
    /// The number of the table there, which stays when it is renamed.
    id: u32,
    table: String,
    rows: Rows,
    /// The rows that come next.
    pub phase: Phase,
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
    /// Before that, the server was not asked for anything.
    began: Instant,
    asked: Instant,
    recorded: Instant,
}

/// Which rows come next.
#[derive(Clone, Copy)]
pub enum Phase {
    /// The rows of the table as of a place in the log.
    Snapshot(Lsn),
    /// The transactions after one.
    Stream(Lsn),
}

impl Session {
    /// Reads, over a connection on which that has begun, the rows of a table of this number, schema and name.
    pub fn new(
        connection: Connection,
        (id, (schema, name)): (u32, (&str, &str)),
        rows: Rows,
        phase: Phase,
    ) -> Self {
        let start = match phase {
            Phase::Snapshot(start) | Phase::Stream(start) => start,
        };
        let now = Instant::now();
        Self {
            connection,
            id,
            table: format!("{schema}.{name}"),
            rows,
            phase,
            relation: None,
            transaction: None,
            is_known: false,
            committed: start,
            sent: start,
            end: start,
            began: now,
            asked: now,
            recorded: now,
        }
    }

    /// The end of the server's log, as far as it is known.
    pub fn end(&self) -> Lsn {
        self.end
    }

    /// The rows so far.
    pub fn finish(&mut self) -> Result<Portion> {
        self.rows.finish(&self.table).map_err(|error| Failure::Final(error.into()))
    }

    /// Rows of the snapshot, or `None` once it has ended and the slot is followed: then the last of them are left.
    pub fn copy(&mut self, settings: &Settings, most: Limits) -> Result<Option<Portion>> {
        let Phase::Snapshot(start) = self.phase else { return Ok(None) };
        let what = format!("cannot read the table \"{}\"", self.table);
        let width = self.rows.names().count();
        while let Some(line) = self.connection.copied(&what)? {
            let line = std::str::from_utf8(&line).map_err(|error| {
                Failure::last(format!("{what}: a row is not in UTF-8: {error}"))
            })?;
            let fields: Vec<_> = fields(line).collect();
            let values: Vec<Value<'_>> = fields
                .iter()
                .map(|field| field.as_deref().map_or(Value::Null, Value::Text))
                .collect();
            // A row of no columns is an empty line.
            if values.len() != width.max(1) {
                return Err(Failure::last(format!(
                    "{what}: a row of the snapshot has {} values, and {width} columns are read",
                    values.len()
                )));
            }
            self.rows.push(&values, false, start);
            if self.is_full(most) {
                return self.finish().map(Some);
            }
        }
        self.connection.query(&what, "COMMIT")?;
        Upstream { connection: &mut self.connection, settings }.follow(start)?;
        self.phase = Phase::Stream(start);
        let now = Instant::now();
        (self.began, self.asked, self.recorded) = (now, now, now);
        Ok(None)
    }

    /// Rows of transactions, and where the last of them ends, if it has. What comes before `durable` is told to the server.
    pub fn follow(
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
            // The tables of others may change all the time.
            check_live(live)?;
            self.tell(durable)?;
            let what = format!("the replication of \"{}\" ends", self.table);
            let Some(message) = self.connection.replicated(&what, PATIENCE)? else {
                if self.connection.heard().max(self.began).elapsed() > SILENCE {
                    return Err(Failure::Passing("the server is silent".to_owned()));
                }
                continue;
            };
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
        let portion = self.finish()?;
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
            true => Some(self.finish()?),
            false => None,
        };
        self.rows.push(&values, false, at);
        Ok(before)
    }

    /// The table is, from now on, as a message says.
    fn meet(&mut self, relation: Relation) -> Result<()> {
        let at = self.at();
        let name = format!("{}.{}", relation.schema, relation.name);
        match (relation.id == self.id, name == self.table) {
            (true, true) => {}
            (false, false) => return Ok(()),
            (true, false) => {
                return Err(Failure::last(format!(
                    "the table \"{}\" is called \"{name}\" from {at} on; drop the table here and create it again with the new name",
                    self.table
                )));
            }
            (false, true) => {
                return Err(Failure::last(format!(
                    "as of {at}, another table is called \"{}\"; drop the table here and create it again, which begins with a new snapshot",
                    self.table
                )));
            }
        }
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
