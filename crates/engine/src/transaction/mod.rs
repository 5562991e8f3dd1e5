//! Transactions: changes to tables that become visible together, or not at all.
//!
//! A transaction reads one [version](ReadVersion) of the database with its own writes applied ([`Overlay`]). Its
//! [changes](TableChange) are staged in statement order and reach the dataflows when it commits. Then [what it has read](Reads) is
//! [validated](validation): if another transaction has changed that meanwhile, it fails and leaves nothing. The [write
//! lock](WriteGuard) is held only while it is validated and ordered.

mod check;
mod conditions;
mod insert;
mod isolation;
mod key;
mod new_keys;
mod overlay;
mod portion;
mod reads;
mod savepoint;
mod staged;
mod unique;
mod validation;
mod version;
mod write;
mod written;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use alluvium_trace::Epoch;
use alluvium_trace::memory::MemoryBudget;
use arrow::array::RecordBatch;
pub(crate) use isolation::Isolation;
pub(crate) use key::KeyColumns;
pub(crate) use overlay::Overlay;
use parking_lot::Mutex;
pub(crate) use reads::Noted;
pub(crate) use savepoint::Mark;
pub(crate) use staged::{Staged, Staging};
pub(crate) use written::WrittenKeys;

use self::reads::Reads;
use self::validation::Validation;
use self::version::{Parts as PinnedParts, ReadVersion, too_new};
use crate::catalog::{Entries, Entry};
use crate::changes::TableChange;
use crate::clock::Moment;
use crate::definitions::alter::Parts;
use crate::definitions::{Exchange, StagedDefinitions};
use crate::durable::portion::EnteredPortion;
use crate::durable::refused::RefusedRows;
use crate::error::{Error, Result, is_standby};
use crate::fault::{Fault, armed};
use crate::instance::Instance;
use crate::log;
use crate::query::Reader;
use crate::sequencer::{Changed, Commit, Committed, LateRows};
use crate::source::{Refusal, Refusing};
use crate::worker::{DataflowId, Durable};
use crate::writer::{HeldLocks, WriteGuard, Writer};

/// Rows that a source refused to bring into a table.
struct Refused {
    table: String,
    source: String,
    rows: Refusing,
}

impl Refused {
    /// As they are recorded.
    fn recorded(&self) -> Result<RefusedRows> {
        RefusedRows::new(&self.table, &self.source, &self.rows)
    }
}

/// An open transaction. Dropping it rolls it back.
///
/// While it is open no other transaction waits for it. Its writes do not depend on anything that it has read.
pub struct Transaction {
    /// Keeps the engine running, and is otherwise used through its writer.
    instance: Arc<Instance>,
    /// The changes to each table, with its name.
    changes: BTreeMap<DataflowId, (String, Staged)>,
    time: Moment,
    /// Whether the time was given: then it is a change of its own.
    is_time_given: bool,
    /// Whether it was committed before.
    is_again: bool,
    refused: Vec<Refused>,
    /// The portion of an input that it is, if that has a position.
    entered: Option<EnteredPortion>,
    key: Option<String>,
    /// The table that is created with its rows.
    completes: Option<String>,
    /// The tables as it sees them, as of the last statement that read them.
    overlays: Mutex<BTreeMap<DataflowId, Arc<Overlay>>>,
    /// Whether it begins to read without a wait for the disk, at the price of more conflicts: it has several statements.
    reads_reported: bool,
    /// The version that it reads, once it has read something.
    version: Mutex<Option<ReadVersion>>,
    reads: Arc<Reads>,
    /// The write lock, if no other transaction may commit before it.
    lock: Option<WriteGuard>,
    /// The rows that it keeps others from writing.
    locks: HeldLocks,
    /// The temporary tables that it has changed.
    temporary: BTreeMap<DataflowId, Arc<Entry>>,
    /// Its definitions.
    definitions: Option<Box<StagedDefinitions>>,
    /// Tables with UNIQUE constraints whose rows a program has inserted, which are compared when it commits.
    inserted: BTreeSet<DataflowId>,
}

