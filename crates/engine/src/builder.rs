//! Setting an engine up.

use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use alluvium_sql::planner::{RegisteredFunctions, SystemSchemas};
use alluvium_storage::{
    ClaimedStorage, Compaction, Elsewhere, Expected, Journal, Manifests, MemoryManifests,
    MemoryStorage, MergePool, Scratch, Storage,
};
use alluvium_trace::memory::{MemoryBudget, StateContext};
use alluvium_trace::{Pace, Schedule};
use datafusion::logical_expr::{AggregateUDF, ScalarUDF};

use crate::available;
use crate::clock::Clock;
use crate::durable::directory::{Directory, Store, directory_of};
use crate::durable::flusher::Durability;
use crate::durable::restore::{Restored, restore};
use crate::durable::resume::{finish_incomplete, resume};
use crate::durable::schedule::Checkpoints;
use crate::durable::standby::{Followed, Standby};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::file_access::FileAccess;
use crate::instance::{Extensions, Instance};
use crate::log::{self, LogLine, LogLines};
use crate::settings::Settings;
use crate::sink::{Delivery, Sink};
use crate::source::{Registered, Secrets, Source, Transport};
use crate::state_directory::take_back;
use crate::unstable::BuilderParts;

/// The settings, formats, functions and clock that an engine starts with.
pub struct Builder {
    workers: Option<usize>,
    registered: Registered,
    scalars: Vec<Arc<ScalarUDF>>,
    aggregates: Vec<Arc<AggregateUDF>>,
    system_path: Vec<String>,
    system: Vec<String>,
    system_settings: Vec<(String, String)>,
    batch_rows: usize,
    strict: bool,
    clock: Clock,
    memory: Option<usize>,
    pressure: Arc<dyn Fn(usize) + Send + Sync>,
    storage: Option<Arc<dyn Storage>>,
    schedule: Schedule,
    merge_threads: usize,
    state: Option<String>,
    until: Option<u64>,
    store: Option<Store>,
    elsewhere: Option<Arc<dyn Elsewhere>>,
    /// The name under which the journal elsewhere is followed, if it is.
    follower: Option<String>,
    checkpoint_interval: Duration,
    checkpoint_bytes: u64,
    retained: u32,
    durability: Durability,
    history: u64,
    history_time: Duration,
    history_bytes: u64,
    compaction: Option<Arc<dyn Compaction>>,
    file_access: FileAccess,
    password_verifier: Option<fn(&str) -> String>,
    slow_statement: Duration,
    log: LogLines,
}

/// How long after a checkpoint the next one is taken, by default.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(60);

/// How many bytes are recorded between checkpoints at most, by default.
const CHECKPOINT_BYTES: u64 = 256 << 20;

/// How many checkpoints are kept at least: the last one may be damaged.
const RETAINED: u32 = 2;

/// A statement that takes so long is slow, by default.
const SLOW_STATEMENT: Duration = Duration::from_secs(1);

/// How many rows a transaction of an input has by default.
const BATCH_ROWS: usize = 40_000;

impl Builder {
    pub(crate) fn new() -> Self {
        Self {
            workers: None,
            registered: Registered::default(),
            scalars: Vec::new(),
            aggregates: Vec::new(),
            system_path: Vec::new(),
            system: Vec::new(),
            system_settings: Vec::new(),
            batch_rows: BATCH_ROWS,
            strict: false,
            clock: Clock::default(),
            memory: None,
            pressure: Arc::new(|_| ()),
            storage: None,
            schedule: Schedule { pace: Pace::InSlices, ..Schedule::default() },
            merge_threads: 0,
            state: None,
            until: None,
            store: None,
            elsewhere: None,
            follower: None,
            checkpoint_interval: CHECKPOINT_INTERVAL,
            checkpoint_bytes: CHECKPOINT_BYTES,
            retained: RETAINED,
            durability: Durability::default(),
            history: 0,
            history_time: Duration::ZERO,
            history_bytes: u64::MAX,
            compaction: None,
            file_access: FileAccess::default(),
            password_verifier: None,
            slow_statement: SLOW_STATEMENT,
            log: Arc::new(Vec::new),
        }
    }

