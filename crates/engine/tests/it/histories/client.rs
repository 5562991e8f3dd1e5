//! A client, who carries out plans and notes their outcomes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use alluvium::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use alluvium::{Engine, Error, Interrupt, Outcome, Result, Session, Transaction};

use super::attempt::{Attempt, Failure, Said};
use super::model::Keyed;
use super::plan::{Form, Number, Plan, Planner, READER, Step};
use super::query::{ALL, answer};
use super::write::Write;
use crate::keys::Random;
use crate::many::watch::{NOTHING_MORE, Watch, is_of_definitions, limited};
use crate::support::lines;

/// The shared state of clients.
pub struct Shared {
    pub planner: Planner,
    /// How many plans are left for all of them together.
    pub left: AtomicU64,
    /// The last epoch that any of them knows to be committed.
    pub acknowledged: AtomicU64,
    pub watch: Watch,
    /// Gets an attempt when it is about to commit, and when it has ended.
    pub log: Box<dyn Fn(&Attempt) + Send + Sync>,
}

impl Shared {
    /// Takes one of the plans that are left.
    fn takes_one(&self) -> bool {
        let left =
            self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        left.is_ok() && !self.watch.is_over()
    }
}

/// One client and what it did.
pub struct Client {
    engine: Engine,
    shared: Arc<Shared>,
    /// Its number among those of its time, which are watched.
    watched: usize,
    session: Session,
    interrupt: Interrupt,
    random: Random,
    pub attempts: Vec<Attempt>,
    /// How often what happened.
    pub counts: BTreeMap<String, u64>,
}

impl Client {
    pub fn new(engine: Engine, shared: Arc<Shared>, watched: usize) -> Self {
        let (session, interrupt) = (engine.session(), shared.watch.interrupt(watched));
        let random = Random(shared.planner.seed ^ watched as u64);
        let (attempts, counts) = Default::default();
        Self { engine, shared, watched, session, interrupt, random, attempts, counts }
    }

    /// Carries out plans until none is left.
    pub fn work(&mut self, client: u64) {
        for number in 0.. {
            if !self.shared.takes_one() {
                break;
            }
            self.carry_out(Number { client, number });
        }
        self.does(NOTHING_MORE);
    }

    /// Reads all that is left at the end.
    pub fn read_all(&mut self) {
        let committed = self.engine.progress().committed;
        self.shared.acknowledged.fetch_max(committed, Ordering::SeqCst);
        for number in 0..ALL.len() as u64 {
            self.carry_out(Number { client: READER, number });
        }
    }

    fn does(&self, what: impl Into<String>) {
        self.shared.watch.does(self.watched, what);
    }

    /// Counts something that happened.
    fn count(&mut self, what: &str) {
        match self.counts.get_mut(what) {
            Some(count) => *count += 1,
            None => drop(self.counts.insert(what.to_owned(), 1)),
        }
    }

    fn carry_out(&mut self, number: Number) {
        let plan = self.shared.planner.plan(number);
        let after = self.shared.acknowledged.load(Ordering::SeqCst);
        let mut attempt = Attempt { number, after, before: 0, epoch: None, said: Vec::new() };
        let key = plan.has_key.then(|| number.key());
        let done = match &plan.form {
            Form::Define(sql) => self.define(sql, &attempt),
            Form::Single => self.single(&plan, key.as_deref(), &mut attempt),
            Form::Block(modes) => self.block(&plan, modes, key.as_deref(), &mut attempt),
            Form::Library { waits } => self.library(&plan, *waits, key.as_deref(), &mut attempt),
        };
        if let Some(epoch) = attempt.epoch {
            self.shared.acknowledged.fetch_max(epoch, Ordering::SeqCst);
        }
        attempt.before = self.engine.progress().committed;
        match done {
            Ok(what) => self.count(what),
            Err(failure) => {
                self.count(&format!("{failure:?} at COMMIT"));
                self.expect_nothing(key.as_deref(), &plan);
            }
        }
        // A key that it has not used must not be the next one's, nor a timeout that a rollback has set again.
        if plan.has_key || attempt.epoch.is_none() {
            self.session = self.engine.session();
        }
        (self.shared.log)(&attempt);
        self.attempts.push(attempt);
    }