impl Transaction {
    /// At the time of the clock, or at another one.
    pub(crate) fn begin(instance: &Arc<Instance>, at: Option<SystemTime>) -> Result<Self> {
        instance.poison.check()?;
        let time = instance.writer.next_time(at)?;
        Ok(Self {
            instance: instance.clone(),
            changes: BTreeMap::new(),
            time,
            is_time_given: at.is_some(),
            is_again: false,
            refused: Vec::new(),
            entered: None,
            key: None,
            completes: None,
            overlays: Mutex::default(),
            reads_reported: false,
            version: Mutex::default(),
            reads: Arc::default(),
            lock: None,
            locks: instance.writer.row_locks.begin(),
            temporary: BTreeMap::new(),
            definitions: None,
            inserted: BTreeSet::new(),
        })
    }

    /// Says which session of a client it is of, before it locks anything.
    pub(crate) fn set_session(&mut self, session: u64) {
        self.locks.set_session(session);
    }

    /// Its number, as `alluvium.locks` has it, and when it has begun.
    pub(crate) fn number_and_time(&self) -> (u64, Moment) {
        (self.locks.owner().transaction, self.time)
    }

    /// Excludes all other commits until it ends; waits for those in progress.
    pub(crate) fn lock_out(&mut self) -> Result<()> {
        self.lock = Some(self.instance.writer.lock()?);
        Ok(())
    }

    /// Begins to read as of what anyone knows to be committed. Later commits, which may not be durable, count as made meanwhile.
    pub(crate) fn read_reported(&mut self) {
        self.reads_reported = true;
    }

    /// Deletes rows from a table: of a table with a primary key the rows with their keys, whatever the other
    /// columns say; of one without, one copy of each row. A table that is append-only or keeps nothing
    /// refuses it.
    ///
    /// Deleting an absent row has no effect; without a primary key it is counted ([`crate::RelationInfo::refused`]). There, the
    /// copies of a row that a transaction inserts and deletes are added up first, in whatever order it does.
    /// Columns as in [`Transaction::insert`].
    pub fn delete(&mut self, table: &str, rows: RecordBatch) -> Result<()> {
        let entry = self.writer().table(table)?;
        let table = entry.as_table()?;
        table.check_delete(&entry.name)?;
        let rows = check::check(&entry, rows.columns())?;
        self.stage(&entry, TableChange::deletions(rows))
    }

    /// Changes rows of a table by weights, one for each row: a positive weight inserts that many copies of its row, a negative
    /// one deletes them, and zero changes nothing.
    ///
    /// The table keeps nothing and is not append-only: it is declared `WITH ('materialized' = 'false')`. It takes changes as
    /// they are, which is for streams of changes that are consistent already: deleting rows that were never inserted
    /// leaves its views undefined. Columns as in [`Transaction::insert`].
    ///
    /// On an error, such as a weight beyond 2,147,483,647 copies, nothing of the change is made, and the transaction
    /// stays open.
    pub fn change(&mut self, table: &str, rows: RecordBatch, weights: &[i64]) -> Result<()> {
        let entry = self.writer().table(table)?;
        let table = entry.as_table()?;
        table.check_unchecked(&entry.name)?;
        let rows = check::check(&entry, rows.columns())?;
        let (rows, weights) = check::check_weights(rows, weights)?;
        self.stage(&entry, TableChange::weighted(&rows, weights)?)
    }

    /// Gives the transaction a key. A transaction whose key was committed before has no effect: to commit it returns the epoch
    /// of the one before. So a program that does not know whether a commit was successful, because it or the machine ended
    /// meanwhile, can repeat it. With a [state directory](crate::Builder::state) keys outlive the engine. The last 100,000
    /// keys are remembered.
    pub fn set_key(&mut self, key: impl Into<String>) {
        self.key = Some(key.into());
    }

    /// Makes the changes the next epoch, and returns its number; they are visible once it is complete
    /// ([`crate::Engine::wait`]). A transaction without changes makes no epoch and returns the one that it has read as of, or else the last one, unless it
    /// [began at a time of its own](crate::Engine::begin_at).
    ///
    /// Waits while too many epochs are in flight, and while a [`crate::Subscription`] is too far behind. With a
    /// [state directory](crate::Builder::state) it returns once the changes are on the disk; those who commit at the same
    /// time share the wait.
    pub fn commit(self) -> Result<u64> {
        let _call = log::call!("commit");
        let instance = self.instance.clone();
        let committed = self.order()?;
        instance.writer.sync(&committed)?;
        Ok(committed.epoch)
    }

