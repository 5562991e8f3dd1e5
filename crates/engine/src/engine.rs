//! The engine as a program holds it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use alluvium_sql::name;
use alluvium_sql::statement::StatementKind;
use alluvium_storage::Scratch;
use arrow::array::RecordBatch;

use crate::builder::Builder;
use crate::catalog::{FunctionInfo, RelationInfo, Systems};
use crate::durable::followed::{Lag, Promoted};
use crate::error::{Error, Result, is_standby};
use crate::instance::Instance;
use crate::interrupt::Interrupt;
use crate::log;
use crate::query::{MetricFamily, Rows};
use crate::roles::Roles;
use crate::session::{Outcome, Session};
use crate::sink::OutputMode;
use crate::source::Progress;
use crate::state::State;
use crate::statement::parse;
use crate::subscription::{Client, SubscribeOptions, Subscription};
use crate::transaction::Transaction;
use crate::unstable::{EngineParts, NamedForConnectors};
use crate::value::Value;
use crate::view::View;

/// A database whose views are always exactly right.
///
/// Relations go by their [names](crate::name): `t`, or `s.t` in a schema.
///
/// Clones are handles of one engine. All calls block. When the last handle is dropped (sessions and open
/// transactions are handles too, subscriptions are not) the workers shut down and their threads are joined.
///
/// If a view panics, or its state cannot be read or written, that view and all views that read it have failed ([`Error::Failed`]); all
/// others continue. If a worker panics otherwise, or a [`crate::Source`] or a thread that owns a [`Subscription`] does, the engine is
/// poisoned: every call on every handle, also those that wait, returns [`Error::Poisoned`] from then on.
#[derive(Clone)]
pub struct Engine {
    pub(crate) instance: Arc<Instance>,
}

impl Engine {
    /// Begins to set an engine up.
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// Begins to act as one client, with at most one open transaction.
    pub fn session(&self) -> Session {
        Session::new(self.clone())
    }

    /// Executes statements, one after the other, in a session of their own, as [`Session::execute`] does. A
    /// transaction that they leave open is rolled back.
    pub fn execute(&self, sql: &str) -> Result<Vec<Outcome>> {
        self.session().execute(sql)
    }

    /// Executes one statement with values for its parameters, as [`Session::execute_with`] does.
    pub fn execute_with(&self, sql: &str, parameters: &[Value]) -> Result<Outcome> {
        self.session().execute_with(sql, parameters)
    }

    /// Answers one SELECT. It sees everything that was committed, on any handle, before it began.
    ///
    /// All rows are in memory at once, and count as memory that queries take until they are returned:
    /// [`Engine::query_rows`] computes them as they are pulled.
    pub fn query(&self, sql: &str) -> Result<Vec<RecordBatch>> {
        self.query_with(sql, &[])
    }

    /// As [`Engine::query`], with values for its parameters: the first for `$1`, and so on.
    pub fn query_with(&self, sql: &str, parameters: &[Value]) -> Result<Vec<RecordBatch>> {
        self.query_rows(sql, parameters)?.into_batches()
    }

    /// Begins to answer one SELECT with values for its parameters. Its rows are computed as they are pulled, however many there
    /// are, and are all of the version that the query began with.
    ///
    /// ```
    /// let db = alluvium::Engine::builder().workers(1).open_in_memory()?;
    /// let mut count = 0;
    /// let sql = "SELECT n FROM generate_series(1, 100000) AS s(n) WHERE n > $1";
    /// for batch in db.query_rows(sql, &[50_000_i64.into()])? {
    ///     count += batch?.num_rows();
    /// }
    /// assert_eq!(count, 50_000);
    /// # Ok::<(), alluvium::Error>(())
    /// ```
    pub fn query_rows(&self, sql: &str, parameters: &[Value]) -> Result<Rows> {
        let statements = parse(sql).collect::<Result<Vec<_>>>()?;
        if let [statement] = &statements[..]
            && matches!(statement.tree().kind, StatementKind::Query(_))
            && let Outcome::Rows(rows) = self.session().run_with(statement, parameters)?
        {
            return Ok(rows);
        }
        Err(Error::sql("one SELECT is expected here"))
    }

