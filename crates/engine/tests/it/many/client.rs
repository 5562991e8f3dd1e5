//! A client, who works at random.

use std::collections::HashMap;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use alluvium::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use alluvium::{Engine, Error, Interrupt, Outcome, Prepared, Result, Session, Transaction, Value};

use super::follower;
use super::history::{Commit, History, Read, Step};
use super::model::{GROUPS, KEYS, Relation, STEADY, TOO_HOT, VARIANT, VARIANTS, Write};
use super::query::{Answer, Query};
use super::watch::{NOTHING_MORE, Watch, is_of_definitions, limited};
use crate::keys::Random;
use crate::support::lines;

/// How many names there are for views that come and go.
pub const NAMES: u64 = 4;

/// Indexes that come and go.
const INDEXES: [(&str, &str); 4] =
    [("x0", "items (k)"), ("x1", "accounts (g)"), ("x2", "joined (g, k)"), ("x3", "sums (n)")];

/// A read that is not SQL.
type Lookup = Box<dyn FnOnce(&Engine) -> Result<Answer>>;

/// One client and what it did.
pub struct Client {
    pub engine: Engine,
    pub random: Random,
    pub history: History,
    number: usize,
    watch: Arc<Watch>,
    session: Session,
    interrupt: Interrupt,
    prepared: HashMap<String, Prepared>,
    /// Numbers its transactions.
    transactions: u64,
}

impl Client {
    pub fn new(engine: Engine, number: usize, random: Random, watch: Arc<Watch>) -> Self {
        let session = engine.session();
        let interrupt = watch.interrupt(number);
        Self {
            engine,
            random,
            history: History::default(),
            number,
            watch,
            session,
            interrupt,
            prepared: HashMap::new(),
            transactions: 0,
        }
    }

    /// Works until the time is over.
    pub fn work(&mut self) {
        while !self.watch.is_over() {
            match self.number {
                0 => self.heat(),
                1 if self.random.below(4) == 0 => self.checkpoint(),
                _ => self.act(),
            }
        }
        self.watch.does(self.number, NOTHING_MORE);
    }

    /// Its history. It is no handle of the engine any more.
    pub fn end(self) -> History {
        self.history
    }

    fn act(&mut self) {
        match self.random.below(100) {
            0..30 => self.write(),
            30..36 => self.transact(),
            36..84 => self.read(),
            84..90 => follower::follow(self),
            90..96 => self.define(),
            _ => self.describe(),
        }
    }

    /// Tells of what it does.
    pub fn does(&self, what: impl Into<String>) {
        self.watch.does(self.number, what);
    }

    /// The last epoch that is committed.
    pub fn committed(&self) -> u64 {
        self.engine.progress().committed
    }

    /// Notes a transaction that was committed.
    fn has_committed(&mut self, commit: Commit) {
        self.watch.acknowledge(commit.epoch);
        self.history.commits.push(commit);
    }

    /// Notes what cannot be.
    pub fn problem(&self, problem: String) {
        self.watch.fail(problem);
    }

    /// Notes an error that cannot be.
    pub fn fail(&self, what: &str, error: &Error) {
        self.watch.fail(format!("{what}: {error:?}"));
    }

    /// Runs a call of the session, sometimes so that it may end early. Returns whether it was, too.
    fn limited<R>(&mut self, call: impl FnOnce(&mut Session) -> Result<R>) -> (Result<R>, bool) {
        limited(&mut self.random, &mut self.session, &self.interrupt, call)
    }

    /// Whether a call was given up, which is counted.
    fn is_given_up(&mut self, error: &Error, may_be: bool) -> bool {
        let is = may_be && matches!(error, Error::Interrupted | Error::TimedOut);
        if is {
            self.history.count(&format!("{error:?}"));
        }
        is
    }

    fn key(&mut self) -> i64 {
        self.random.below(KEYS as u64) as i64
    }

    fn group(&mut self) -> i64 {
        self.random.below(GROUPS as u64) as i64
    }

    /// A value that hardly any other row has.
    fn value(&mut self) -> i64 {
        self.random.below(1_000_000) as i64 / if self.random.below(2) == 0 { 1 } else { 1_000 }
    }

    /// Keys without duplicates.
    fn keys(&mut self) -> Vec<i64> {
        let mut keys: Vec<i64> = (0..=self.random.below(5)).map(|_| self.key()).collect();
        keys.sort();
        keys.dedup();
        keys
    }