    /// How many threads the dataflows run on, at least one; by default as many as the machine can run at a
    /// time. Results do not depend on it.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = Some(workers);
        self
    }

    /// Registers a format that rows can be read from.
    pub fn source(mut self, source: impl Source + 'static) -> Self {
        self.registered.sources.push(Arc::new(source));
        self
    }

    /// Registers a system other than files that tables can have connectors to.
    pub fn transport(mut self, transport: impl Transport + 'static) -> Self {
        self.registered.transports.push(Arc::new(transport));
        self
    }

    /// Registers a format that rows can be written in.
    pub fn sink(mut self, sink: impl Sink + 'static) -> Self {
        self.registered.sinks.push(Arc::new(sink));
        self
    }

    /// Registers a system other than files that views can have connectors to.
    pub fn delivery(mut self, delivery: impl Delivery + 'static) -> Self {
        self.registered.deliveries.push(Arc::new(delivery));
        self
    }

    /// The directory of secrets, each a file by its name. A connector names one as `${secret:name}` and never has its value. A secret that is
    /// not there is looked for in the environment: `ALLUVIUM_SECRET_NAME`.
    pub fn secrets(mut self, directory: impl Into<PathBuf>) -> Self {
        self.registered.secrets = Secrets::new(directory.into());
        self
    }

    /// Registers a scalar function, under its name and its aliases, for queries and views; see [`functions`](crate::functions)
    /// for what it has to hold to.
    ///
    /// [`Builder::open`] fails if a name is that of another function, or cannot be called in SQL.
    pub fn function(mut self, function: impl Into<ScalarUDF>) -> Self {
        self.scalars.push(Arc::new(function.into()));
        self
    }

    /// Registers an aggregate, as [`Builder::function`] does a scalar function. With OVER it is a window function, too.
    pub fn aggregate(mut self, function: impl Into<AggregateUDF>) -> Self {
        self.aggregates.push(Arc::new(function.into()));
        self
    }

    /// Adds views and functions of the program's own, as SQL: `CREATE VIEW s.v AS …` and `CREATE FUNCTION f(x) AS …`, each of which
    /// may use those before it. They make what clients look for, as `pg_catalog.pg_class`.
    ///
    /// The views read `alluvium.*`, `information_schema.*` and each other, and queries read them as those: of the relations of the
    /// catalog they show what the role may see. The functions may ask queries of such relations, which do not name parameters, and a call may leave out arguments at its end, which are NULL then;
    /// one with the name of a built-in function takes its place. `x::f` calls the function `f`, `x::f[]` the function `_f`, and
    /// `FROM f(x)` unnests its list. Nothing of this is persisted or listed, and statements can neither change nor drop it; views of
    /// users cannot read it.
    ///
    /// [`Builder::open`] fails if the SQL cannot be read. The query of a view is planned when a statement first names the view.
    pub fn system_sql(mut self, sql: impl Into<String>) -> Self {
        self.system.push(sql.into());
        self
    }

    /// Lets the [views](Builder::system_sql) of a schema be named without it, whatever the search path is. Relations of users come
    /// first.
    pub fn system_path(mut self, schema: impl Into<String>) -> Self {
        self.system_path.push(schema.into());
        self
    }

    /// Adds a setting that statements show and cannot set, by `SHOW name` and `current_setting('name')`: what clients ask for, as
    /// `server_version`. A setting of sessions with the same name comes first.
    pub fn system_setting(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.system_settings.push((name.into(), value.into()));
        self
    }

    /// How many rows an input's transaction has at most; by default 40,000. Long rows make it shorter: it has a sixteenth of
    /// the memory budget, or 16 MiB. Results do not depend on it.
    pub fn batch_rows(mut self, rows: usize) -> Self {
        self.batch_rows = rows.max(1);
        self
    }

    /// Makes the first row that a source refuses, or for which an expression of a view fails, an error: of
    /// the statement or the input that reads it, or of the engine.
    pub fn strict(mut self, strict: bool) -> Self {
        self.strict = strict;
        self
    }

    /// Which files the statements of sessions may read and write; by default all.
    /// [`Session::set_file_access`](crate::Session::set_file_access) says so for one.
    pub fn file_access(mut self, access: FileAccess) -> Self {
        self.file_access = access;
        self
    }

    /// Makes the verifier of a password in `CREATE ROLE … PASSWORD`, in the text form of Postgres: `SCRAM-SHA-256$…`. Without it such
    /// a statement has to have the verifier itself.
    pub fn password_verifier(mut self, verifier: fn(&str) -> String) -> Self {
        self.password_verifier = Some(verifier);
        self
    }

    /// How long a statement takes that is logged as slow, by [`tracing`]; by default a second, and zero for none. The event has its command,
    /// and no text of it.
    pub fn slow_statement(mut self, time: Duration) -> Self {
        self.slow_statement = time;
        self
    }

    /// Where `NOW()` comes from; by default, from the system's clock.
    ///
    /// A transaction has the time it begins at, and its epoch has it too. Time does not go backwards: where the
    /// clock does, it stands still until it is overtaken. See also [`Engine::begin_at`].
    pub fn clock(mut self, now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = Clock::new(now);
        self
    }

    /// The memory budget in bytes, for all workers together. State beyond it is spilled to files, in a folder of its own in
    /// the system's temporary folder, which is removed when the engine ends. Results do not depend on the budget. The
    /// default, also with `None`, is four fifths of the machine's memory, or of the limit of a control group that the
    /// process is in; `usize::MAX` is no limit.
    ///
    /// The budget covers pages of state and rows that become state, rows between workers, open transactions and those in
    /// flight, the buffers of operators, and resident pages of mapped files. The smaller the budget, the more is spilled,
    /// down to a file for each epoch; a budget that is too small for the engine is exceeded, not an error. Each engine has
    /// a budget of its own: a program with several engines divides its memory among them.
    pub fn memory(mut self, bytes: impl Into<Option<usize>>) -> Self {
        self.memory = bytes.into();
        self
    }

    /// Called with the budget in bytes when more than a third of it is in use for the first time, and then each time when twice as
    /// many bytes were written to files: a program can make its allocator release free memory then. The thread that uses or
    /// writes them makes the call, a worker's, a source's or one that inserts rows, while others may wait for it, so the function
    /// must not call the engine. The default does nothing.
    pub fn on_pressure(mut self, act: impl Fn(usize) + Send + Sync + 'static) -> Self {
        self.pressure = Arc::new(act);
        self
    }

    /// How many threads merge state in the background, besides the workers; by default 0: then workers merge their state
    /// themselves, a slice with each change and the rest while they have nothing to do. Threads take this work off the
    /// workers if there are cores for them. Results do not depend on it.
    pub fn merge_threads(mut self, threads: usize) -> Self {
        self.merge_threads = threads;
        self
    }

    /// When checkpoints of a [state directory](Builder::state) are taken, besides those that `CHECKPOINT` asks for: so long
    /// after the last one, or when so many bytes were recorded since, whichever comes first; by default a minute and
    /// 256 MiB. Without commits there are none.
    pub fn checkpoints(mut self, interval: Duration, bytes: u64) -> Self {
        (self.checkpoint_interval, self.checkpoint_bytes) = (interval, bytes);
        self
    }

    /// How many checkpoints of a [state directory](Builder::state) are kept, at least two and by default two. The journal is kept
    /// since the oldest one, so an engine can be taken back to each of them and all that was committed after it.
    pub fn retain_checkpoints(mut self, count: u32) -> Self {
        self.retained = count.max(RETAINED);
        self
    }

    /// When commits are on the disk, if there is a [state directory](Builder::state); by default before they return.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// For how many epochs tables and materialized views keep their changes, for [`Engine::subscribe_from`]; by default 0: a
    /// subscriber resumes only if it has had the last epoch. A row that changes often takes the more memory the more
    /// epochs there are.
    ///
    /// With [`Builder::history_time`] the longer one of both counts.
    pub fn history(mut self, epochs: u64) -> Self {
        self.history = epochs;
        self
    }

    /// For how long tables and materialized views keep their changes, for [`Engine::subscribe_from`]: each change at least for this time
    /// since its epoch was committed, or since the engine was opened if that was later. By default not at all, beyond
    /// [`Builder::history`].
    pub fn history_time(mut self, time: Duration) -> Self {
        self.history_time = time;
        self
    }

    /// How many bytes of rows may have been committed since the oldest change that is kept, whatever [`Builder::history`] and
    /// [`Builder::history_time`] say, counted since the engine was opened; by default any number. It bounds the memory and the files that the history of tables takes; that of a view is as
    /// large as the changes of the view.
    pub fn history_bytes(mut self, bytes: u64) -> Self {
        self.history_bytes = bytes;
        self
    }

    /// Keeps everything in a directory, given as `file:DIR`: tables, views and every commit survive the engine and its
    /// process, and [`Builder::open`] resumes where it was. The directory is created if it is missing. One engine uses it at
    /// a time.
    ///
    /// A commit returns once it is on the disk, and is invisible before. [Checkpoints](Builder::checkpoints) are taken
    /// beside the work. Resuming begins with the last one, and commits again what was committed since.
    ///
    /// Inputs resume where they were, and outputs of changes have every change once: see the guide to operations for the
    /// formats that can.
    pub fn state(mut self, url: impl Into<String>) -> Self {
        self.state = Some(url.into());
        self
    }

    /// Takes the [state directory](Builder::state) back before it is opened: epochs after `epoch` are left out, and definitions
    /// after the first of these. If `epoch` is the last one, definitions after it are left out. For a directory that cannot be opened
    /// because of its last records, or whose last commits were a mistake.
    ///
    /// Nothing is lost: a copy of the directory as it was is made in its folder `aside` before, which
    /// [`Engine::put_aside`] names; batches are shared with it by hard links. Outputs of changes are cut back too, and inputs are
    /// read again from where they were.
    ///
    /// Opening fails, and changes nothing, if the directory does not go as far as `epoch`, or if no checkpoint is kept from which
    /// it can be reached; the message says which epochs can be. Without a state directory it fails as well.
    pub fn until(mut self, epoch: u64) -> Self {
        self.until = Some(epoch);
        self
    }

    /// Starts an engine: with a [state directory](Builder::state), where the last one was when it ended; without, as
    /// [`Builder::open_in_memory`] does.
    ///
    /// Fails, and changes nothing, if the directory is in use or something in it is damaged or of another version.
    pub fn open(mut self) -> Result<Engine> {
        let _call = log::call!("open");
        let begun = Instant::now();
        let functions = (self.functions()?, self.system()?);
        let directory = self.state.take().map(|url| Directory::acquire(directory_of(&url)?));
        let directory = directory.transpose()?;
        let put_aside = match (self.until, &directory) {
            (None, _) => None,
            (Some(epoch), Some(directory)) => take_back(directory.path(), epoch)?,
            (Some(_), None) => {
                let message =
                    "an engine without a state directory cannot be taken back to an epoch";
                return Err(Error::Start { message: message.to_owned() });
            }
        };
        let (store, followed) = self.stored(directory.as_ref())?;
        let Some(Store { journal, manifests, blobs }) = store else {
            return self.start_in_memory(functions);
        };
        self.storage.get_or_insert(blobs.clone());
        let (durability, retained) = (self.durability, self.retained);
        let (interval, bytes) = (self.checkpoint_interval, self.checkpoint_bytes);
        let (workers, context) = (self.worker_count()?, self.context()?);
        let (restored, last) = restore(&*journal, &*manifests, &blobs, &context)?;
        let is_dealt = restored.as_ref().is_some_and(|restored| !restored.is_for(workers));
        let engine = self.start(workers, context, functions, restored.as_ref())?;
        let Instance { definitions, connectors, checkpoints, .. } = &*engine.instance;
        if let Some(followed) = &followed {
            definitions.follow(followed.journal.clone());
        }
        let replayed = resume(&engine, restored, &*journal)?;
        if is_dealt {
            definitions.expect_checkpoint();
        }
        // All of these are set once.
        if followed.is_none() {
            let _ = engine.instance.flusher.set(definitions.attach(journal.clone(), durability)?);
        }
        let checkpointer = definitions.checkpointer(manifests, blobs, connectors, retained, last);
        let taken = Checkpoints::start(checkpointer, interval, bytes);
        let _ = checkpoints.set(taken.map_err(|message| Error::Start { message })?);
        match followed {
            Some(followed) => {
                let standby = Standby::start(&engine.instance, followed, replayed)?;
                let _ = engine.instance.standby.set(Box::new(standby));
            }
            None => finish_incomplete(&engine, replayed.incomplete())?,
        }
        if let Some(path) = put_aside {
            let _ = engine.instance.put_aside.set(path);
        }
        if let Some(directory) = directory {
            directory.started(journal);
            let _ = engine.instance.directory.set(directory);
        }
        log::opened(workers, engine.instance.writer.last(), begun.elapsed());
        Ok(engine)
    }

    /// Where everything is kept, and what is followed if the engine is to be a standby.
    fn stored(
        &mut self,
        directory: Option<&Directory>,
    ) -> Result<(Option<Store>, Option<Followed>)> {
        let missing = |what: &str| Err(Error::Start { message: what.to_owned() });
        let here = self.store.take();
        match (&self.elsewhere, self.follower.take(), directory) {
            (None, Some(_), _) => missing(
                "a standby follows a journal that is elsewhere, and none is named (--journal)",
            ),
            (Some(_), _, None) if here.is_none() => {
                missing("a journal that is elsewhere needs a state directory for the rest")
            }
            (Some(elsewhere), Some(follower), Some(directory)) => {
                let (store, identity, journal) = directory.follow(&**elsewhere, &follower)?;
                let (elsewhere, durability) = (elsewhere.clone(), self.durability);
                Ok((Some(store), Some(Followed { elsewhere, identity, journal, durability })))
            }
            (Some(elsewhere), Some(follower), None) => {
                let followed = elsewhere.follow(&Expected::default(), &follower);
                let (identity, journal) =
                    followed.map_err(|error| Error::Start { message: error.to_string() })?;
                let store = here.map(|here| Store { journal: journal.clone(), ..here });
                let (elsewhere, durability) = (elsewhere.clone(), self.durability);
                Ok((store, Some(Followed { elsewhere, identity, journal, durability })))
            }
            (elsewhere, None, Some(directory)) if here.is_none() => {
                Ok((Some(directory.open(elsewhere.as_deref())?), None))
            }
            _ => Ok((here, None)),
        }
    }

    /// Starts an engine that keeps nothing once it has ended.
    pub fn open_in_memory(self) -> Result<Engine> {
        let functions = (self.functions()?, self.system()?);
        self.start_in_memory(functions)
    }

    fn start_in_memory(self, functions: (RegisteredFunctions, SystemSchemas)) -> Result<Engine> {
        let (workers, context, begun) = (self.worker_count()?, self.context()?, Instant::now());
        let engine = self.start(workers, context, functions, None)?;
        log::opened(workers, engine.instance.writer.last(), begun.elapsed());
        Ok(engine)
    }

    /// The functions of the program.
    fn functions(&self) -> Result<RegisteredFunctions> {
        let mut functions = RegisteredFunctions::default();
        let failed = |message| Error::Start { message };
        for function in &self.scalars {
            functions.add_scalar(Arc::clone(function)).map_err(failed)?;
        }
        for function in &self.aggregates {
            functions.add_aggregate(Arc::clone(function)).map_err(failed)?;
        }
        Ok(functions)
    }

    /// The views and functions of the program's own schemas.
    fn system(&self) -> Result<SystemSchemas> {
        let mut system = SystemSchemas::with_path(self.system_path.clone())
            .with_settings(self.system_settings.clone());
        for sql in &self.system {
            system.add(sql)?;
        }
        Ok(system)
    }

    fn worker_count(&self) -> Result<usize> {
        let available = || std::thread::available_parallelism().map_or(1, NonZero::get);
        match self.workers.unwrap_or_else(available) {
            0 => Err(Error::Start { message: "at least one worker is needed".to_owned() }),
            workers => Ok(workers),
        }
    }

    /// Starts an engine at the end of the epoch of a checkpoint, or else before the first one.
    fn start(
        self,
        workers: usize,
        mut context: StateContext,
        (functions, system): (RegisteredFunctions, SystemSchemas),
        restored: Option<&Restored>,
    ) -> Result<Engine> {
        if let Some(compaction) = self.merges()? {
            context = context.with_compaction(compaction);
        }
        let settings = Settings {
            workers,
            batch_rows: self.batch_rows,
            batch_bytes: context.budget().policy().portion,
            password_verifier: self.password_verifier,
            slow_statement: self.slow_statement,
            strict: self.strict,
            history: self.history,
            history_time: self.history_time,
            history_bytes: self.history_bytes,
            records_rows: self.elsewhere.is_some(),
        };
        let start = match restored {
            Some(restored) => Some(restored.start(self.clock.now()?)),
            None => None,
        };
        let extensions = Extensions {
            registered: self.registered,
            functions,
            system,
            file_access: self.file_access,
            log: self.log,
        };
        let instance = Instance::start(settings, start, extensions, self.clock, context)?;
        Ok(Engine { instance })
    }

    /// The compaction that merges in the background.
    fn merges(&self) -> Result<Option<Arc<dyn Compaction>>> {
        if self.compaction.is_some() || self.merge_threads == 0 {
            return Ok(self.compaction.clone());
        }
        let pool = MergePool::start(self.merge_threads)
            .map_err(|error| Error::Start { message: format!("no thread for merges: {error}") })?;
        Ok(Some(Arc::new(pool)))
    }

    fn context(&self) -> Result<StateContext> {
        let Some(bytes) = self.memory.or_else(available::memory) else {
            let context = StateContext::new(MemoryBudget::unlimited(), self.storage.clone());
            return Ok(context.with_schedule(self.schedule));
        };
        let scratch = || match Scratch::create() {
            Ok(scratch) => Ok(Some(Arc::new(scratch) as Arc<dyn Storage>)),
            // The default budget is optional.
            Err(_) if self.memory.is_none() => Ok(None),
            Err(error) => Err(Error::Start { message: error.to_string() }),
        };
        let storage = self.storage.clone().map_or_else(scratch, |storage| Ok(Some(storage)))?;
        let budget = match &storage {
            Some(_) => MemoryBudget::with_pressure(bytes, Arc::clone(&self.pressure)),
            None => MemoryBudget::unlimited(),
        };
        Ok(StateContext::new(budget, storage).with_schedule(self.schedule))
    }
}