    /// A table or a materialized view, to be read by key from any thread without SQL. Starts the inputs of tables, as the
    /// first statement that reads does.
    ///
    /// ```
    /// let db = alluvium::Engine::builder().workers(1).open_in_memory()?;
    /// db.execute(
    ///     "CREATE TABLE sale (shop VARCHAR, amount BIGINT);
    ///      CREATE MATERIALIZED VIEW sales AS SELECT shop, COUNT(*) AS sales FROM sale GROUP BY shop;
    ///      INSERT INTO sale VALUES ('a', 3), ('b', 4), ('a', 5)",
    /// )?;
    /// let sales = db.view("sales")?;
    /// assert_eq!(sales.get(&["a".into()])?.num_rows(), 1);
    /// assert_eq!(sales.get(&["c".into()])?.num_rows(), 0);
    /// # Ok::<(), alluvium::Error>(())
    /// ```
    pub fn view(&self, name: &str) -> Result<View> {
        self.start()?;
        View::new(self.clone(), &*self.instance.definitions.catalog.get(name)?)
    }

    /// Begins a transaction.
    pub fn begin(&self) -> Result<Transaction> {
        Transaction::begin(&self.instance, None)
    }

    /// Begins a transaction at a time of its own, instead of the [clock's](Builder::clock): what `NOW()` is in
    /// its epoch.
    ///
    /// Its commit makes an epoch even if nothing but the time changes. Fails if the time is before that of the
    /// last epoch.
    pub fn begin_at(&self, now: SystemTime) -> Result<Transaction> {
        Transaction::begin(&self.instance, Some(now))
    }

    /// Waits until `epoch` is complete: all of its changes are then visible in every table and view.
    ///
    /// An epoch that has not been committed yet is waited for as well.
    pub fn wait(&self, epoch: u64) -> Result<()> {
        let _call = log::call!("wait", epoch);
        self.instance.reader.sequencer.wait(epoch)
    }

    /// Subscribes to the changes of a view, or of a table.
    pub fn subscribe(&self, view: &str) -> Result<Subscription> {
        self.subscribe_with(view, SubscribeOptions::new())
    }

    /// Subscribes to the changes of a view, or of a table, after an epoch: for a subscriber that has had all changes up to
    /// that one, from this engine or from one before it that had the same [state directory](Builder::state). There is no
    /// snapshot: the first item is the first change after `epoch`.
    ///
    /// An epoch that was not durable may be lost with its process, and another one gets its number: with another
    /// [durability](Builder::durability) than `always`, a subscriber after a crash has to begin with a snapshot.
    ///
    /// # Errors
    /// [`Error::Gone`] if changes since then are not there any more. Tables and materialized views keep them for as many epochs
    /// as [`Builder::history`] says and as long as [`Builder::history_time`] does, and until they are made again; plain views keep none.
    pub fn subscribe_from(&self, view: &str, epoch: u64) -> Result<Subscription> {
        self.subscribe_with(view, SubscribeOptions::new().after(epoch))
    }