    fn some_write(&mut self) -> Write {
        match self.random.below(16) {
            0..6 => {
                let keys = self.keys();
                Write::Put(keys.into_iter().map(|k| (k, self.group(), self.value())).collect())
            }
            6..8 => Write::Remove(self.keys()),
            8..10 => Write::Raise(self.group(), self.value() % 100 + 1),
            10..13 => {
                let count = self.random.below(4) + 1;
                Write::Add((0..count).map(|_| (self.key(), self.value())).collect())
            }
            13..15 => Write::Clear(self.key()),
            _ => Write::Copy(self.group()),
        }
    }

    /// The key of a transaction of its own.
    fn transaction_key(&mut self) -> String {
        self.transactions += 1;
        format!("{}-{}", self.number, self.transactions)
    }

    /// One change in a transaction of its own.
    fn write(&mut self) {
        let write = self.some_write();
        match self.random.below(4) {
            0 => self.write_batches(write),
            _ => self.write_sql(write),
        }
    }

    fn write_sql(&mut self, write: Write) {
        let sql = write.sql();
        self.does(&sql);
        let key = self.transaction_key();
        let has_key = self.random.below(2) == 0;
        if has_key {
            self.session.set_key(&key);
        }
        let after = self.committed();
        let (done, may_end) = self.limited(|session| session.execute(&sql));
        match done.as_deref() {
            Ok([Outcome::Changed { rows, epoch: Some(epoch), .. }]) => {
                let steps = vec![Step::Write(write, Some(*rows))];
                self.has_committed(Commit { after, epoch: *epoch, steps });
                self.history.count("commits");
            }
            Err(error) if self.is_given_up(error, may_end) => {
                // The outcome of a transaction without a key would be unknown.
                if has_key {
                    self.expect_nothing(&key, &sql);
                }
                self.session = self.engine.session();
            }
            Err(error) => self.fail(&sql, error),
            Ok(other) => self.watch.fail(format!("{sql}: {other:?}")),
        }
    }

    /// A transaction that was given up has left nothing.
    fn expect_nothing(&mut self, key: &str, what: &str) {
        match self.engine.committed(key) {
            Ok(None) => {}
            Ok(Some(epoch)) => {
                self.watch.fail(format!("{what} was given up, and committed as epoch {epoch}"));
            }
            Err(error) => self.fail("Engine::committed", &error),
        }
    }

    fn write_batches(&mut self, write: Write) {
        self.does(format!("batches of {write:?}"));
        let after = self.committed();
        let written = self.engine.begin().and_then(|mut transaction| {
            if !stage(&mut transaction, &write)? {
                return Ok(None);
            }
            match self.random.below(8) {
                0 => Ok(None),
                1..4 => transaction.submit().map(Some),
                _ => transaction.commit().map(Some),
            }
        });
        match written {
            Ok(Some(epoch)) => {
                let steps = vec![Step::Write(write, None)];
                self.has_committed(Commit { after, epoch, steps });
                self.history.count("commits of batches");
            }
            Ok(None) => {}
            Err(error) => self.fail("a transaction", &error),
        }
    }

    /// Several changes and reads in one transaction.
    fn transact(&mut self) {
        let key = self.transaction_key();
        self.session.set_key(&key);
        let after = self.committed();
        self.does("BEGIN");
        let mut steps = Vec::new();
        let (mut done, mut may_end) = self.limited(|session| session.execute("BEGIN").map(drop));
        for _ in 0..self.random.below(5) {
            if done.is_err() {
                break;
            }
            let (is_write, query) = (self.random.below(3) > 0, self.query_of_tables());
            if is_write {
                let write = self.some_write();
                let sql = write.sql();
                self.does(format!("{sql} inside of a transaction"));
                let executed = self.limited(|session| session.execute(&sql));
                may_end |= executed.1;
                done = executed.0.map(|outcomes| {
                    if let [Outcome::Changed { rows, epoch: None, .. }] = outcomes[..] {
                        steps.push(Step::Write(write, Some(rows)));
                    }
                });
            } else {
                let sql = query.literal();
                self.does(format!("{sql} inside of a transaction"));
                let executed = self.limited(|session| answer(session.execute(&sql)));
                may_end |= executed.1;
                done = executed.0.map(|answer| steps.push(Step::Read(query, answer)));
            }
        }
        let commits = done.is_ok() && self.random.below(6) > 0;
        if commits {
            self.does("COMMIT");
            let committed = self.limited(|session| session.execute("COMMIT").map(drop));
            (done, may_end) = (committed.0, committed.1 || may_end);
        } else if self.session.in_transaction() {
            self.does("ROLLBACK");
            let rolled_back = self.session.execute("ROLLBACK");
            rolled_back.map(drop).unwrap_or_else(|error| self.fail("ROLLBACK", &error));
        }
        match done {
            Ok(()) if commits => match self.engine.committed(&key) {
                Ok(Some(epoch)) => {
                    self.has_committed(Commit { after, epoch, steps });
                    self.history.count("transactions");
                }
                Ok(None) => self.watch.fail("a transaction has no epoch".to_owned()),
                Err(error) => self.fail("Engine::committed", &error),
            },
            Err(Error::Conflict { kind, .. }) => {
                self.history.count(&format!("{kind:?}"));
                self.expect_nothing(&key, "a transaction");
                self.session = self.engine.session();
            }
            Err(error) if !self.is_given_up(&error, may_end) => self.fail("a transaction", &error),
            _ => {
                self.expect_nothing(&key, "a transaction");
                self.session = self.engine.session();
            }
        }
    }

