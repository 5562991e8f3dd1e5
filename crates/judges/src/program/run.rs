//! A program on an engine, judged.
//!
//! After every transaction the naive evaluator and SQLite say what each view holds; DataFusion says so twice in a
//! program, because it takes its time. What a view holds step by step is the sum of its changes. Each view is
//! judged over what the relations that it reads hold, so that a wrong one is not told again by those that read it.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use alluvium::arrow::array::{AsArray, RecordBatch};
use alluvium::{Engine, Session};
use alluvium_trace::Schedule;

use super::model::Model;
use super::recording::{Recorder, Recording};
use super::variation::Variation;
use super::{Keeping, Program, Step};
use crate::answers::batch::Batch;
use crate::answers::deltas::Watch;
use crate::answers::duckdb;
use crate::answers::evidence::{Answer, Evidence};
use crate::answers::row::{Cell, Row, rows};
use crate::answers::sqlite::Sqlite;
use crate::generate::{may_fail, reads};
use crate::naive::{Fault, Relation, World};
use crate::query::{Dialect, Value, construct, sql};

/// Who is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judges {
    /// DataFusion, in batch.
    pub datafusion: bool,
    /// SQLite.
    pub sqlite: bool,
    /// The naive evaluator.
    pub naive: bool,
    /// DuckDB, if it is installed.
    pub duckdb: bool,
    /// The program itself, in another way that must not matter.
    pub variations: bool,
}

/// What became of a view.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fate {
    /// Why it was not created.
    pub(crate) refused: Option<String>,
    /// Whether it was created.
    pub(crate) created: bool,
    /// Whether it has ever held a row.
    pub(crate) filled: bool,
    /// Whether an expression has failed.
    pub(crate) failed: bool,
    /// How often who has judged: naive, SQLite, DataFusion, DuckDB.
    pub(crate) judged: [u32; 4],
    /// What is wrong with it, as of which step.
    pub(crate) wrong: Option<(usize, String)>,
}

/// What became of a program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Report {
    pub(crate) fates: Vec<Fate>,
    /// What is wrong with the engine as a whole.
    pub(crate) broken: Option<(usize, String)>,
    /// What each view ought to have held at its end, by the naive evaluator.
    pub(crate) judged: Vec<Option<Vec<Row>>>,
    /// What each view held at its end.
    pub(crate) contents: Vec<Option<Vec<Row>>>,
    /// The changes of each view, by the epoch that made them; first comes what there was.
    pub(crate) changes: Vec<Vec<(u64, BTreeMap<Row, i64>)>>,
    /// What was done to the tables, if it is to be done again.
    pub(crate) recording: Option<Recording>,
}

impl Report {
    /// The first thing that is wrong: the step, the view, and what.
    pub(crate) fn wrong(&self) -> Option<(usize, Option<usize>, String)> {
        let views = self.fates.iter().enumerate();
        let views = views.filter_map(|(view, fate)| {
            fate.wrong.as_ref().map(|(step, text)| (*step, Some(view), text.clone()))
        });
        let broken = self.broken.as_ref().map(|(step, text)| (*step, None, text.clone()));
        views.chain(broken).min_by_key(|(step, ..)| *step)
    }
}

/// 2024-01-01 00:01:00, when every program begins.
const BEGIN: u64 = 1_704_067_260;

/// Runs a program.
pub(crate) fn run(program: &Program, judges: Judges) -> Report {
    caught(program, || run_at(program, judges, Pace::Looking))
}

/// Runs a program without looking at anything before its end.
pub(crate) fn run_in_a_hurry(program: &Program, judges: Judges) -> Report {
    caught(program, || run_at(program, judges, Pace::Hurried))
}

/// Does once more what was done to a program's tables, as fast as it can be committed.
pub(crate) fn run_again(program: &Program, judges: Judges, recording: &Recording) -> Report {
    caught(program, || run_at(program, judges, Pace::Again(recording)))
}

