//! The engine under test, beside the model and the databases that judge it.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use alluvium::arrow::array::{AsArray, RecordBatch};
use alluvium::arrow::datatypes::{SchemaRef, TimestampMicrosecondType};
use alluvium::unstable::{BuilderParts, EngineParts};
use alluvium::{Engine, Session};
use alluvium_storage::Haphazard;
use alluvium_trace::{Pace, Schedule};

use super::final_rows::FinalRows;
use super::late_view::LateView;
use super::{Judges, Mode, Report, text};
use crate::answers::batch::Batch;
use crate::answers::deltas::Watch;
use crate::answers::sqlite::Sqlite;
use crate::generate::reads;
use crate::kept::Kept;
use crate::naive::Relation;
use crate::own;
use crate::program::model::Model;
use crate::program::recording::Recorder;
use crate::program::variation::Variation;
use crate::program::{Alteration, Keeping, Merges, Program, Step};
use crate::query::{Kind, Value};

/// 2024-01-01 00:01:00, the time at which every program begins.
const START: u64 = 1_704_067_260;

/// The subscriptions to a view.
pub(super) struct Watched {
    /// Since the view was created. None for a local view: it is not built.
    pub(super) early: Option<Watch>,
    /// Since a later step.
    pub(super) late: Option<Watch>,
    /// The view of its final rows, if there is one.
    pub(super) sibling: Option<FinalRows>,
    /// The rows that it should hold, if it has lateness.
    pub(super) late_view: Option<LateView>,
}

/// A program in progress.
pub(super) struct Bench<'a> {
    pub(super) program: &'a Program,
    pub(super) judges: Judges,
    pub(super) engine: Engine,
    session: Session,
    /// The state of the engine, if another is to resume it.
    kept: Option<Kept>,
    /// Whether there is a checkpoint.
    is_saved: bool,
    /// The engine that follows this one, to take its place.
    standby: Option<Engine>,
    clock: Arc<AtomicU64>,
    pub(super) model: Model,
    /// The model as of BEGIN, while a transaction is open.
    pub(super) before: Option<Model>,
    pub(super) views: BTreeMap<usize, Watched>,
    pub(super) batch: Option<Batch>,
    pub(super) sqlite: Option<Sqlite>,
    /// The relations whose current contents DataFusion has.
    pub(super) batched: HashSet<String>,
    /// The contents that SQLite has of each relation.
    filled: BTreeMap<String, Vec<Vec<Value>>>,
    pub(super) epoch: u64,
    /// The time of the last epoch.
    pub(super) now: i64,
    /// When the last transaction began.
    begun: i64,
    /// When it ended, or when a view was created after it.
    committed: i64,
    /// The columns that tables have got.
    added: BTreeSet<(usize, String)>,
    /// The position of the current step.
    pub(super) place: usize,
    pub(super) mode: Mode<'a>,
    /// Whether the views were judged after the last step.
    pub(super) judged_last: bool,
    pub(super) recorder: Option<Recorder>,
    /// The number of transactions that have ended, committed or not.
    ended: usize,
    pub(super) report: Report,
}

impl<'a> Bench<'a> {
    /// Opens an engine and creates the program's tables.
    pub(super) fn new(
        program: &'a Program,
        judges: Judges,
        mode: Mode<'a>,
    ) -> Result<Self, String> {
        let clock = Arc::new(AtomicU64::new(START));
        let kept = program.reopen.map(|_| Kept::default());
        let engine =
            open(program, program.workers, &clock, kept.as_ref().map(|kept| (kept, false)))
                .map_err(text)?;
        let mut session = engine.session();
        for table in &program.tables {
            session.execute(&table.sql()).map_err(|error| format!("{error}: {}", table.sql()))?;
        }
        for index in &program.indexes {
            let sql = program.index_sql(index);
            session.execute(&sql).map_err(|error| format!("{error}: {sql}"))?;
        }
        let is_recorded =
            judges.variations && Variation::due(program.number) == Some(Variation::Replay);
        let recorder = is_recorded.then(|| Recorder::new(&engine, &program.tables)).transpose()?;
        let sqlite = judges.sqlite.then(Sqlite::new);
        let mut bench = Self {
            program,
            judges,
            session,
            kept,
            is_saved: false,
            standby: None,
            clock,
            model: Model::of(&program.tables),
            before: None,
            views: BTreeMap::new(),
            batch: judges.datafusion.then(Batch::new),
            sqlite,
            batched: HashSet::new(),
            filled: BTreeMap::new(),
            epoch: 0,
            now: START as i64,
            begun: START as i64,
            committed: START as i64,
            added: BTreeSet::new(),
            place: 0,
            mode,
            judged_last: false,
            recorder,
            ended: 0,
            report: Report::empty(program),
            engine,
        };
        for table in &program.tables {
            let columns: Vec<_> =
                table.columns.iter().map(|column| (column.name.clone(), column.kind)).collect();
            bench.declare(&table.name, &columns)?;
        }
        Ok(bench)
    }