    /// A query of tables, or of one view.
    fn query_of_tables(&mut self) -> Query {
        match self.random.below(5) {
            0 => Query::Account(self.key()),
            1 => Query::Items(self.key()),
            2 => Query::Joined(self.group()),
            3 => Query::Sum(self.group()),
            _ => {
                let low = self.key();
                Query::Between(low, low + self.random.below(6) as i64)
            }
        }
    }

    fn query(&mut self) -> Query {
        match self.random.below(20) {
            0..12 => self.query_of_tables(),
            12..14 => Query::Beside,
            14 => {
                let name = self.random.below(NAMES) as usize;
                match self.random.below(3) {
                    0 => Query::Named(name),
                    _ => Query::OfNamed(name, self.group()),
                }
            }
            15 => Query::All([Relation::Bad, Relation::Worse][self.random.below(2) as usize]),
            _ => Query::All(STEADY[self.random.below(STEADY.len() as u64) as usize]),
        }
    }

    /// A read outside of transactions.
    fn read(&mut self) {
        let query = self.query();
        let after = self.watch.acknowledged();
        let way = ["literal", "parameters", "prepared", "by key", "pulled", "stale"]
            [self.random.below(6) as usize];
        let after = if way == "stale" { self.engine.progress().complete } else { after };
        self.does(format!("{query:?}, {way}"));
        let values: Vec<Value> = query.values().into_iter().map(Value::from).collect();
        let (answered, may_end) = match way {
            "literal" => self.limited(|session| answer(session.execute(&query.literal()))),
            "parameters" => self.limited(|session| {
                answer(session.execute_with(&query.with_parameters(), &values).map(|it| vec![it]))
            }),
            "prepared" => self.read_prepared(query, &values),
            "stale" => {
                let mut session = self.engine.session();
                session.set_reads_stale(true);
                self.limited(|_| answer(session.execute(&query.literal())))
            }
            "by key" => match self.by_key(query) {
                Some(read) => {
                    let engine = self.engine.clone();
                    self.limited(|_| read(&engine))
                }
                None => return,
            },
            _ => {
                let (engine, pause) = (self.engine.clone(), self.random.below(3));
                self.limited(|_| {
                    let rows = engine.query_rows(&query.literal(), &[])?;
                    std::thread::sleep(Duration::from_millis(pause));
                    Ok(Answer::of(&lines(&rows.collect::<Result<Vec<_>>>()?)))
                })
            }
        };
        let before = self.committed();
        match answered {
            Ok(answer) => {
                self.history.reads.push(Read { query, way, after, before, answer });
                self.history.count(way);
            }
            Err(error) if self.is_given_up(&error, may_end) => {}
            Err(error) => self.check_absent(query, &error),
        }
    }

    /// A view that comes and goes may not be there, and one that fails may have failed.
    fn check_absent(&mut self, query: Query, error: &Error) {
        let what = format!("{query:?}");
        match (query, error) {
            (Query::All(Relation::Bad | Relation::Worse), Error::Failed { .. }) => {
                self.history.count("Failed");
            }
            (
                Query::Named(_) | Query::OfNamed(..) | Query::All(Relation::Bad | Relation::Worse),
                Error::Sql { message, .. },
            ) => {
                self.excuse(message);
            }
            _ => self.fail(&what, error),
        }
    }