impl BuilderParts for Builder {
    fn compaction(mut self, compaction: impl Compaction + 'static) -> Self {
        self.compaction = Some(Arc::new(compaction));
        self
    }

    fn storage(mut self, storage: impl Storage + 'static) -> Self {
        self.storage = Some(Arc::new(storage));
        self
    }

    fn store(
        mut self,
        journal: Arc<dyn Journal>,
        manifests: Arc<dyn Manifests>,
        blobs: Arc<ClaimedStorage>,
    ) -> Self {
        self.store = Some(Store { journal, manifests, blobs });
        self
    }

    fn journal(mut self, journal: Arc<dyn Journal>) -> Self {
        (self.checkpoint_interval, self.checkpoint_bytes) = (Duration::MAX, u64::MAX);
        let blobs = ClaimedStorage::open(Arc::new(MemoryStorage::default()));
        let blobs = blobs.expect("memory can be listed");
        self.store(journal, Arc::new(MemoryManifests::default()), Arc::new(blobs))
    }

    fn elsewhere(mut self, journal: Arc<dyn Elsewhere>) -> Self {
        self.elsewhere = Some(journal);
        self
    }

    fn follow(mut self, follower: impl Into<String>) -> Self {
        self.follower = Some(follower.into());
        self
    }

    fn log(mut self, lines: impl Fn() -> Vec<LogLine> + Send + Sync + 'static) -> Self {
        self.log = Arc::new(lines);
        self
    }

    fn schedule(mut self, schedule: Schedule) -> Self {
        self.schedule = schedule;
        self
    }
}