    /// Declares a relation to the databases that judge.
    fn declare(&mut self, name: &str, columns: &[(String, Kind)]) -> Result<(), String> {
        if let Some(sqlite) = &self.sqlite {
            sqlite.declare(name, columns)?;
        }
        if self.batch.is_some() {
            // DataFusion cannot plan some of the queries that views can have. It does not judge views that read such a view.
            let read = self.read(&format!("{name} LIMIT 0"));
            if let (Ok((schema, _)), Some(batch)) = (read, &mut self.batch) {
                batch.create_table(name, schema)?;
            }
        }
        Ok(())
    }

    /// Executes a step. At the end of a transaction, judges the views. Then opens another engine, if it is time.
    pub(super) fn step(&mut self, step: &Step) -> Result<(), String> {
        self.run(step)?;
        if self.program.reopen.is_some_and(|place| place / 2 <= self.place) {
            match self.program.follows {
                true => self.begin_standby()?,
                false => self.save()?,
            }
        }
        match self.program.reopen {
            Some(place) if place <= self.place && self.before.is_none() => self.reopen(),
            _ => Ok(()),
        }
    }

    /// A number that decides how the program is resumed.
    fn lot(&self) -> u64 {
        // A variation has the numbers of its own turns only.
        self.program.number + self.program.number / 45
    }

    /// Takes a checkpoint of three programs in four, once, if another engine is to resume this one.
    fn save(&mut self) -> Result<(), String> {
        if self.is_saved || self.kept.is_none() || self.lot().is_multiple_of(4) {
            return Ok(());
        }
        self.is_saved = true;
        self.engine.checkpoint().map_err(text)
    }

    /// Opens the engine that follows this one, once. Three in four take a checkpoint.
    fn begin_standby(&mut self) -> Result<(), String> {
        let (Some(kept), None) = (&self.kept, &self.standby) else { return Ok(()) };
        let kept = Some((kept, true));
        let standby = open(self.program, self.other_workers(), &self.clock, kept).map_err(text)?;
        if !self.lot().is_multiple_of(4) {
            standby.checkpoint().map_err(text)?;
        }
        self.standby = Some(standby);
        Ok(())
    }

    /// The number of workers of another engine. Two in three have another number.
    fn other_workers(&self) -> usize {
        match self.lot() % 3 {
            0 => self.program.workers % 4 + 1,
            1 => (self.program.workers + 1) % 4 + 1,
            _ => self.program.workers,
        }
    }

    /// Puts another engine in the place of this one, which resumes what this one did, or has followed it; once.
    fn reopen(&mut self) -> Result<(), String> {
        let Some(kept) = self.kept.take() else { return Ok(()) };
        self.settle()?;
        self.engine = match self.standby.take() {
            Some(standby) => {
                standby.promote().map_err(text)?;
                standby
            }
            None => {
                let kept = Some((&kept, false));
                open(self.program, self.other_workers(), &self.clock, kept).map_err(text)?
            }
        };
        self.session = self.engine.session();
        let again = |watch: &mut Option<Watch>, name: &str| -> Result<(), String> {
            if watch.is_some() {
                *watch = Some(Watch::new(self.engine.subscribe(name).map_err(text)?));
            }
            Ok(())
        };
        for (view, watched) in &mut self.views {
            let name = &self.program.views[*view].name;
            again(&mut watched.early, name)?;
            again(&mut watched.late, name)?;
            watched.sibling.as_mut().map_or(Ok(()), |sibling| sibling.again(&self.engine))?;
        }
        match self.engine.progress().committed {
            last if last == self.epoch => Ok(()),
            last => Err(format!("epoch {} was the last and {last} is", self.epoch)),
        }
    }