    /// Counts the message of an error that comes from a definition by another client.
    pub fn excuse(&mut self, message: &str) {
        let message: String = message.chars().filter(|char| !char.is_ascii_digit()).collect();
        match is_of_definitions(&message) {
            true => self.history.count(&message),
            false => self.watch.fail(message),
        }
    }

    fn read_prepared(&mut self, query: Query, values: &[Value]) -> (Result<Answer>, bool) {
        let text = query.with_parameters();
        let prepared = match self.prepared.remove(&text) {
            Some(prepared) => prepared,
            None => match self.session.prepare(&text) {
                Ok(prepared) => prepared,
                Err(error) => return (Err(error), false),
            },
        };
        let done = self.limited(|session| {
            answer(session.execute_prepared(&prepared, values).map(|it| vec![it]))
        });
        if self.random.below(20) > 0 {
            self.prepared.insert(text, prepared);
        }
        done
    }

    /// How a query is answered by key, if it can be.
    fn by_key(&mut self, query: Query) -> Option<Lookup> {
        match query {
            Query::Account(key) | Query::Sum(key) => Some(Box::new(move |engine| {
                let name = if matches!(query, Query::Sum(_)) { "sums" } else { "accounts" };
                Ok(Answer::of(&lines(&[engine.view(name)?.get(&[key.into()])?])))
            })),
            Query::Between(low, high) => Some(Box::new(move |engine| {
                let (low, high) = ([low.into()], [high.into()]);
                let rows = engine
                    .view("accounts")?
                    .range(Bound::Included(&low), Bound::Included(&high))?;
                Ok(Answer::of(&lines(&rows.collect::<Result<Vec<_>>>()?)))
            })),
            Query::All(relation @ (Relation::Sums | Relation::Joined | Relation::Worse)) => {
                Some(Box::new(move |engine| {
                    let rows =
                        engine.view(relation.name())?.range(Bound::Unbounded, Bound::Unbounded)?;
                    Ok(Answer::of(&lines(&rows.collect::<Result<Vec<_>>>()?)))
                }))
            }
            _ => None,
        }
    }

    /// Makes or drops a view or an index that others may use.
    fn define(&mut self) {
        let name = format!("c{}", self.random.below(NAMES));
        let variant = VARIANT[self.random.below(VARIANTS as u64) as usize];
        let (index, on) = INDEXES[self.random.below(INDEXES.len() as u64) as usize];
        let wait = if self.random.below(2) == 0 { " WITH ('wait' = 'false')" } else { "" };
        let kind = if self.random.below(4) == 0 { "VIEW" } else { "MATERIALIZED VIEW" };
        let sql = match self.random.below(8) {
            0 | 1 => format!("CREATE {kind} {name}{wait} AS {variant}"),
            2 | 3 => format!("CREATE OR REPLACE {kind} {name}{wait} AS {variant}"),
            4 | 5 => format!("DROP VIEW {name}"),
            6 => format!("CREATE INDEX {index} ON {on}"),
            _ => format!("DROP INDEX {index}"),
        };
        self.definition(&sql);
    }

    /// Executes a definition, which others may have made or dropped before.
    fn definition(&mut self, sql: &str) {
        self.does(sql);
        let (done, may_end) = self.limited(|session| session.execute(sql).map(drop));
        match done {
            Ok(()) => {
                let words: Vec<&str> = sql.split(' ').take(2).collect();
                self.history.count(&words.join(" "));
            }
            Err(error) if self.is_given_up(&error, may_end) => {}
            Err(Error::Sql { message, .. } | Error::Data { message, .. }) => self.excuse(&message),
            Err(error) => self.fail(sql, &error),
        }
    }

    /// Asks what something means.
    fn describe(&mut self) {
        let query = self.query();
        let what = self.random.below(5);
        let sql = match what {
            0 => format!("EXPLAIN {}", query.literal()),
            1 => format!("DESCRIBE {}", ["accounts", "sums", "c1"][self.random.below(3) as usize]),
            2 => format!(
                "EXPLAIN VIEW {}",
                ["joined", "totals", "c2"][self.random.below(3) as usize]
            ),
            3 => "SELECT COUNT(*) FROM alluvium.tables".to_owned(),
            _ => query.with_parameters(),
        };
        self.does(format!("describe {sql}"));
        let (done, may_end) = self.limited(|session| match what {
            4 => session.describe(&sql).map(drop),
            _ => session.execute(&sql).map(drop),
        });
        match done {
            Ok(()) => self.history.count("descriptions"),
            Err(error) if self.is_given_up(&error, may_end) => {}
            Err(Error::Failed { .. }) => self.history.count("Failed"),
            Err(Error::Sql { message, .. }) => self.excuse(&message),
            Err(error) => self.fail(&sql, &error),
        }
    }