    /// As [`Transaction::commit`], but does not wait for the disk: [`crate::Engine::wait`] does, and so does a later commit
    /// or read. Until then a crash may take the transaction away, and no subscriber gets its changes. A program that
    /// commits one transaction after the other keeps the disk and the workers busy at the same time this way.
    pub fn submit(self) -> Result<u64> {
        let _call = log::call!("submit");
        let instance = self.instance.clone();
        let committed = self.order()?;
        instance.reader.sequencer.report(committed.epoch);
        Ok(committed.epoch)
    }

    /// Whether it has read or written something.
    pub(crate) fn has_begun(&self) -> bool {
        self.version.lock().is_some() || !self.changes.is_empty()
    }

    /// A table that was created before it is complete with its rows.
    pub(crate) fn completes(&mut self, table: &str) {
        self.completes = Some(table.to_owned());
    }

    /// Fails if what it does cannot be committed, whatever others have committed meanwhile.
    fn check_commits(&self) -> Result<()> {
        let is_new = !self.changes.is_empty()
            || self.definitions.is_some()
            || self.is_time_given
            || self.key.is_some();
        if is_new && !self.is_again && self.instance.is_standby() {
            return Err(is_standby("a commit"));
        }
        self.check_inserted()?;
        self.check_inserted_uniques()
    }