    fn run(&mut self, step: &Step) -> Result<(), String> {
        self.clock.fetch_add(7, Ordering::Relaxed);
        match step {
            Step::Create(view) => return self.create(*view),
            Step::Drop(view) => return self.drop_view(step, *view),
            Step::Alter(table, alteration) => return self.alter(step, *table, alteration),
            Step::Watch => return self.watch(),
            Step::Begin => {
                self.begun = self.clock.load(Ordering::Relaxed) as i64;
                self.before = Some(self.model.clone());
            }
            Step::Commit => {
                self.committed = self.clock.load(Ordering::Relaxed) as i64;
                self.before = None;
            }
            Step::Rollback => {
                if let Some(before) = self.before.take() {
                    self.model = before;
                }
            }
            Step::Write(write) if self.model.refuses(self.program, write) => {
                if let Mode::Replay(_) = self.mode {
                    return Ok(());
                }
                return match self.execute(step) {
                    Ok(()) => {
                        Err("a NOT NULL column accepted a NULL, or a key was taken".to_owned())
                    }
                    Err(_) => Ok(()),
                };
            }
            Step::Write(write) => {
                if self.before.is_none() {
                    self.begun = self.clock.load(Ordering::Relaxed) as i64;
                    self.committed = self.begun;
                }
                self.model.write(self.program, write).map_err(|fault| {
                    format!("the model cannot execute the statement: {fault:?}")
                })?;
            }
        }
        if !matches!(self.mode, Mode::Replay(_)) {
            self.execute(step)?;
        }
        if self.before.is_none() { self.end_transaction() } else { Ok(()) }
    }

    /// Alters a table, unless a view reads it, or another step is missing that the program had once.
    fn alter(&mut self, step: &Step, table: usize, alteration: &Alteration) -> Result<(), String> {
        let name = &self.program.tables[table].name;
        let views = &self.program.views;
        if self.views.keys().any(|view| reads(&views[*view].query, name)) {
            return Ok(());
        }
        let mut added = self.added.clone();
        let is_possible = match alteration {
            Alteration::Add(column, _) => added.insert((table, column.clone())),
            Alteration::Rename(from, to) => {
                added.remove(&(table, from.clone())) && added.insert((table, to.clone()))
            }
            Alteration::Drop(column) => added.remove(&(table, column.clone())),
        };
        if !is_possible {
            return Ok(());
        }
        self.added = added;
        self.begun = self.clock.load(Ordering::Relaxed) as i64;
        self.committed = self.begun;
        self.execute(step)
    }

    fn drop_view(&mut self, step: &Step, view: usize) -> Result<(), String> {
        let Some(watched) = self.views.remove(&view) else { return Ok(()) };
        watched.sibling.as_ref().map_or(Ok(()), |sibling| self.drop_sibling(sibling))?;
        self.execute(step)?;
        self.report.contents[view] = None;
        let name = &self.program.views[view].name;
        self.model.relations.remove(name);
        self.filled.remove(name);
        if let Some(sqlite) = &self.sqlite {
            sqlite.drop_table(name)?;
        }
        if let Some(batch) = &mut self.batch {
            batch.drop(name)?;
        }
        Ok(())
    }

    /// Subscribes to every view a second time.
    fn watch(&mut self) -> Result<(), String> {
        for (view, watched) in &mut self.views {
            if self.program.views[*view].keeping != Keeping::Local {
                let name = &self.program.views[*view].name;
                watched.late = Some(Watch::new(self.engine.subscribe(name).map_err(text)?));
            }
        }
        Ok(())
    }