    /// As [`Engine::subscribe`], by a subscriber who says what happens if it falls behind, and where it begins.
    ///
    /// ```
    /// use alluvium::{Error, Policy, SubscribeOptions};
    ///
    /// let db = alluvium::Engine::builder().workers(1).open_in_memory()?;
    /// db.execute("CREATE TABLE t (a BIGINT); INSERT INTO t VALUES (1)")?;
    /// let options = SubscribeOptions::new().policy(Policy::Disconnect).epochs(2);
    /// let mut changes = db.subscribe_with("t", options)?;
    /// for a in 2..5 {
    ///     db.execute(&format!("INSERT INTO t VALUES ({a})"))?;
    /// }
    /// db.wait(4)?;
    /// assert!(matches!(changes.next(), Some(Err(Error::Behind { epochs: 3, .. }))));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn subscribe_with(&self, view: &str, options: SubscribeOptions) -> Result<Subscription> {
        let _call = log::call!("subscribe", view);
        self.instance.subscribe(name::short(view), Client::Program(options))
    }

    /// Starts the inputs of tables that have not started. Their rows come in on threads of their own, a
    /// transaction at a time.
    ///
    /// Fails, and starts none of them, if one cannot be opened.
    pub fn start(&self) -> Result<()> {
        let _call = log::short_call!("start");
        self.instance.start_inputs()
    }

    /// Waits until all inputs that were started have been read to their ends, and all of it is complete in
    /// every view. Fails as soon as one of them cannot be read any further; the others continue.
    ///
    /// A thread with an open transaction waits for itself.
    pub fn wait_for_sources(&self) -> Result<()> {
        let _call = log::call!("wait_for_sources");
        self.instance.connectors.inputs.wait()
    }

    /// The progress of inputs and epochs. Does not block on work in progress.
    pub fn progress(&self) -> Progress {
        self.instance.progress()
    }

    /// How much state the workers hold. Does not block.
    pub fn state(&self) -> State {
        let budget = self.instance.context.budget();
        let metrics = self.instance.reader.progress.metrics().iter();
        let state = State {
            memory_bytes: budget.used() as u64,
            memory_peak_bytes: budget.peak() as u64,
            kept_bytes: budget.kept() as u64,
            mapped_bytes: budget.resident() as u64,
            disk_bytes: budget.files(),
            spilled_bytes: budget.written(),
            ..State::default()
        };
        metrics.flat_map(|metrics| metrics.spines()).fold(state, |all, counters| State {
            rows: all.rows + counters.rows,
            bytes: all.bytes + counters.memory + counters.disk,
            ..all
        })
    }

    /// What the engine does and holds, as numbers for programs that watch it; `docs/reference/metrics.md` lists them. They are read when this is
    /// called, from counters that there are anyway, and wait for no work in progress. Fails if the engine has been poisoned.
    pub fn metrics(&self) -> Result<Vec<MetricFamily>> {
        self.instance.reader.metrics()
    }

    /// Why the engine waits for a full disk: the file that cannot be written, and where its file system is mounted. `None`
    /// while it does not wait. It resumes by itself once there is space. Until then nothing is lost, and commits and inputs
    /// wait.
    pub fn waits_for_room(&self) -> Option<String> {
        self.instance.context.disk_full().reason()
    }

    /// A pipe or device that an input, a COPY or a query has waited for longer than `time`: another program has to write
    /// to it.
    pub fn waits_for_input(&self, time: Duration) -> Option<PathBuf> {
        self.instance.connectors.formats.waiting.longer_than(time)
    }

    /// Writes a view, or a table, to a file from now on, as its connectors do: every change as it comes, or its contents when
    /// the engine finishes. Without a `format` the file's name decides. Does nothing if the relation is written to this
    /// path already.
    ///
    /// With a [state directory](Builder::state) the output is part of the state: it resumes after a restart, without gap or
    /// duplicate, and changes can only be written to files of CSV or JSON lines without compression.
    pub fn output(
        &self,
        relation: &str,
        path: impl AsRef<Path>,
        format: Option<&str>,
        options: &[(String, String)],
        mode: OutputMode,
    ) -> Result<()> {
        if self.instance.is_standby() {
            return Err(is_standby("an output"));
        }
        self.instance.output(name::short(relation), path.as_ref(), format, options, mode)
    }

    /// Writes the contents of views to the outputs of contents that they have, as of the last commit. [`Engine::finish`] does
    /// so when inputs have ended.
    pub fn write_outputs(&self) -> Result<()> {
        let _call = log::call!("write_outputs");
        self.instance.poison.guard(|| {
            self.instance.reader.sequencer.wait(self.instance.writer.last())?;
            self.instance.write_outputs()
        })
    }

    /// Starts inputs that have not started, waits as [`Engine::wait_for_sources`] does, writes the outputs of contents, and
    /// completes the outputs of changes, which end with it. With a [state directory](Builder::state) they are written up to
    /// here and do not end, and a checkpoint is taken.
    pub fn finish(&self) -> Result<()> {
        let _call = log::call!("finish");
        self.instance.poison.guard(|| self.instance.finish())
    }

    /// Takes a checkpoint, so that a restart need not do again what was done so far, and the journal gets shorter. Waits until
    /// it is on the disk; others continue meanwhile. Does nothing without a [state directory](Builder::state), and if nothing
    /// has changed since the last checkpoint.
    pub fn checkpoint(&self) -> Result<()> {
        self.instance.checkpoint()
    }

    /// The copy of the state directory that has what [`Builder::until`] has left out; `None` if nothing was. It is a state
    /// directory, which can be opened instead.
    pub fn put_aside(&self) -> Option<&Path> {
        self.instance.put_aside.get().map(PathBuf::as_path)
    }

    /// The epoch of the transaction that was committed with a [key](crate::Transaction::set_key), if it is among the last
    /// 100,000 with such keys.
    pub fn committed(&self, key: &str) -> Result<Option<u64>> {
        self.instance.poison.check()?;
        self.instance.writer.committed(key)
    }

    /// A number that changes when views gain or lose rows of `alluvium.errors`: as long as it is the same there is nothing
    /// new in them. Does not block.
    pub fn error_updates(&self) -> Result<u64> {
        self.instance.reader.error_updates()
    }

    /// A request that ends calls on this engine before they are done.
    pub fn interrupt(&self) -> Interrupt {
        Interrupt::default()
    }

    /// Removes the temporary files of all engines of this process, which cannot write state any more. For a process that
    /// is about to end without dropping them, because of a signal.
    pub fn remove_temporary_files() {
        Scratch::remove_all();
    }

    /// The schemas that were created, by name: all but the default one and the engine's own.
    pub fn schemas(&self) -> Vec<String> {
        self.instance.definitions.catalog.entries().schemas.iter().cloned().collect()
    }

    /// The sequences that were created, by name. Those of columns that are SERIAL or IDENTITY are not among them.
    pub fn sequences(&self) -> Vec<String> {
        self.instance.definitions.catalog.entries().sequences.keys().cloned().collect()
    }

    /// The roles of this moment, which CREATE ROLE makes.
    pub fn roles(&self) -> Roles {
        self.instance.reader.sequencer.roles().get()
    }

    /// The functions that SQL defines, each after those that it calls.
    pub fn functions(&self) -> Vec<FunctionInfo> {
        self.instance.definitions.catalog.entries().function_infos()
    }

    /// The table or view of a name.
    pub fn relation(&self, name: &str) -> Result<RelationInfo> {
        self.instance.reader.relation(name::short(name))
    }

    /// All tables and views, by name.
    pub fn relations(&self) -> Result<Vec<RelationInfo>> {
        self.instance.reader.relations()
    }
}