/// What there is time for.
#[derive(Clone, Copy)]
enum Pace<'a> {
    /// Each statement, and a look at everything after each transaction.
    Looking,
    /// Each statement, and a look at the end.
    Hurried,
    /// The changes, and a look at the end.
    Again(&'a Recording),
}

/// A panic on the client's side is something wrong like any other.
fn caught(program: &Program, run: impl FnOnce() -> Report) -> Report {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("no words");
        nothing_but(program, format!("a client panicked: {text}"))
    })
}

fn nothing_but(program: &Program, broken: String) -> Report {
    Report {
        fates: vec![Fate::default(); program.views.len()],
        judged: vec![None; program.views.len()],
        contents: vec![None; program.views.len()],
        changes: vec![Vec::new(); program.views.len()],
        broken: Some((program.steps.len(), broken)),
        recording: None,
    }
}

fn run_at(program: &Program, judges: Judges, pace: Pace<'_>) -> Report {
    let mut bench = match Bench::new(program, judges, pace) {
        Ok(bench) => bench,
        Err(error) => return nothing_but(program, error),
    };
    for (place, step) in program.steps.iter().enumerate() {
        bench.place = place;
        if let Err(error) = bench.step(step) {
            bench.report.broken = Some((place, error));
            return std::mem::take(&mut bench.report);
        }
    }
    // The last step may be one after which nobody looks.
    if !bench.looked
        && bench.before.is_none()
        && let Err(error) = bench.judge()
    {
        bench.report.broken = Some((bench.place, error));
    }
    bench.report.recording = bench.recorder.take().map(Recorder::done);
    std::mem::take(&mut bench.report)
}

struct Seen {
    /// None for a local view, which is not built.
    watch: Option<Watch>,
    late: Option<Watch>,
}

struct Bench<'a> {
    program: &'a Program,
    judges: Judges,
    engine: Engine,
    session: Session,
    clock: Arc<AtomicU64>,
    model: Model,
    /// The tables as of BEGIN, while a transaction is open.
    before: Option<Model>,
    views: BTreeMap<usize, Seen>,
    batch: Option<Batch>,
    sqlite: Option<Sqlite>,
    /// The relations of which DataFusion has what they hold now.
    batched: HashSet<String>,
    /// What SQLite has of each relation.
    filled: BTreeMap<String, Vec<Vec<Value>>>,
    epoch: u64,
    now: i64,
    /// When the last transaction began.
    begun: i64,
    place: usize,
    pace: Pace<'a>,
    /// Whether everything was looked at after the last step.
    looked: bool,
    recorder: Option<Recorder>,
    /// How many transactions have ended, however.
    ended: usize,
    report: Report,
}

impl<'a> Bench<'a> {
    fn new(program: &'a Program, judges: Judges, pace: Pace<'a>) -> Result<Self, String> {
        let clock = Arc::new(AtomicU64::new(BEGIN));
        let time = clock.clone();
        let engine = Engine::builder()
            .workers(program.workers)
            .memory(program.memory)
            .schedule(Schedule { merging: program.merging, ..Schedule::default() })
            .clock(move || {
                SystemTime::UNIX_EPOCH + Duration::from_secs(time.load(Ordering::Relaxed))
            })
            .open_in_memory()
            .map_err(text)?;
        let mut session = engine.session();
        for table in &program.tables {
            session.execute(&table.sql()).map_err(|error| format!("{error}: {}", table.sql()))?;
        }
        let is_recorded =
            judges.variations && Variation::due(program.number) == Some(Variation::Again);
        let recorder = is_recorded.then(|| Recorder::new(&engine, &program.tables)).transpose()?;
        let sqlite = judges.sqlite.then(Sqlite::new);
        let mut bench = Self {
            program,
            judges,
            session,
            clock,
            model: Model::of(&program.tables),
            before: None,
            views: BTreeMap::new(),
            batch: judges.datafusion.then(Batch::new),
            sqlite,
            batched: HashSet::new(),
            filled: BTreeMap::new(),
            epoch: 0,
            now: BEGIN as i64,
            begun: BEGIN as i64,
            place: 0,
            pace,
            looked: false,
            recorder,
            ended: 0,
            report: Report {
                fates: vec![Fate::default(); program.views.len()],
                broken: None,
                judged: vec![None; program.views.len()],
                contents: vec![None; program.views.len()],
                changes: vec![Vec::new(); program.views.len()],
                recording: None,
            },
            engine,
        };
        for table in &program.tables {
            let columns: Vec<_> =
                table.columns.iter().map(|column| (column.name.clone(), column.kind)).collect();
            bench.known(&table.name, &columns)?;
        }
        Ok(bench)
    }