    fn end_transaction(&mut self) -> Result<(), String> {
        if let Mode::Replay(recording) = self.mode {
            recording.commit(self.ended, &self.engine)?;
        }
        self.ended += 1;
        self.model.commit(&self.program.tables);
        let last = self.epoch;
        self.judge()?;
        let made = (self.epoch != last).then(|| {
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(self.now as u64);
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
        let lateness = definition.lateness_sql().map(|lateness| format!("{lateness};\n"));
        let sql = format!("{}{}", lateness.unwrap_or_default(), definition.sql_with_own());
        if let Err(error) = self.session.execute(&sql) {
            if matches!(error, alluvium::Error::Poisoned { .. }) {
                return Err(text(error));
            }
            self.report.fates[view].refused = Some(format!("{error}\n  {sql}"));
            return Ok(());
        }
        self.report.fates[view].created = true;
        // The first view that names the time makes an epoch.
        self.committed = self.clock.load(Ordering::Relaxed) as i64;
        if let Mode::Stepwise = self.mode {
            self.settle()?;
        }
        // A local view is not built, and has no changes.
        let subscription = match self.engine.subscribe(&definition.name) {
            Ok(subscription) => Some(subscription),
            Err(_) if definition.keeping == Keeping::Local => None,
            Err(error) => {
                return Err(format!("{} cannot be subscribed to: {error}", definition.name));
            }
        };
        let columns = definition.query.columns();
        self.declare(&definition.name, &columns)?;
        let relation = Relation { columns, rows: None };
        self.model.relations.insert(definition.name.clone(), relation);
        let sibling = match self.mode {
            Mode::Stepwise => self.create_sibling(view)?,
            _ => None,
        };
        let early = subscription.map(Watch::new);
        let late_view = definition.lateness.map(LateView::new);
        self.views.insert(view, Watched { early, late: None, sibling, late_view });
        if self.before.is_none() { self.judge() } else { Ok(()) }
    }

    /// Waits until all committed epochs are complete.
    pub(super) fn settle(&mut self) -> Result<(), String> {
        if self.session.in_transaction() {
            return Ok(());
        }
        let last =
            self.engine.begin().and_then(|transaction| transaction.commit()).map_err(text)?;
        self.engine.wait(last).map_err(text)?;
        if last != self.epoch {
            self.epoch = last;
            self.now = self.time_of_epoch()?;
        }
        Ok(())
    }

    /// The time of the last epoch, by which views are judged: that of the epoch before or of now if it is one of a definition, when its
    /// transaction began if this has read nothing, or when it ended.
    fn time_of_epoch(&self) -> Result<i64, String> {
        let times = self.engine.query("SELECT CAST(NOW() AS TIMESTAMP)").map_err(text)?;
        let times = times.iter().flat_map(|batch| {
            let times = batch.column(0).as_primitive::<TimestampMicrosecondType>();
            times.values().iter().map(|time| time.div_euclid(1_000_000))
        });
        let time = times.last().ok_or("the time has no row")?;
        let known = [self.now, self.begun, self.committed];
        match known.contains(&time) || !matches!(self.mode, Mode::Stepwise) {
            true => Ok(time),
            false => Err(format!("epoch {} is of {time}, and none of {known:?}", self.epoch)),
        }
    }

    /// Reads all rows of a relation.
    pub(super) fn read(&self, relation: &str) -> Result<(SchemaRef, Vec<RecordBatch>), String> {
        let sql = format!("SELECT * FROM {relation}");
        let outcomes = self.engine.session().execute(&sql).map_err(text)?;
        match outcomes.into_iter().next() {
            Some(alluvium::Outcome::Rows(rows)) => {
                Ok((rows.schema().clone(), rows.into_batches().map_err(text)?))
            }
            _ => Err(format!("{sql} returns no rows")),
        }
    }

    /// Brings SQLite's copy of a relation up to date.
    pub(super) fn fill_sqlite(&mut self, name: &str) -> Result<(), String> {
        let rows = self.model.rows(name);
        if let Some(sqlite) = &self.sqlite
            && self.filled.get(name).map(Vec::as_slice).unwrap_or_default() != rows
        {
            sqlite.refill(name, rows)?;
            self.filled.insert(name.to_owned(), rows.to_vec());
        }
        Ok(())
    }
}

/// An engine for a program, which begins with the state of another, or follows that.
fn open(
    program: &Program,
    workers: usize,
    clock: &Arc<AtomicU64>,
    kept: Option<(&Kept, bool)>,
) -> alluvium::Result<Engine> {
    let time = clock.clone();
    let pace = match program.merges {
        Merges::AtOnce | Merges::InBackground(_) => Pace::AtOnce,
        Merges::InSlices => Pace::InSlices,
    };
    let mut builder = own::registered(Engine::builder());
    if let Merges::InBackground(seed) = program.merges {
        builder = builder.compaction(Haphazard::new(seed));
    }
    builder = match kept {
        Some((kept, true)) => kept.follow(builder)?,
        Some((kept, false)) => kept.resume(builder)?,
        None => builder,
    };
    let merging = program.merging;
    // Programs are small: else all merges would be done at once.
    let engine = builder
        .workers(workers)
        .memory(program.memory)
        .schedule(Schedule { merging, pace, smallest_job: 0, ..Schedule::default() })
        .clock(move || SystemTime::UNIX_EPOCH + Duration::from_secs(time.load(Ordering::Relaxed)))
        .open()?;
    if engine.lag().is_none() {
        own::define(&engine)?;
    }
    Ok(engine)
}