    /// Gives it its place among the epochs.
    fn order(self) -> Result<Committed> {
        self.check_commits()?;
        let Self {
            instance,
            changes,
            time,
            is_time_given,
            refused,
            entered,
            key,
            completes,
            overlays,
            version,
            reads,
            lock,
            locks,
            temporary,
            definitions,
            ..
        } = self;
        // They share rows with the changes.
        drop(overlays);
        let writer = &instance.writer;
        writer.poison.check()?;
        let refuse = |epoch, late: &[LateRows]| {
            let refusals = &instance.connectors.refusals;
            refused.iter().try_for_each(|Refused { table, source, rows }| {
                refusals.add(table, source, epoch, rows)
            })?;
            late.iter().try_for_each(|LateRows { table, rows }| {
                refusals.add(table, "LATENESS", epoch, rows)
            })
        };
        // Refused rows are recorded with the epoch.
        let is_recorded = instance.definitions.is_durable();
        // Changes of relations that the transaction drops are not sent anywhere.
        let is_gone = |id: DataflowId| {
            definitions.as_ref().is_some_and(|staged| staged.drops(id))
                || temporary.get(&id).is_some_and(|entry| entry.is_emptied())
        };
        let changes: BTreeMap<_, _> = match (&definitions, temporary.is_empty()) {
            (None, true) => changes,
            _ => changes.into_iter().filter(|(id, _)| !is_gone(*id)).collect(),
        };
        let makes_epoch = changes.values().any(|(_, staged)| !staged.changes().is_empty())
            || is_time_given
            || entered.is_some()
            || key.is_some()
            || (is_recorded && (completes.is_some() || !refused.is_empty()));
        if !makes_epoch && definitions.is_none() {
            let reported = || instance.reader.reported();
            let epoch = version.into_inner().map_or_else(reported, |read| read.epoch());
            refuse(epoch, &[])?;
            return Ok(Committed { epoch, record: None });
        }
        let committed = |key: &Option<String>| match key {
            Some(key) => writer.committed(key),
            None => Ok(None),
        };
        if let Some(epoch) = committed(&key)? {
            return Ok(Committed { epoch, record: None });
        }
        let mut candidates = match definitions {
            Some(staged) => Some(instance.definitions.build(*staged, writer)?),
            None => None,
        };
        let budget = writer.context.budget();
        let in_time: Vec<_> = changes.values().map(|(_, staged)| staged.in_time()).collect();
        let changes = changes.into_iter().map(|(table, (name, staged))| {
            let created = candidates.as_ref().and_then(|candidates| candidates.table(table));
            let entry = match created.or_else(|| temporary.get(&table)) {
                Some(created) => created.clone(),
                None => validation::check_there(&instance.reader, table, &name)?,
            };
            let renamed = candidates.as_ref().and_then(|candidates| candidates.name_of(table));
            let name = renamed.unwrap_or(&entry.name).to_owned();
            let has_key = entry.key_columns()?.is_some() || entry.uniques().next().is_some();
            let is_temporary = temporary.contains_key(&table);
            let changes = staged.into_changes(budget)?;
            Ok(Changed { table, name, has_key, is_temporary, changes })
        });
        let changes: Vec<Changed> = changes.collect::<Result<_>>()?;
        let version = version.into_inner();
        // Relations that only the session sees count as written at the version that was read.
        let is_private = candidates.is_none()
            && key.is_none()
            && !changes.is_empty()
            && changes.iter().all(|changed| changed.is_temporary);
        let validation = match &version {
            Some(version) if !is_private => {
                Some(Validation::begin(&instance.reader, version, &reads)?)
            }
            _ => None,
        };
        let is_read_again = matches!(entered, Some(EnteredPortion::ReadAgain(_)));
        let recorded = match is_read_again {
            true => None,
            false => writer.record_changes(&changes)?,
        };
        let lock = lock.map_or_else(|| writer.lock(), Ok)?;
        if let Some(epoch) = committed(&key)? {
            return Ok(Committed { epoch, record: None });
        }
        for (changed, in_time) in changes.iter().zip(in_time) {
            let Changed { table, name, changes, is_temporary, .. } = changed;
            if *is_temporary {
                continue;
            }
            if candidates.as_ref().is_none_or(|candidates| candidates.table(*table).is_none()) {
                validation::check_there(&instance.reader, *table, name)?;
            }
            if let Some(before) = in_time {
                validation::check_in_time(name, changes, before, writer.bounds(*table))?;
            }
        }
        validation.map_or(Ok(()), Validation::finish)?;
        let rows = match is_recorded && !is_read_again {
            true => refused.iter().map(Refused::recorded).collect::<Result<_>>()?,
            false => Vec::new(),
        };
        let time = match (is_time_given, &version) {
            (true, _) => writer.time_of_epoch(Some(time))?,
            // A transaction that only writes has the time at which it began, as its DEFAULTs have.
            (false, None) => writer.not_before_last(time),
            (false, Some(_)) => writer.time_of_epoch(None)?,
        };
        let commit = |mut changes: Vec<Changed>, definitions: Option<Exchange<'_>>| {
            if let Some(exchange) = &definitions {
                changes.iter_mut().for_each(|changed| exchange.hand_on(changed));
            }
            let definitions = definitions.map(|exchange| exchange.defined);
            match (makes_epoch, definitions) {
                (false, Some(defined)) => {
                    let committed = writer.define(defined)?;
                    refuse(committed.epoch, &[]).map(|()| committed)
                }
                (_, definitions) => {
                    let refused = rows;
                    let commit = Commit {
                        changes,
                        recorded,
                        time,
                        entered,
                        key,
                        completes,
                        refused,
                        definitions,
                    };
                    writer.commit(commit, refuse)
                }
            }
        };
        let Some(candidates) = &mut candidates else {
            let committed = commit(changes, None)?;
            drop((lock, locks));
            version.into_iter().for_each(ReadVersion::supersede);
            return Ok(committed);
        };
        let parts = Parts {
            writer,
            reader: &instance.reader,
            connectors: &instance.connectors,
            base: Path::new(""),
        };
        candidates.take_places(parts, lock, |exchange| commit(changes, Some(exchange)))
    }

    /// Pins relations, and those of the dataflows `others` that can be read, as of the version that it reads. If one of the first is
    /// newer than that, it moves to a later version, and fails if its earlier reads differ there.
    pub(crate) fn pin(
        &self,
        reader: &Reader,
        (relations, others): (&[&Entry], &[DataflowId]),
        durable: Durable,
    ) -> Result<Option<(Epoch, PinnedParts)>> {
        let ids: Vec<DataflowId> = relations.iter().filter_map(|entry| entry.dataflow()).collect();
        let ids = &*ids;
        let mut version = self.version.lock();
        if !armed(Fault::ReadLast)
            && let Some(version) = &mut *version
            && relations.iter().all(|entry| entry.is_there_as_of(version.epoch()))
            && let Some(parts) = version.pin(reader, (ids, others), durable)?
        {
            return Ok(Some((version.epoch(), parts)));
        }
        let next = match &*version {
            None => self.first_version((ids, others), durable)?,
            Some(_) => ReadVersion::last(reader, (ids, others), durable)?,
        };
        let Some((next, parts)) = next else {
            return match &*version {
                Some(_) => Err(too_new()),
                None => Ok(None),
            };
        };
        let epoch = next.epoch();
        self.move_to(&mut version, next)?;
        Ok(Some((epoch, parts)))
    }

    fn first_version(
        &self,
        relations: (&[DataflowId], &[DataflowId]),
        durable: Durable,
    ) -> Result<Option<(ReadVersion, PinnedParts)>> {
        match self.reads_reported {
            true => ReadVersion::reported(&self.instance.reader, relations, durable),
            false => ReadVersion::last(&self.instance.reader, relations, durable),
        }
    }

    /// The version that it reads, the first one if it has read nothing. Fails if a table does not exist as of that.
    fn version_with<'a>(
        &self,
        version: &'a mut Option<ReadVersion>,
        table: &Entry,
    ) -> Result<&'a mut ReadVersion> {
        if version.is_none() {
            let first = self.first_version((&[], &[]), Durable::No)?;
            *version = first.map(|(version, _)| version);
        }
        let version = version.as_mut().ok_or_else(|| Error::replaced(&table.name))?;
        match table.is_there_as_of(version.epoch()) {
            true => Ok(version),
            false => Err(too_new()),
        }
    }

    /// Whether it was committed before, by its key: then it has no effect, and its rows are there.
    fn is_committed(&self) -> Result<bool> {
        match &self.key {
            Some(key) => Ok(self.writer().committed(key)?.is_some()),
            None => Ok(false),
        }
    }

    /// Moves to a later version. Fails, and stays at the one before, if its reads differ there.
    fn move_to(&self, version: &mut Option<ReadVersion>, next: ReadVersion) -> Result<()> {
        if let Some(before) = &*version
            && !armed(Fault::MoveVersion)
            && !armed(Fault::ReadLast)
        {
            Validation::begin(&self.instance.reader, before, &self.reads)?.finish()?;
        }
        if let Some(before) = version.replace(next) {
            before.supersede();
        }
        Ok(())
    }

    /// Notes its reads of a relation.
    pub(crate) fn noted(&self, id: DataflowId, name: &str) -> Noted {
        Noted::new(&self.reads, id, name)
    }

    /// Fails with the first refusal if the engine is strict.
    pub(crate) fn check_refused(&self, refusals: &[Refusal]) -> Result<()> {
        match refusals.first() {
            Some(first) if self.instance.settings.strict => Err(Error::source(first.to_string())),
            _ => Ok(()),
        }
    }

    /// Adds rows that a source refused to bring into a table; `alluvium.errors` shows them once the transaction has
    /// committed.
    pub(crate) fn refuse(&mut self, table: &str, source: &str, rows: Refusing) {
        if rows.len() > 0 {
            let (table, source) = (table.to_owned(), source.to_owned());
            self.refused.push(Refused { table, source, rows });
        }
    }

    /// Begins to stage the changes of a statement to a table.
    pub(crate) fn begin_staging<'a>(&self, table: &'a Entry) -> Result<Staging<'a>> {
        let bounds = table.dataflow().and_then(|id| self.writer().bounds(id));
        let checks = table.checks(&self.instance.definitions.planner)?;
        Ok(Staging::new(table, bounds, checks.cloned(), &self.writer().context))
    }

    /// Makes the changes of a statement part of the transaction. Returns how many rows are deleted and inserted. Fails, and
    /// adds nothing, if two rows would have values that are UNIQUE.
    pub(crate) fn finish_staging(&mut self, staging: Staging<'_>) -> Result<u64> {
        let (rows, is_new) = (staging.rows(), staging.is_new());
        let Staging { table, deletions, insertions, bounds, values, .. } = staging;
        let staged = self.staged(table)?;
        let before = staged.rows();
        staged.append([deletions, insertions])?;
        staged.note_bounds(bounds);
        if let Err(error) = self.check_unique(table, &values, (before, is_new)) {
            self.staged(table)?.truncate(before);
            self.overlays.get_mut().remove(&table.as_table()?.id);
            return Err(error);
        }
        Ok(rows)
    }

    /// It is a portion of an input.
    pub(crate) fn set_entered(&mut self, portion: EnteredPortion) {
        self.entered = Some(portion);
    }

    /// Stages a change that was committed before.
    pub(crate) fn restore(&mut self, table: &str, change: TableChange) -> Result<()> {
        let entry = self.writer().table(table)?;
        change.check(&entry)?;
        self.stage(&entry, change)
    }

    /// Gives it the time of the epoch that it makes again.
    pub(crate) fn restore_time(&mut self, time: Moment) {
        (self.time, self.is_time_given, self.is_again) = (time, true, true);
    }

    fn stage(&mut self, table: &Entry, change: TableChange) -> Result<()> {
        self.staged(table)?.push(change)
    }

    fn staged(&mut self, table: &Entry) -> Result<&mut Staged> {
        let id = table.as_table()?.id;
        if table.temporary().is_some() {
            self.temporary.entry(id).or_insert_with(|| Arc::new(table.clone()));
        } else if !table.is_staged {
            validation::check_there(&self.instance.reader, id, &table.name)?;
        }
        let context = &self.instance.writer.context;
        let staged = || (table.name.clone(), Staged::new(context));
        Ok(&mut self.changes.entry(id).or_insert_with(staged).1)
    }

    /// The transaction's writes to a table, to be applied to the rows it held before; `None` without writes.
    pub(crate) fn overlay(&self, entry: &Entry) -> Result<Option<Arc<Overlay>>> {
        let table = entry.as_table()?;
        let Some((_, staged)) = self.changes.get(&table.id) else { return Ok(None) };
        if staged.changes().is_empty() || armed(Fault::HideWrites) {
            return Ok(None);
        }
        let mut overlays = self.overlays.lock();
        // The one of the statement before has all but the last changes.
        let mut overlay = match overlays.remove(&table.id).map(Arc::try_unwrap) {
            Some(Ok(overlay)) => overlay,
            _ => Overlay::of_table(entry, self.writer().bounds(table.id))?,
        };
        overlay.extend(staged.changes())?;
        let overlay = Arc::new(overlay);
        if staged.is_in_memory() {
            overlays.insert(table.id, overlay.clone());
        }
        Ok(Some(overlay))
    }

    /// The relations as it sees them.
    pub(crate) fn entries(&self) -> Arc<Entries> {
        match &self.definitions {
            None => self.instance.definitions.catalog.entries(),
            Some(staged) => staged.entries().clone(),
        }
    }

    /// Its definitions, if it has any.
    pub(crate) fn definitions(&self) -> Option<&StagedDefinitions> {
        self.definitions.as_deref()
    }

    /// From now on it defines this.
    pub(crate) fn set_definitions(&mut self, definitions: StagedDefinitions) {
        self.definitions = Some(Box::new(definitions));
    }

    /// Whether it has changed rows of a table.
    pub(crate) fn has_written(&self, table: &Entry) -> bool {
        let Ok(table) = table.as_table() else { return false };
        self.changes.get(&table.id).is_some_and(|(_, staged)| !staged.changes().is_empty())
    }

    /// The budget that its rows are counted in.
    pub(crate) fn budget(&self) -> &MemoryBudget {
        self.instance.context.budget()
    }

    fn writer(&self) -> &Writer {
        &self.instance.writer
    }

    /// The value of `NOW()` in it.
    pub(crate) fn time(&self) -> Moment {
        self.time
    }
}