    /// Makes a relation known to the other engines.
    fn known(
        &mut self,
        name: &str,
        columns: &[(String, crate::query::Kind)],
    ) -> Result<(), String> {
        if let Some(sqlite) = &self.sqlite {
            sqlite.declare(name, columns)?;
        }
        if self.batch.is_some() {
            // DataFusion cannot plan some of what views can: then nobody asks it about those that read them.
            let read = self.read(&format!("{name} LIMIT 0"));
            if let (Ok((schema, _)), Some(batch)) = (read, &mut self.batch) {
                batch.create_table(name, schema)?;
            }
        }
        Ok(())
    }

    fn step(&mut self, step: &Step) -> Result<(), String> {
        self.clock.fetch_add(7, Ordering::Relaxed);
        match step {
            Step::Create(view) => return self.create(*view),
            Step::Drop(view) => {
                if self.views.remove(view).is_none() {
                    return Ok(());
                }
                self.execute(step)?;
                self.report.contents[*view] = None;
                let name = &self.program.views[*view].name;
                self.model.relations.remove(name);
                self.filled.remove(name);
                if let Some(sqlite) = &self.sqlite {
                    sqlite.drop_table(name)?;
                }
                if let Some(batch) = &mut self.batch {
                    batch.drop(name)?;
                }
                return Ok(());
            }
            Step::Watch => {
                for (view, seen) in &mut self.views {
                    if self.program.views[*view].keeping != Keeping::Local {
                        let name = &self.program.views[*view].name;
                        seen.late = Some(Watch::new(self.engine.subscribe(name).map_err(text)?));
                    }
                }
                return Ok(());
            }
            Step::Begin => {
                self.begun = self.clock.load(Ordering::Relaxed) as i64;
                self.before = Some(self.model.clone());
            }
            Step::Commit => self.before = None,
            Step::Rollback => {
                if let Some(before) = self.before.take() {
                    self.model = before;
                }
            }
            Step::Write(super::Write::Refused(..)) => {
                if let Pace::Again(_) = self.pace {
                    return Ok(());
                }
                return match self.execute(step) {
                    Ok(()) => Err("a NULL was let into a NOT NULL column".to_owned()),
                    Err(_) => Ok(()),
                };
            }
            Step::Write(write) => {
                if self.before.is_none() {
                    self.begun = self.clock.load(Ordering::Relaxed) as i64;
                }
                self.model
                    .write(self.program, write)
                    .map_err(|fault| format!("the model cannot follow: {fault:?}"))?;
            }
        }
        if !matches!(self.pace, Pace::Again(_)) {
            self.execute(step)?;
        }
        if self.before.is_none() { self.end_transaction() } else { Ok(()) }
    }

    fn end_transaction(&mut self) -> Result<(), String> {
        if let Pace::Again(recording) = self.pace {
            recording.commit(self.ended, &self.engine)?;
        }
        self.ended += 1;
        let last = self.epoch;
        self.judge()?;
        let made = (self.epoch != last).then(|| {
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(self.begun as u64);
            (self.epoch, time)
        });
        self.recorder.as_mut().map_or(Ok(()), |recorder| recorder.note(made))
    }

    fn execute(&mut self, step: &Step) -> Result<(), String> {
        match self.program.statement(step) {
            Some(statement) => self
                .session
                .execute(&statement)
                .map(drop)
                .map_err(|error| format!("{error}, in: {statement}")),
            None => Ok(()),
        }
    }

