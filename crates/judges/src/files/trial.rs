//! One file on one engine: the relations it creates, and how they are judged.

use std::collections::HashSet;

use alluvium::Engine;
use alluvium::arrow::array::AsArray;
use alluvium::unstable::BuilderParts;
use alluvium_sql::statement::{
    Alter, Change, IfTaken, Statement, StatementKind, ViewDefinition, ViewKind, parse,
};
use alluvium_storage::Haphazard;
use alluvium_trace::{Pace, Schedule};

use crate::answers::batch::Batch;
use crate::answers::contents::contents;
use crate::answers::deltas::Watch;
use crate::answers::evidence::Evidence;
use crate::answers::row::rows;
use crate::answers::sqlite::Sqlite;
use crate::answers::words::in_words_of_others;
use crate::kept::Kept;

/// A budget in bytes that some state is beyond.
const MEMORY: usize = 30_000;

/// A budget in bytes that programs have.
const RESUMED_MEMORY: usize = 32 << 20;

/// The judges that skip a statement.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Skips {
    pub(crate) sqlite: bool,
    pub(crate) datafusion: bool,
}

/// Counts of comparisons.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    /// Views checked after a transaction.
    pub(crate) looks: usize,
    /// Those compared with DataFusion.
    pub(crate) batch: usize,
    /// Those compared with SQLite.
    pub(crate) sqlite: usize,
    /// Those of views with errors, which other databases cannot answer.
    pub(crate) failing: usize,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.looks += other.looks;
        self.batch += other.batch;
        self.sqlite += other.sqlite;
        self.failing += other.failing;
    }
}

struct View {
    name: String,
    kind: ViewKind,
    /// Whether queries can read it.
    is_read: bool,
    /// The views it reads, directly or through other views.
    reads: HashSet<String>,
    skips: Skips,
    watch: Option<Watch>,
    late_watch: Option<Watch>,
    definition: ViewDefinition,
}

/// An engine under test.
pub(crate) struct Trial {
    engine: Engine,
    /// The state of the engine, if another is to resume it.
    kept: Option<Kept>,
    /// Whether there is a checkpoint.
    is_saved: bool,
    /// How many engines there have been.
    pub(crate) engines: usize,
    batch: Batch,
    sqlite: Option<Sqlite>,
    tables: Vec<String>,
    views: Vec<View>,
    /// Replacements for DataFusion of views that are not created yet.
    restated: HashSet<String>,
    /// Views that are created, and not there before others that they recur over, and who skips them.
    waiting: Vec<(ViewDefinition, Skips)>,
    /// The number of open transactions, each in its own session.
    open: usize,
    /// The last epoch that was committed.
    epoch: u64,
    /// The judges that skip the next statement.
    pub(crate) skips: Skips,
    pub(crate) tally: Tally,
    objections: Vec<String>,
}