    /// A transaction that failed has left nothing.
    fn expect_nothing(&mut self, key: Option<&str>, plan: &Plan) {
        match key.map(|key| self.engine.committed(key)) {
            None | Some(Ok(None)) => {}
            other => self.shared.watch.fail(format!("{plan:?} failed, and is {other:?}")),
        }
    }

    /// Why something failed. Impossible failures are noted.
    fn failure(&mut self, error: &Error, may_end: bool, what: &str) -> Failure {
        let kind = format!("{error:?}");
        let kind = kind.split(|char: char| !char.is_alphanumeric()).next().unwrap_or_default();
        self.count(kind);
        match error {
            Error::Interrupted | Error::TimedOut if may_end => Failure::GivenUp,
            Error::Data { .. } => Failure::Refused,
            Error::Sql { message, .. } if is_of_definitions(message) => Failure::Absent,
            Error::Interrupted
            | Error::TimedOut
            | Error::Sql { .. }
            | Error::Source { .. }
            | Error::Denied { .. }
            | Error::Failed { .. }
            | Error::Poisoned { .. }
            | Error::State { .. }
            | Error::Start { .. } => {
                self.shared.watch.fail(format!("{what}: {error:?}"));
                Failure::GivenUp
            }
            // Other transactions were in the way.
            _ => Failure::Conflict,
        }
    }

    /// Runs a call of the session, which may end early.
    fn call<R>(
        &mut self,
        what: &str,
        call: impl FnOnce(&mut Session) -> Result<R>,
    ) -> std::result::Result<R, Failure> {
        self.does(what);
        let (done, may_end) = limited(&mut self.random, &mut self.session, &self.interrupt, call);
        done.map_err(|error| self.failure(&error, may_end, what))
    }

    /// The answer of a statement of a plan.
    fn say(&mut self, plan: &Plan, step: usize, said: &[Said]) -> Said {
        let mut sql = plan.sql(step, said);
        if let Step::Save | Step::Return = &plan.steps[step] {
            if let Err(error) = self.session.execute(&sql) {
                self.shared.watch.fail(format!("{sql}: {error:?}"));
            }
            return Said::Changed(0);
        }
        if let Step::Write(write, true) = &plan.steps[step] {
            sql += write.returning();
        }
        let outcome = self.call(&sql, |session| match session.execute(&sql)?.pop() {
            Some(Outcome::Changed { rows, .. }) => Ok(Said::Changed(rows)),
            Some(Outcome::Rows(rows)) => {
                Ok(Said::Rows(answer(lines(&rows.collect::<Result<Vec<_>>>()?))))
            }
            other => panic!("{sql} says {other:?}"),
        });
        outcome.unwrap_or_else(Said::Failed)
    }