    fn create(&mut self, view: usize) -> Result<(), String> {
        let definition = &self.program.views[view];
        let sql = definition.sql();
        if let Err(error) = self.session.execute(&sql) {
            if matches!(error, alluvium::Error::Poisoned { .. }) {
                return Err(text(error));
            }
            self.report.fates[view].refused = Some(format!("{error}\n  {sql}"));
            return Ok(());
        }
        self.report.fates[view].created = true;
        // If that makes an epoch, it is of the time of the one before.
        let now = self.now;
        if let Pace::Looking = self.pace {
            self.settle()?;
        }
        self.now = now;
        // The sum of its changes is what a local view holds.
        let subscription = match self.engine.subscribe(&definition.name) {
            Ok(subscription) => Some(subscription),
            Err(_) if definition.keeping == Keeping::Local => None,
            Err(error) => {
                return Err(format!("{} cannot be subscribed to: {error}", definition.name));
            }
        };
        let columns = definition.query.columns();
        self.known(&definition.name, &columns)?;
        let relation = Relation { columns, rows: None };
        self.model.relations.insert(definition.name.clone(), relation);
        self.views.insert(view, Seen { watch: subscription.map(Watch::new), late: None });
        if self.before.is_none() { self.judge() } else { Ok(()) }
    }

    /// Waits until all that was committed is complete.
    fn settle(&mut self) -> Result<(), String> {
        if self.session.in_transaction() {
            return Ok(());
        }
        let last =
            self.engine.begin().and_then(|transaction| transaction.commit()).map_err(text)?;
        self.engine.wait(last).map_err(text)?;
        if last != self.epoch {
            self.epoch = last;
            self.now = self.begun;
        }
        Ok(())
    }

    fn read(
        &mut self,
        relation: &str,
    ) -> Result<(alluvium::arrow::datatypes::SchemaRef, Vec<RecordBatch>), String> {
        let sql = format!("SELECT * FROM {relation}");
        let outcomes = self.engine.session().execute(&sql).map_err(text)?;
        match outcomes.into_iter().next() {
            Some(alluvium::Outcome::Rows { schema, batches }) => Ok((schema, batches)),
            _ => Err(format!("{sql} gives no rows")),
        }
    }

    /// Holds every view against what others say of it.
    fn judge(&mut self) -> Result<(), String> {
        let is_last = self.place + 1 == self.program.steps.len();
        if !is_last && !matches!(self.pace, Pace::Looking) {
            return Ok(());
        }
        self.looked = is_last;
        self.settle()?;
        // DataFusion takes its time.
        let midway = self.place == self.program.steps.len() * 2 / 3;
        let thorough = is_last || midway && self.program.number.is_multiple_of(3);
        let failing = self.failing()?;
        self.batched = self.program.tables.iter().map(|table| table.name.clone()).collect();
        if thorough {
            for table in &self.program.tables {
                let (_, batches) = self.read(&table.name)?;
                let expected: Vec<Row> = cells(self.model.rows(&table.name));
                let found = rows(&batches);
                if let Some(difference) = crate::answers::compare::difference(
                    &expected,
                    &found,
                    crate::answers::compare::Measure::Typed,
                ) {
                    return Err(format!("table {} is wrong: {difference}", table.name));
                }
                if let Some(batch) = &mut self.batch {
                    batch.fill(&table.name, batches);
                }
            }
        }
        for table in &self.program.tables {
            self.fill_sqlite(&table.name)?;
        }
        let views: Vec<usize> = self.views.keys().copied().collect();
        for view in views {
            self.judge_view(view, &failing, thorough)?;
        }
        Ok(())
    }

    fn fill_sqlite(&mut self, name: &str) -> Result<(), String> {
        let rows = self.model.rows(name);
        if let Some(sqlite) = &self.sqlite
            && self.filled.get(name).map(Vec::as_slice).unwrap_or_default() != rows
        {
            sqlite.refill(name, rows)?;
            self.filled.insert(name.to_owned(), rows.to_vec());
        }
        Ok(())
    }