impl Trial {
    pub(crate) fn new(workers: usize, with_sqlite: bool) -> Self {
        let kept = (workers == 3).then(Kept::default);
        let memory = match workers {
            1 => None,
            // A budget of one byte moves all state to files; otherwise some stays in memory.
            2 => Some(1),
            _ => Some(MEMORY),
        };
        let engine =
            open(workers, memory, kept.as_ref()).expect("an engine in memory can be opened");
        Self {
            engine,
            kept,
            is_saved: false,
            engines: 1,
            batch: Batch::new(),
            sqlite: with_sqlite.then(Sqlite::new),
            tables: Vec::new(),
            views: Vec::new(),
            restated: HashSet::new(),
            waiting: Vec::new(),
            open: 0,
            epoch: 0,
            skips: Skips::default(),
            tally: Tally::default(),
            objections: Vec::new(),
        }
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Takes a checkpoint, if the engine is one for that and there is none.
    pub(crate) fn save(&mut self) {
        if self.kept.is_some() && !self.is_saved {
            self.is_saved = true;
            let saved = self.engine.checkpoint().map_err(|error| error.to_string());
            self.object("a checkpoint", saved);
        }
    }

    /// Puts another engine in the place of this one, which resumes what this one did: once, if it is one for that and no
    /// transaction is open. It has another number of workers: two with a budget of 32 MiB, or after a checkpoint of an even epoch
    /// five with the little that this one had.
    pub(crate) fn reopen(&mut self) {
        if self.open > 0 {
            return;
        }
        let Some(kept) = self.kept.take() else { return };
        let is_even = self.engine.progress().committed.is_multiple_of(2);
        let (workers, memory) =
            if self.is_saved && is_even { (5, MEMORY) } else { (2, RESUMED_MEMORY) };
        match open(workers, Some(memory), Some(&kept)) {
            Ok(engine) => self.engine = engine,
            Err(error) => return self.object("another engine", Err(error.to_string())),
        }
        self.engines += 1;
        for place in 0..self.views.len() {
            let (name, kind) = (self.views[place].name.clone(), self.views[place].kind);
            self.views[place].watch = self.watch(&name, kind);
            if self.views[place].late_watch.is_some() {
                self.views[place].late_watch = self.watch(&name, kind);
            }
        }
    }

    /// The errors found since the last call.
    pub(crate) fn objections(&mut self) -> Vec<String> {
        std::mem::take(&mut self.objections)
    }

    /// Gives DataFusion a replacement for the query of a view.
    pub(crate) fn datafusion_only(&mut self, sql: &str) {
        for statement in parse(sql) {
            let result = match statement.map(|statement| statement.kind) {
                Ok(StatementKind::CreateView(ViewDefinition { name, columns, query, .. })) => {
                    let result =
                        self.batch.create_view(&name, &columns, &in_words_of_others(&query));
                    self.restated.insert(name);
                    result
                }
                other => Err(format!("only views can be said in other words: {other:?}")),
            };
            self.object("DataFusion", result);
        }
    }

    /// Runs a statement in SQLite only.
    pub(crate) fn sqlite_only(&mut self, sql: &str) {
        let result = self.sqlite.as_ref().map_or(Ok(()), |sqlite| sqlite.execute(sql));
        self.object("SQLite", result);
    }

    /// Runs a statement that has succeeded in the other databases too.
    pub(crate) fn follow(&mut self, statement: &Statement) {
        match statement.kind {
            StatementKind::Begin(_) => self.open += 1,
            StatementKind::Commit { .. } | StatementKind::Rollback { .. } => self.open -= 1,
            _ => {}
        }
        let result = match &statement.kind {
            StatementKind::CreateView(view) => {
                let is_known = self.views.iter().any(|other| other.name == view.name);
                match view.if_taken {
                    IfTaken::Keep if is_known => {}
                    IfTaken::Replace if is_known => {
                        self.forget_view(&view.name);
                        self.create_view(view);
                    }
                    _ => self.create_view(view),
                }
                Ok(())
            }
            StatementKind::CreateTable(table)
                if table.if_taken == IfTaken::Keep && self.tables.contains(&table.name) =>
            {
                Ok(())
            }
            StatementKind::CreateTable(table) => {
                if self.tables.contains(&table.name) {
                    self.forget_table(&table.name);
                }
                self.tables.push(table.name.clone());
                let schema = contents(&self.engine, &table.name).map(|(schema, _)| schema);
                let result = schema.and_then(|schema| self.batch.create_table(&table.name, schema));
                self.object("DataFusion", result);
                self.with_sqlite(|sqlite| sqlite.create_table(table))
            }
            StatementKind::CreateTableAs { if_taken: IfTaken::Keep, name, .. }
                if self.tables.contains(name) =>
            {
                Ok(())
            }
            StatementKind::CreateTableAs { name, .. } => {
                self.tables.push(name.clone());
                let schema = contents(&self.engine, name).map(|(schema, _)| schema);
                let result = schema.and_then(|schema| self.batch.create_table(name, schema));
                self.object("DataFusion", result);
                self.with_sqlite(|sqlite| sqlite.execute(&statement.text))
            }
            StatementKind::Alter(alter) => self.alter(alter),
            StatementKind::DropTable(_)
            | StatementKind::DropView(_)
            | StatementKind::DropSchema(_) => {
                self.forget_the_dropped();
                Ok(())
            }
            StatementKind::Insert(_)
            | StatementKind::Update(_)
            | StatementKind::Delete(_)
            | StatementKind::Begin(_)
            | StatementKind::Commit { .. }
            | StatementKind::Savepoint(_)
            | StatementKind::RollbackTo(_)
            | StatementKind::Release(_)
            | StatementKind::Rollback { .. } => {
                self.with_sqlite(|sqlite| sqlite.execute(&statement.text))
            }
            StatementKind::DeclareView(_)
            | StatementKind::DropSeveral(_)
            | StatementKind::Truncate(_)
            | StatementKind::Refresh { .. }
            | StatementKind::Prepare { .. }
            | StatementKind::Execute { .. }
            | StatementKind::Deallocate(_)
            | StatementKind::DeclareCursor(_)
            | StatementKind::Fetch { .. }
            | StatementKind::Move { .. }
            | StatementKind::Close(_)
            | StatementKind::Lateness(_)
            | StatementKind::CreateSchema(_)
            | StatementKind::CreateSequence(_)
            | StatementKind::DropSequence(_)
            | StatementKind::RestartSequence(_)
            | StatementKind::AlterSource(_)
            | StatementKind::CreateSecret(_)
            | StatementKind::DropSecret(_)
            | StatementKind::CreateConnection(_)
            | StatementKind::DropConnection(_)
            | StatementKind::CreateSink(_)
            | StatementKind::DropSink(_)
            | StatementKind::CreateFunction(_)
            | StatementKind::DropFunction(_)
            | StatementKind::Comment(_)
            | StatementKind::CreateRole(_)
            | StatementKind::AlterRole(_)
            | StatementKind::DropRole { .. }
            | StatementKind::Grant(_)
            | StatementKind::SetOwner(_)
            | StatementKind::SetRole(_)
            | StatementKind::CreateIndex(_)
            | StatementKind::DropIndex(_)
            | StatementKind::CreateTableFrom { .. }
            | StatementKind::Start
            | StatementKind::Checkpoint
            | StatementKind::Vacuum
            | StatementKind::Copy { .. }
            | StatementKind::CopyTo { .. }
            | StatementKind::Subscribe(_)
            | StatementKind::CopyChanges { .. }
            | StatementKind::Listen(_)
            | StatementKind::Unlisten(_)
            | StatementKind::Query(_)
            | StatementKind::LockingQuery(_)
            | StatementKind::ExplainView { .. }
            | StatementKind::ExplainState { .. }
            | StatementKind::ExplainAnalyze { .. }
            | StatementKind::ExplainSelect { .. }
            | StatementKind::ShowTables
            | StatementKind::ShowSources
            | StatementKind::ShowSinks
            | StatementKind::Set(_)
            | StatementKind::Show { .. }
            | StatementKind::Reset { .. }
            | StatementKind::DiscardAll
            | StatementKind::Describe { .. }
            | StatementKind::DescribeFile { .. } => Ok(()),
        };
        self.object("SQLite", result);
    }

    /// Alters a table or view in the other databases.
    fn alter(&mut self, alter: &Alter) -> Result<(), String> {
        let old = &alter.name;
        let name = match &alter.change {
            Change::Rename { to, .. } => to,
            _ => old,
        };
        let readers = self.readers(name)?;
        readers.iter().rev().for_each(|(view, _)| self.forget_view(&view.name));
        let altered = self.alter_relation(alter, name);
        for (view, skips) in readers {
            let skips = std::mem::replace(&mut self.skips, skips);
            self.create_view(&view);
            self.skips = skips;
        }
        altered
    }

    /// The views that read a relation, directly or through others, as the engine defines them now.
    fn readers(&self, relation: &str) -> Result<Vec<(ViewDefinition, Skips)>, String> {
        let relations = self.engine.relations().map_err(|error| error.to_string())?;
        let (mut read, mut found) = (HashSet::from([relation.to_owned()]), 0);
        while found < read.len() {
            found = read.len();
            let readers =
                relations.iter().filter(|info| info.reads.iter().any(|name| read.contains(name)));
            read.extend(readers.map(|info| info.name.clone()).collect::<Vec<_>>());
        }
        let readers =
            self.views.iter().filter(|view| view.name != relation && read.contains(&view.name));
        let readers = readers.map(|view| {
            let info = relations.iter().find(|info| info.name == view.name);
            let statements = info.into_iter().flat_map(|info| parse(&info.sql));
            let defined = statements.filter_map(|statement| match statement.ok()?.kind {
                StatementKind::CreateView(definition) => Some(definition),
                _ => None,
            });
            (defined.last().unwrap_or_else(|| view.definition.clone()), view.skips)
        });
        Ok(readers.collect())
    }

    fn alter_relation(&mut self, alter: &Alter, name: &String) -> Result<(), String> {
        let old = &alter.name;
        if let Some(place) = self.views.iter().position(|view| view.name == *old) {
            let View { definition, skips, .. } = &self.views[place];
            let (definition, skips) = (definition.clone(), *skips);
            self.forget_view(old);
            let skips = std::mem::replace(&mut self.skips, skips);
            self.create_view(&ViewDefinition { name: name.clone(), ..definition });
            self.skips = skips;
            return Ok(());
        }
        let Some(table) = self.tables.iter_mut().find(|table| *table == old) else { return Ok(()) };
        table.clone_from(name);
        let schema = contents(&self.engine, name).map(|(schema, _)| schema);
        let result = self.batch.drop(old).and(schema);
        let result = result.and_then(|schema| self.batch.create_table(name, schema));
        self.object("DataFusion", result);
        self.with_sqlite(|sqlite| sqlite.execute(&alter.text))
    }

    /// Drops relations that no longer exist from the other databases.
    fn forget_the_dropped(&mut self) {
        let left: HashSet<String> = match self.engine.relations() {
            Ok(relations) => relations.into_iter().map(|relation| relation.name).collect(),
            Err(error) => return self.object("the engine", Err(error.to_string())),
        };
        let views = self.views.iter().map(|view| view.name.clone());
        let views: Vec<String> = views.filter(|name| !left.contains(name)).collect();
        for view in views {
            self.forget_view(&view);
        }
        let tables = self.tables.iter().filter(|name| !left.contains(*name));
        for table in tables.cloned().collect::<Vec<_>>() {
            self.forget_table(&table);
        }
    }

    fn forget_table(&mut self, name: &str) {
        self.tables.retain(|table| table != name);
        let result = self.batch.drop(name);
        self.object("DataFusion", result);
        let result = self.with_sqlite(|sqlite| sqlite.drop_table(name));
        self.object("SQLite", result);
    }

    fn forget_view(&mut self, name: &str) {
        let skipped = self.views.iter().any(|view| view.name == name && view.skips.sqlite);
        self.views.retain(|view| view.name != name);
        let result = self.batch.drop(name);
        self.object("DataFusion", result);
        if !skipped {
            let result = self.with_sqlite(|sqlite| sqlite.drop_view(name));
            self.object("SQLite", result);
        }
    }

    /// Follows a view, and those that have waited for it.
    fn create_view(&mut self, definition: &ViewDefinition) {
        let skips = self.skips;
        self.waiting.push((definition.clone(), skips));
        for (definition, skips) in std::mem::take(&mut self.waiting) {
            match contents(&self.engine, &definition.name) {
                Err(error) if error.contains("is not created yet") => {
                    self.waiting.push((definition, skips));
                }
                read => {
                    self.skips = skips;
                    let is_read = !read.is_err_and(|error| error.contains("recurs, so it can"));
                    self.follow_view(&definition, is_read);
                }
            }
        }
        self.skips = skips;
    }

    fn follow_view(&mut self, definition: &ViewDefinition, is_read: bool) {
        let ViewDefinition { name, columns, kind, .. } = definition;
        let query = in_words_of_others(&definition.query);
        let result = match self.restated.remove(name) {
            true => Ok(()),
            false => self.batch.create_view(name, columns, &query),
        };
        self.object("DataFusion", if self.skips.datafusion { Ok(()) } else { result });
        let result = self.with_sqlite(|sqlite| sqlite.create_view(name, columns, &query));
        self.object("SQLite", result);

        let words: HashSet<&str> =
            query.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
        let mut reads = HashSet::new();
        for view in self.views.iter().filter(|view| words.contains(view.name.as_str())) {
            reads.insert(view.name.clone());
            reads.extend(view.reads.iter().cloned());
        }
        let watch = self.watch(name, *kind);
        self.views.push(View {
            name: name.clone(),
            kind: *kind,
            is_read,
            reads,
            skips: self.skips,
            watch,
            late_watch: None,
            definition: definition.clone(),
        });
    }

    fn watch(&mut self, view: &str, kind: ViewKind) -> Option<Watch> {
        if kind == ViewKind::Local {
            return None;
        }
        match self.engine.subscribe(view) {
            Ok(subscription) => Some(Watch::new(subscription)),
            Err(error) => {
                self.objections.push(format!("{view} cannot be subscribed to: {error}"));
                None
            }
        }
    }

    /// Opens a second subscription to every view.
    pub(crate) fn watch_again(&mut self) {
        let views: Vec<_> = self.views.iter().map(|view| (view.name.clone(), view.kind)).collect();
        for (place, (name, kind)) in views.into_iter().enumerate() {
            self.views[place].late_watch = self.watch(&name, kind);
        }
    }

    /// Compares every view with the other answers, as of the last transaction. Does nothing while a transaction is
    /// open.
    pub(crate) fn judge(&mut self) {
        if self.open > 0 {
            return;
        }
        // An empty transaction returns the last epoch.
        let last = self.engine.begin().and_then(|transaction| transaction.commit());
        match last.and_then(|epoch| self.engine.wait(epoch).map(|()| epoch)) {
            Ok(epoch) => self.epoch = epoch,
            Err(error) => {
                self.objections.push(format!("the last epoch does not complete: {error}"));
                return;
            }
        }
        for table in self.tables.clone() {
            match contents(&self.engine, &table) {
                Ok((_, batches)) => self.batch.fill(&table, batches),
                Err(error) => {
                    self.objections.push(format!("table {table} cannot be read: {error}"))
                }
            }
        }
        let failing = self.failing();
        for place in 0..self.views.len() {
            let evidence = self.evidence(place, &failing);
            let name = &self.views[place].name;
            self.objections.extend(
                evidence.objections().iter().map(|objection| format!("view {name} {objection}")),
            );
        }
    }

    /// The names of views with errors.
    fn failing(&mut self) -> HashSet<String> {
        match self.engine.query("SELECT DISTINCT view FROM alluvium.errors") {
            Ok(batches) => batches
                .iter()
                .flat_map(|batch| {
                    batch
                        .column(0)
                        .as_string::<i32>()
                        .iter()
                        .flatten()
                        .map(str::to_owned)
                        .collect::<Vec<_>>()
                })
                .collect(),
            Err(error) => {
                self.objections.push(format!("alluvium.errors cannot be read: {error}"));
                HashSet::new()
            }
        }
    }

    /// Whether an expression of the view fails, or may fail: errors of a local view are reported by the views that
    /// read it.
    fn fails(&self, place: usize, failing: &HashSet<String>) -> bool {
        let view = &self.views[place];
        let told_elsewhere = || {
            let mut readers = self.views.iter().filter(|other| other.reads.contains(&view.name));
            readers.any(|reader| failing.contains(&reader.name))
        };
        failing.contains(&view.name)
            || view.reads.iter().any(|name| failing.contains(name))
            || (view.kind == ViewKind::Local && told_elsewhere())
    }

    /// All answers about a view. Other databases fail as a whole where an expression fails, so they are consulted
    /// only if none does.
    pub(crate) fn evidence(&mut self, place: usize, failing: &HashSet<String>) -> Evidence {
        let epoch = self.epoch;
        let fails = self.fails(place, failing);
        let view = &mut self.views[place];
        let materialized = view.kind == ViewKind::Materialized;
        let sum = |watch: &mut Option<Watch>| {
            watch.as_mut().map(|watch| watch.catch_up(epoch).map(|()| watch.sum.rows()))
        };
        let (deltas, late_deltas) = (sum(&mut view.watch), sum(&mut view.late_watch));
        let (name, skips) = (view.name.clone(), view.skips);

        let contents = (materialized || (!fails && view.is_read))
            .then(|| contents(&self.engine, &name).map(|(_, batches)| rows(&batches)));
        let batch = (!fails && !skips.datafusion).then(|| self.batch.answer(&name));
        let sqlite = self
            .sqlite
            .as_ref()
            .filter(|_| !fails && !skips.sqlite)
            .map(|sqlite| sqlite.answer(&name));
        self.tally += Tally {
            looks: 1,
            batch: batch.is_some().into(),
            sqlite: sqlite.is_some().into(),
            failing: fails.into(),
        };
        Evidence {
            cancels: false,
            contents,
            materialized,
            deltas,
            late_deltas,
            batch,
            sqlite,
            naive: None,
            duckdb: None,
        }
    }

    fn with_sqlite(&self, run: impl FnOnce(&Sqlite) -> Result<(), String>) -> Result<(), String> {
        match &self.sqlite {
            Some(sqlite) if !self.skips.sqlite => run(sqlite),
            _ => Ok(()),
        }
    }

    fn object(&mut self, who: &str, result: Result<(), String>) {
        self.objections.extend(result.err().map(|reason| format!("{who} cannot follow: {reason}")));
    }
}

/// An engine as there is one for each number of workers, which begins with the state of another.
fn open(workers: usize, memory: Option<usize>, kept: Option<&Kept>) -> alluvium::Result<Engine> {
    // And merges of any size are done in slices, or by others at any time.
    let schedule = |pace| Schedule { pace, smallest_job: 0, ..Schedule::default() };
    let builder = match workers {
        1 => Engine::builder().schedule(schedule(Pace::InSlices)),
        2 => Engine::builder(),
        _ => Engine::builder()
            .schedule(schedule(Pace::AtOnce))
            .compaction(Haphazard::new(workers as u64)),
    };
    let builder = match kept {
        Some(kept) => kept.resume(builder)?,
        None => builder,
    };
    builder.workers(workers).memory(memory).open()
}