    fn checkpoint(&mut self) {
        self.does("a checkpoint");
        match self.engine.checkpoint() {
            Ok(()) => self.history.count("checkpoints"),
            Err(error) => self.fail("a checkpoint", &error),
        }
    }

    /// Makes `bad` fail, and then fills it again or recreates it.
    fn heat(&mut self) {
        let count = self.random.below(3) + 1;
        self.write_sql(Write::Heat(1, count));
        for _ in 0..self.random.below(20) {
            self.act();
        }
        self.write_sql(Write::Cool(1));
        self.write_sql(Write::Heat(7, TOO_HOT));
        self.does("wait for failures");
        for relation in [Relation::Bad, Relation::Worse] {
            let failed = self.session.execute(&Query::All(relation).literal()).map(drop);
            let at = self.committed();
            match failed {
                Err(Error::Failed { .. }) => self.history.failures.push((relation, at)),
                Err(Error::Sql { message, .. }) => self.excuse(&message),
                // A timeout may have kept the rows out.
                Ok(()) => self.history.count("it had not failed"),
                Err(error) => self.fail("a view that fails", &error),
            }
        }
        for _ in 0..self.random.below(20) {
            self.act();
        }
        self.write_sql(Write::Cool(7));
        let begun = self.committed();
        match self.random.below(3) {
            0 => {
                self.definition("DROP VIEW bad CASCADE");
                self.definition(
                    "CREATE MATERIALIZED VIEW bad AS SELECT a.k FROM hot a JOIN hot b ON a.k = b.k
                     JOIN hot c ON b.k = c.k JOIN hot d ON c.k = d.k JOIN hot e ON d.k = e.k",
                );
                self.definition(
                    "CREATE MATERIALIZED VIEW worse AS SELECT k, COUNT(*) AS n FROM bad GROUP BY k",
                );
            }
            1 => {
                self.definition("ALTER VIEW bad RESUME");
                self.definition("ALTER VIEW worse RESUME");
            }
            _ => {
                self.definition("ALTER VIEW bad RESUME");
            }
        }
        let ended = self.committed();
        for relation in [Relation::Bad, Relation::Worse] {
            self.history.revivals.push((relation, begun, ended));
        }
    }

    /// Reads all that does not fail, as of the last epoch.
    pub fn read_all(&mut self) {
        let steady = STEADY.map(Query::All);
        let named = (0..NAMES as usize).map(Query::Named);
        for query in steady.into_iter().chain(named) {
            let (after, before) = (self.watch.acknowledged(), self.committed());
            match answer(self.session.execute(&query.literal())) {
                Ok(answer) => {
                    let way = "at last";
                    self.history.reads.push(Read { query, way, after, before, answer });
                }
                Err(error) => self.check_absent(query, &error),
            }
        }
    }
}

/// The rows of the outcome of a query.
fn answer(outcomes: Result<Vec<Outcome>>) -> Result<Answer> {
    match outcomes?.pop() {
        Some(Outcome::Rows(rows)) => Ok(Answer::of(&lines(&rows.collect::<Result<Vec<_>>>()?))),
        other => panic!("a query has rows, and not {other:?}"),
    }
}

/// Stages a change without SQL, if it can be.
fn stage(transaction: &mut Transaction, write: &Write) -> Result<bool> {
    match write {
        Write::Put(rows) => transaction.upsert("accounts", accounts(rows))?,
        Write::Remove(keys) => {
            let rows: Vec<_> = keys.iter().map(|key| (*key, 0, 0)).collect();
            transaction.delete("accounts", accounts(&rows))?;
        }
        Write::Add(rows) => {
            let columns = [("k", column(rows, |row| row.0)), ("v", column(rows, |row| row.1))];
            transaction.insert("items", RecordBatch::try_from_iter(columns).expect("columns"))?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn accounts(rows: &[(i64, i64, i64)]) -> RecordBatch {
    let columns = [
        ("k", column(rows, |row| row.0)),
        ("g", column(rows, |row| row.1)),
        ("v", column(rows, |row| row.2)),
    ];
    RecordBatch::try_from_iter(columns).expect("columns of one length")
}

fn column<R>(rows: &[R], value: impl Fn(&R) -> i64) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(rows.iter().map(value)))
}