    fn judge_view(
        &mut self,
        view: usize,
        failing: &HashSet<String>,
        thorough: bool,
    ) -> Result<(), String> {
        let definition = &self.program.views[view];
        let epoch = self.epoch;
        let Some(seen) = self.views.get_mut(&view) else { return Ok(()) };
        let sum = |watch: &mut Watch| watch.catch_up(epoch).map(|()| watch.ledger.rows());
        let deltas: Option<Answer> = seen.watch.as_mut().map(sum);
        let late_deltas = seen.late.as_mut().map(sum);
        if self.place + 1 == self.program.steps.len() {
            let changes = seen.watch.as_ref().map(|watch| watch.ledger.log().to_vec());
            self.report.changes[view] = changes.unwrap_or_default();
        }

        // The naive answer, and whether it has failures.
        let world = World::new(&self.model.relations, self.now);
        let naive = if self.judges.naive {
            match world.answer(&definition.query) {
                Ok(rows) => Some(rows),
                Err(Fault::Failed) => None,
                Err(Fault::Unknown(_)) => None,
            }
        } else {
            None
        };
        let failures = world.failures.get();
        let fails = failing.contains(&definition.name);
        self.report.fates[view].failed |= fails;
        let is_local = definition.keeping == Keeping::Local;
        if naive.is_some() && !is_local && fails != (failures > 0) {
            let told = if fails { "there are errors" } else { "there are no errors" };
            self.wrong(view, format!("{told}, but {failures} rows fail"));
        }
        let quiet = !fails && failures == 0;

        let may_fail = may_fail(&definition.query);
        let fails_now = fails || failures > 0;
        let name = definition.name.clone();
        let mut read: Option<Answer> = None;
        let kept = definition.keeping == Keeping::Materialized;
        let told = kept || self.is_told(view);
        // What may fail, and is evaluated when it is asked, then fails as a whole.
        let whole = kept || !may_fail || naive.is_some() && !fails_now;
        if (thorough || deltas.is_none()) && whole && told {
            let found = self.read(&name);
            // What is not kept is evaluated by DataFusion, too.
            let given_up = !kept && found.as_ref().is_err_and(|error| contradicts(error));
            if let (Some(batch), Ok((_, batches))) = (&mut self.batch, &found) {
                self.batched.insert(name.clone());
                batch.fill(&name, batches.clone());
            }
            read = (!given_up).then(|| found.map(|(_, batches)| rows(&batches)));
        }
        let definition = &self.program.views[view];
        let held = match deltas.as_ref().or(read.as_ref()) {
            Some(Ok(rows)) => rows.clone(),
            Some(Err(reason)) => {
                self.wrong(view, reason.clone());
                Vec::new()
            }
            None => return Ok(()),
        };
        self.report.fates[view].filled |= !held.is_empty();

        let mut evidence = Evidence {
            cancels: construct::of(&definition.query).contains("sums that cancel"),
            contents: read,
            kept,
            deltas,
            late_deltas,
            batch: None,
            sqlite: None,
            naive: naive.as_ref().map(|rows| Ok(cells(rows))),
            duckdb: None,
        };
        if evidence.contents.is_none() && evidence.kept {
            // The sum of its changes stands for what it holds.
            evidence.contents = evidence.deltas.clone();
        }
        let nothing_large = held.len() < 5_000;
        let read_by = |known: &dyn Fn(&str) -> bool| {
            let mut read =
                self.program.views.iter().filter(|other| reads(&definition.query, &other.name));
            read.all(|other| known(&other.name))
        };
        let in_batch = read_by(&|name| self.batched.contains(name));
        let in_sqlite = read_by(&|name| {
            self.model.relations.get(name).is_some_and(|relation| relation.rows.is_some())
        });
        if thorough
            && quiet
            && nothing_large
            && in_batch
            && let Some(batch) = &self.batch
            && let Some(query) = sql(&definition.query, Dialect::DataFusion, self.now)
        {
            let answer = batch.ask(&query);
            // It evaluates what nobody asks for, too.
            if !answer.as_ref().is_err_and(|error| may_fail || gives_up(error)) {
                evidence.batch =
                    Some(answer.map_err(|error| format!("DataFusion: {error}\n{query}")));
                self.report.fates[view].judged[2] += 1;
            }
        }
        if quiet
            && !may_fail
            && nothing_large
            && in_sqlite
            && let Some(sqlite) = &self.sqlite
            && let Some(query) = sql(&definition.query, Dialect::Sqlite, self.now)
        {
            evidence.sqlite =
                Some(sqlite.ask(&query).map_err(|error| format!("SQLite: {error}\n{query}")));
            self.report.fates[view].judged[1] += 1;
        }
        if self.judges.duckdb
            && thorough
            && quiet
            && !may_fail
            && let Some(query) = sql(&definition.query, Dialect::DuckDb, self.now)
        {
            evidence.duckdb = duckdb::ask(&self.model.relations, &query);
            self.report.fates[view].judged[3] += u32::from(evidence.duckdb.is_some());
        }
        self.report.fates[view].judged[0] += u32::from(evidence.naive.is_some());
        let objections = evidence.objections();
        if !objections.is_empty() {
            self.wrong(view, objections.join("\n"));
        }
        self.report.judged[view] = naive.as_deref().map(cells);
        self.report.contents[view] = Some(held.clone());
        // What reads it is judged over what it holds.
        let columns = definition.query.columns();
        let known = naive.or_else(|| {
            let of_row = |row: &Row| {
                let cells = row.iter().zip(&columns);
                cells.map(|(cell, (_, kind))| Value::of_cell(cell, *kind)).collect()
            };
            held.iter().map(of_row).collect::<Option<Vec<_>>>()
        });
        if let Some(relation) = self.model.relations.get_mut(&definition.name) {
            relation.rows = known;
        }
        self.fill_sqlite(&definition.name)
    }