impl EngineParts for Engine {
    fn wait_for_ends_of_sources(&self) -> Result<()> {
        self.instance.connectors.inputs.wait_ends()
    }

    fn lag(&self) -> Option<Lag> {
        let following = self.instance.reader.sequencer.durable().following()?;
        Some(following.lag(self.instance.reader.progress.complete()))
    }

    fn promote(&self) -> Result<Promoted> {
        let _call = log::call!("promote");
        match self.instance.standby.get() {
            Some(standby) => standby.promote(),
            None => Err(Error::source("the engine is no standby: it writes already")),
        }
    }

    fn lacking(&self) -> Vec<String> {
        self.instance.connectors.inputs.lacking()
    }

    fn named_for_connectors(&self) -> Vec<NamedForConnectors> {
        let entries = self.instance.definitions.catalog.entries();
        let Systems { secrets, connections, sinks } = &entries.systems;
        let named = |kind, name: &String, sql: &String| NamedForConnectors {
            kind,
            name: name.clone(),
            sql: sql.clone(),
            relation: None,
        };
        let secrets = secrets.values().map(|it| named("SECRET", &it.name, &it.text));
        let connections = connections.values().map(|it| named("CONNECTION", &it.name, &it.text));
        let sinks = sinks.values().map(|it| NamedForConnectors {
            relation: Some(it.relation.clone()),
            ..named("SINK", &it.name, &it.text)
        });
        secrets.chain(connections).chain(sinks).collect()
    }
}