    /// A transaction of one statement.
    fn single(
        &mut self,
        plan: &Plan,
        key: Option<&str>,
        attempt: &mut Attempt,
    ) -> std::result::Result<&'static str, Failure> {
        let reads = matches!(plan.steps[0], Step::Read(_));
        if let Some(key) = key.filter(|_| !reads) {
            self.session.set_key(key);
        }
        (self.shared.log)(attempt);
        let said = self.say(plan, 0, &[]);
        attempt.said.push(said);
        match (reads, &attempt.said[0]) {
            (_, Said::Failed(Failure::GivenUp | Failure::Conflict)) => {
                self.expect_nothing(key.filter(|_| !reads), plan);
            }
            (false, Said::Changed(_) | Said::Rows(_)) => attempt.epoch = self.session.committed(),
            _ => {}
        }
        Ok(if reads { "reads" } else { "statements" })
    }

    /// A transaction of several statements.
    fn block(
        &mut self,
        plan: &Plan,
        modes: &str,
        key: Option<&str>,
        attempt: &mut Attempt,
    ) -> std::result::Result<&'static str, Failure> {
        if let Some(key) = key {
            self.session.set_key(key);
        }
        let begin = format!("BEGIN{modes}");
        self.call(&begin, |session| session.execute(&begin).map(drop))?;
        let mut goes_on = true;
        for step in 0..plan.steps.len() {
            thread::sleep(Duration::from_micros(plan.pause));
            let said = self.say(plan, step, &attempt.said);
            goes_on = match said {
                Said::Failed(Failure::Conflict) => false,
                Said::Failed(_) => plan.goes_on && self.session.in_transaction(),
                _ => true,
            };
            attempt.said.push(said);
            if !goes_on {
                break;
            }
        }
        if goes_on && plan.commits {
            (self.shared.log)(attempt);
            let committed = self.call("COMMIT", |session| session.execute("COMMIT").map(drop));
            if committed.is_ok() {
                attempt.epoch = self.session.committed();
            }
            return committed.map(|()| "transactions");
        }
        if self.session.in_transaction()
            && let Err(error) = self.session.execute("ROLLBACK")
        {
            self.shared.watch.fail(format!("ROLLBACK: {error:?}"));
        }
        self.expect_nothing(key, plan);
        Ok("rollbacks")
    }

    /// A transaction without SQL. Nothing is known of it but whether it was committed.
    fn library(
        &mut self,
        plan: &Plan,
        waits: bool,
        key: Option<&str>,
        attempt: &mut Attempt,
    ) -> std::result::Result<&'static str, Failure> {
        self.does("a transaction without SQL");
        let (engine, log) = (self.engine.clone(), self.shared.clone());
        let write = || -> Result<Option<u64>> {
            let mut transaction = engine.begin()?;
            if let Some(key) = key {
                transaction.set_key(key);
            }
            for step in &plan.steps {
                let Step::Write(write, _) = step else { continue };
                stage(&mut transaction, write)?;
                thread::sleep(Duration::from_micros(plan.pause));
            }
            if !plan.commits {
                return Ok(None);
            }
            (log.log)(attempt);
            let epoch = if waits { transaction.commit()? } else { transaction.submit()? };
            Ok(Some(epoch))
        };
        let may_end = self.random.below(8) == 0;
        let written = if may_end {
            self.interrupt.clear();
            self.interrupt.watch(write)
        } else {
            write()
        };
        attempt.epoch =
            written.map_err(|error| self.failure(&error, may_end, "a transaction without SQL"))?;
        Ok("transactions without SQL")
    }

    /// Executes a definition, which others may have made or dropped before.
    fn define(
        &mut self,
        sql: &str,
        attempt: &Attempt,
    ) -> std::result::Result<&'static str, Failure> {
        (self.shared.log)(attempt);
        let done = self.call(sql, |session| session.execute(sql).map(drop));
        if done.is_err() && self.session.in_transaction() {
            self.session.execute("ROLLBACK").expect("a transaction is open");
        }
        let what: Vec<&str> = sql.split(' ').take(2).collect();
        let what = what.join(" ");
        self.count(&if done.is_ok() { what } else { format!("{what}, in vain") });
        Ok("definitions")
    }
}

/// Stages a change.
fn stage(transaction: &mut Transaction, write: &Write) -> Result<()> {
    match write {
        Write::Insert { table, rows, .. } => {
            transaction.insert_columns(table.name(), &["k", "g", "x"], keyed(rows))
        }
        Write::Remove { table: Keyed::A, k } => transaction.delete("a", keyed(&[(*k, 0, 0)])),
        Write::AddItem { k, x } => transaction.insert("items", pairs(*k, *x)),
        Write::RemoveItem { k, x } => transaction.delete("items", pairs(*k, *x)),
        Write::AddEvent { at, x } => transaction.insert("events", pairs(*at, *x)),
        other => panic!("{other:?} is SQL"),
    }
}

fn keyed(rows: &[(i64, i64, i64)]) -> RecordBatch {
    let columns = [
        ("k", column(rows.iter().map(|row| row.0))),
        ("g", column(rows.iter().map(|row| row.1))),
        ("x", column(rows.iter().map(|row| row.2))),
    ];
    RecordBatch::try_from_iter(columns).expect("columns of one length")
}

fn pairs(first: i64, second: i64) -> RecordBatch {
    let columns = [("k", column([first].into_iter())), ("x", column([second].into_iter()))];
    RecordBatch::try_from_iter(columns).expect("columns of one length")
}

fn column(values: impl Iterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}