    /// Whether DataFusion, which evaluates a view that is not kept when it is asked, takes it for the same.
    fn is_told(&self, view: usize) -> bool {
        let query = &self.program.views[view].query;
        let inner = self.program.views.iter().enumerate();
        let mut inner = inner.filter(|(_, other)| reads(query, &other.name));
        !construct::of(query).contains("in no order")
            && inner
                .all(|(place, other)| other.keeping == Keeping::Materialized || self.is_told(place))
    }

    fn wrong(&mut self, view: usize, what: String) {
        let place = self.place;
        self.report.fates[view].wrong.get_or_insert((place, what));
    }

    /// Views with errors.
    fn failing(&mut self) -> Result<HashSet<String>, String> {
        let mut made = self.views.keys();
        if !made.any(|view| may_fail(&self.program.views[*view].query)) {
            return Ok(HashSet::new());
        }
        let batches =
            self.engine.query("SELECT DISTINCT view FROM alluvium.errors").map_err(text)?;
        let names = batches.iter().flat_map(|batch| {
            let names = batch.column(0).as_string::<i32>().iter().flatten().map(str::to_owned);
            names.collect::<Vec<_>>()
        });
        Ok(names.collect())
    }
}

/// Whether DataFusion has contradicted itself while it planned, or does not know what is asked.
fn contradicts(error: &str) -> bool {
    let known = [
        "SanityCheckPlan",
        "does not satisfy order requirements",
        "a bug in DataFusion's code",
        "This feature is not implemented",
    ];
    known.iter().any(|known| error.contains(known))
}

/// Whether DataFusion has done so, or has confused columns, which the engine keeps it from.
fn gives_up(error: &str) -> bool {
    contradicts(error)
        || error.contains("which would be ambiguous")
        || error.contains("Schema contains duplicate")
}

fn cells(rows: &[Vec<Value>]) -> Vec<Row> {
    rows.iter().map(|row| row.iter().map(Value::cell).collect::<Vec<Cell>>()).collect()
}

/// An error as a judge tells it.
pub(crate) fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
