//! Resuming from a checkpoint, and replaying the journal.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use alluvium_sql::error::Position as Place;
use alluvium_sql::statement::{self, TableDefinition};
use alluvium_storage::{Journal, Position};
use arrow::ipc::reader::StreamReader;

use super::ahead::Found;
use super::past::Past;
use super::persisted::ConnectorFacts;
use super::portion::{EnteredPortion, InputName, ReadPortion};
use super::record::{ChangedTable, Record};
use super::restore::Restored;
use super::{ahead, damage};
use crate::changes::TableChange;
use crate::clock::Moment;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::instance::Instance;
use crate::sink::OutputMode;
use crate::source::{Input, InputReader, Portion, named};
use crate::transaction::Transaction;
use crate::worker::DataflowId;

/// What a replay knows of records that it has seen, for those that follow.
#[derive(Default)]
pub(crate) struct Replayed {
    /// The numbers of the transactions with parts that have an epoch.
    committed: HashSet<u64>,
    /// The numbers of those that have definitions as well, which come after their parts; and where the first part is, once it has come.
    defining: HashMap<u64, Option<Position>>,
    /// Those whose parts come, by their numbers, and how many have come.
    parts: HashMap<u64, (Transaction, u32)>,
    /// The first parts of those whose epochs have not come.
    open: HashMap<u64, Position>,
    /// The readers that read inputs again, in portions of so many rows.
    readers: HashMap<InputName, (Arc<Input>, usize, InputReader)>,
    /// Tables whose first rows have not come.
    incomplete: Vec<DataflowId>,
    /// Tables of which an input could not be read again, and why.
    unread: Vec<(DataflowId, Error)>,
}

impl Replayed {
    /// The first record of transactions whose epochs have not come.
    pub(super) fn first_open(&self) -> Option<Position> {
        self.open.values().min().copied()
    }

    /// The tables whose first rows have not come.
    pub(crate) fn incomplete(&self) -> &[DataflowId] {
        &self.incomplete
    }

    /// Whether nobody but the replay has the engine any more: it and each transaction whose parts come.
    pub(super) fn has_alone(&self, engine: &Engine) -> bool {
        Arc::strong_count(&engine.instance) <= 1 + self.parts.len()
    }

    /// The writer needs no record before this position: transactions whose parts are there have ended.
    pub(super) fn released(&mut self, before: Position) {
        self.open.retain(|_, first| *first >= before);
    }
}

/// Does everything again that the journal has, after the checkpoint if there is one.
pub(crate) fn resume(
    engine: &Engine,
    restored: Option<Restored>,
    journal: &dyn Journal,
) -> Result<Replayed> {
    let definitions = &engine.instance.definitions;
    let from = |restored: &Restored| Position(restored.checkpoint.replay);
    let start = restored.as_ref().map_or(journal.range().start, from);
    // A checkpoint has all before the end, except for parts of an epoch that ends later.
    let end = Position(restored.as_ref().map_or(0, |restored| restored.checkpoint.end));
    let relations = restored.iter().flat_map(|restored| &restored.checkpoint.definitions);
    let relations = relations.map(|(_, made)| made);
    let found = ahead::search(&definitions.planner, relations, journal, start, end)?;
    let sequencer = &engine.instance.reader.sequencer;
    for (relation, reason) in found.failing {
        sequencer.expect_failed(relation, reason);
    }
    definitions.expect_journal();
    let (committed, defining) = (found.committed, found.defining);
    let mut replayed = Replayed { committed, defining, ..Replayed::default() };
    let mut replay = Replay { engine, known: &mut replayed };
    if let Some(mut restored) = restored {
        let Instance { connectors, poison, .. } = &*engine.instance;
        let checkpoint = &mut restored.checkpoint;
        let relations = std::mem::take(&mut checkpoint.definitions);
        sequencer.restore_facts(checkpoint)?;
        ConnectorFacts::new(&connectors.outputs, &connectors.refusals, poison)
            .restore(checkpoint)?;
        definitions.restoring(restored, || {
            relations.iter().try_for_each(|(name, definition)| {
                replay.apply(definition.clone()).map_err(|error| Error::Start {
                    message: format!("\"{name}\" cannot be made again: {error}"),
                })
            })
        })?;
    }
    let failed = |error: &dyn std::fmt::Display| Error::Start {
        message: format!("the journal cannot be replayed: {error}"),
    };
    let records = journal.replay(start).map_err(|error| failed(&damage::of_storage(&error)))?;
    let mut next = end.max(start);
    for record in records {
        let (position, bytes) = record.map_err(|error| failed(&damage::of_storage(&error)))?;
        next = next.max(Position(position.0 + 1));
        let place = journal.place(position);
        let record =
            Record::decode(&bytes).map_err(|what| failed(&format_args!("{place}: {what}")))?;
        match record {
            _ if position >= end => {}
            Record::Part { .. } => {}
            // The checkpoint has the rows of its parts.
            Record::Epoch { transaction, .. } => {
                replay.known.parts.remove(&transaction);
                replay.known.open.remove(&transaction);
                continue;
            }
            _ => continue,
        }
        replay.note_open(&record, position);
        let applied = replay.step(record, (Past::Opened(journal), position));
        applied.map_err(|error| failed(&format_args!("{place}: {error}")))?;
    }
    engine.instance.connectors.outputs.check_missing()?;
    replay.check_unread()?;
    // Parts without their epoch are of transactions that were never committed, or whose epochs come.
    replayed.parts.clear();
    if let Some(following) = sequencer.durable().following() {
        following.replayed(next, replayed.first_open());
    }
    engine.wait(engine.instance.writer.last()).map(|()| replayed)
}

/// Does again what a record says, which another engine has written meanwhile.
pub(super) fn follow(
    engine: &Engine,
    replayed: &mut Replayed,
    record: Record,
    (journal, position): (Past<'_>, Position),
) -> Result<()> {
    let mut replay = Replay { engine, known: replayed };
    if matches!(record, Record::Part { .. }) {
        // It is read again once it is known whether its transaction is committed.
        replay.note_open(&record, position);
        return Ok(());
    }
    let mut found = Found::default();
    found.note_parts(&record).map_err(Error::data)?;
    for transaction in found.committed {
        let Some(first) = replay.known.open.remove(&transaction) else {
            return Err(Error::data("the parts that it follows are missing"));
        };
        replay.known.committed.insert(transaction);
        match found.defining.contains_key(&transaction) {
            true => drop(replay.known.defining.insert(transaction, Some(first))),
            false => replay.stage_parts(transaction, journal, first..position)?,
        }
    }
    replay.step(record, (journal, position))?;
    replay.known.committed.clear();
    engine.instance.connectors.outputs.check_missing()?;
    replay.check_unread()
}

/// Drops tables whose first rows had not come when the engine ended. One that others have written to or read stays.
pub(crate) fn finish_incomplete(engine: &Engine, tables: &[DataflowId]) -> Result<()> {
    let Instance { definitions, writer, connectors, .. } = &*engine.instance;
    for entry in tables.iter().filter_map(|id| definitions.catalog.of_dataflow(*id)) {
        let is_unused = definitions.catalog.check_unused(&entry.name).is_ok();
        if is_unused && !definitions.has_entered(&entry) {
            definitions.undo(&entry.name, writer, connectors)?;
        } else {
            let mut transaction = Transaction::begin(&engine.instance, None)?;
            transaction.completes(&entry.name);
            transaction.commit()?;
        }
    }
    Ok(())
}

struct Replay<'a> {
    engine: &'a Engine,
    known: &'a mut Replayed,
}

impl Replay<'_> {
    /// Notes the first part of a transaction that may never be committed.
    fn note_open(&mut self, record: &Record, position: Position) {
        if let Record::Part { transaction, number: 0, .. } = record
            && !self.known.committed.contains(transaction)
        {
            self.known.open.insert(*transaction, position);
        }
    }

    /// Does again what the record at a position says.
    fn step(&mut self, record: Record, (journal, position): (Past<'_>, Position)) -> Result<()> {
        match record {
            Record::Transaction { definitions, epoch } => {
                self.transact(&definitions, epoch.as_deref(), (journal, position))
            }
            // The relations they change may be defined after them.
            Record::Part { transaction, .. } if self.known.defining.contains_key(&transaction) => {
                let first = self.known.defining.entry(transaction).or_default();
                first.get_or_insert(position);
                Ok(())
            }
            record => self.apply(record),
        }
    }

    fn apply(&mut self, record: Record) -> Result<()> {
        let instance = &self.engine.instance;
        match record {
            Record::Definition { sql, base, now } => {
                let statements =
                    statement::parse(&sql).collect::<std::result::Result<Vec<_>, _>>()?;
                instance.writer.with_time(now, || {
                    let mut session = self.engine.session();
                    session.set_base(base);
                    statements.iter().try_for_each(|statement| session.redo(statement))
                })
            }
            Record::Clock { now } => instance.definitions.start_clock(now),
            Record::Table { name, columns } => {
                self.create_table(&name, &columns)?;
                instance.definitions.complete_table(&name);
                Ok(())
            }
            Record::Incomplete { name, columns } => {
                self.create_table(&name, &columns)?;
                self.known.incomplete.extend(instance.definitions.catalog.get(&name)?.dataflow());
                Ok(())
            }
            Record::Completing { table, epoch } => {
                let epoch = Record::decode(&epoch).map_err(Error::data)?;
                self.apply(epoch)?;
                instance.definitions.complete_table(&table);
                if let Ok(completed) = instance.definitions.catalog.get(&table) {
                    self.known.incomplete.retain(|id| Some(*id) != completed.dataflow());
                }
                Ok(())
            }
            Record::Output { relation, path, format, options, changes } => {
                let mode = if changes { OutputMode::Changes } else { OutputMode::Contents };
                let path = Path::new(&path);
                let added = instance.output(&relation, path, format.as_deref(), &options, mode);
                // The journal may say that the relation is dropped later.
                added.or_else(|error| {
                    instance.connectors.outputs.miss(&relation, error);
                    Ok(())
                })
            }
            Record::Part { transaction, number, changes } => {
                if !self.known.committed.contains(&transaction) {
                    return Ok(());
                }
                // In versions before 4 parts of a transaction that failed may come before those of the next one.
                let begun = if number == 0 { None } else { self.known.parts.remove(&transaction) };
                let mut begun = self.follow(begun, number)?;
                stage(&mut begun, changes)?;
                self.known.parts.insert(transaction, (begun, number + 1));
                Ok(())
            }
            Record::Transaction { .. } => {
                Err(Error::data("a transaction is not part of another one"))
            }
            Record::Epoch { number, time, transaction, parts, changes, key, refused, end } => {
                let begun = if parts == 0 { None } else { self.known.parts.remove(&transaction) };
                let mut transaction = self.follow(begun, parts)?;
                stage(&mut transaction, changes)?;
                transaction.restore_time(time);
                if let Some(key) = key {
                    transaction.set_key(key);
                }
                for rows in refused {
                    let (table, source) = (rows.table.clone(), rows.source.clone());
                    transaction.refuse(&table, &source, rows.refusing());
                }
                if let Some((input, end)) = end {
                    transaction.set_entered(EnteredPortion::Recorded(input, end));
                }
                commit(transaction, number)
            }
            Record::Read { number, time, portion } => self.read(number, time, &portion),
            Record::Sequence { name, value } => {
                instance.reader.sequencer.restore_sequence(&name, value);
                Ok(())
            }
            Record::Failed { relation, reason } => {
                instance.definitions.replay_failed(&relation, &reason);
                Ok(())
            }
            Record::Resumed { relation } => {
                instance.definitions.replay_resumed(&relation, &instance.connectors)
            }
        }
    }

    /// Creates a table of columns that are an Arrow stream without rows.
    fn create_table(&self, name: &str, columns: &[u8]) -> Result<()> {
        let columns = StreamReader::try_new(columns, None)?.schema();
        let place = Place { line: 1, column: 1 };
        let definition = TableDefinition::with_columns(name, place, &columns)?;
        let Instance { definitions, writer, connectors, .. } = &*self.engine.instance;
        definitions.create_table(&definition, Path::new(""), writer, connectors)
    }

    /// Reads a portion of an input again.
    fn read(&mut self, number: u64, time: Moment, recorded: &ReadPortion) -> Result<()> {
        let Instance { connectors, .. } = &*self.engine.instance;
        let Some(input) = connectors.inputs.find(&recorded.input) else {
            let InputName { table, number } = &recorded.input;
            return Err(Error::data(format!("there is no input {number} of a table \"{table}\"")));
        };
        let table = self.engine.instance.definitions.catalog.get(&recorded.input.table)?;
        let id = table.as_table()?.id;
        let is_unread = self.known.unread.iter().any(|(unread, _)| *unread == id);
        let portion = match is_unread {
            true => None,
            false => match self.next_portion(&input, recorded) {
                Ok(portion) => Some(portion),
                // The journal may say that the table is dropped later.
                Err(error) => {
                    self.known.unread.push((id, error));
                    None
                }
            },
        };
        let mut transaction = Transaction::begin(&self.engine.instance, None)?;
        transaction.restore_time(time);
        if let Some(portion) = portion {
            transaction.enter(
                &input,
                &portion,
                Some(EnteredPortion::ReadAgain(recorded.clone())),
            )?;
        }
        commit(transaction, number)
    }

    /// Fails if a table is there of which an input could not be read again.
    fn check_unread(&self) -> Result<()> {
        let catalog = &self.engine.instance.definitions.catalog;
        match self.known.unread.iter().find(|(id, _)| catalog.of_dataflow(*id).is_some()) {
            Some((_, error)) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// The portion of an input that comes next, of as many rows as were recorded. The reader of the one before continues, if
    /// it was as long.
    fn next_portion(&mut self, input: &Arc<Input>, recorded: &ReadPortion) -> Result<Portion> {
        let before = self.known.readers.remove(&recorded.input);
        let before =
            before.filter(|(of, rows, _)| Arc::ptr_eq(of, input) && *rows == recorded.len());
        let mut reader = match before {
            Some((_, _, reader)) => reader,
            None => self.engine.instance.open_input(input, (recorded.len(), usize::MAX), None)?,
        };
        let portion =
            read_again(&mut reader, input, recorded).map_err(|error| named(input, error))?;
        self.known.readers.insert(input.id(), (input.clone(), recorded.len(), reader));
        Ok(portion)
    }

    /// Does a transaction with definitions again, whose record is at `end`.
    fn transact(
        &mut self,
        definitions: &[Vec<u8>],
        epoch: Option<&[u8]>,
        (journal, end): (Past<'_>, Position),
    ) -> Result<()> {
        for definition in definitions {
            self.apply(Record::decode(definition).map_err(Error::data)?)?;
        }
        let Some(epoch) = epoch else { return Ok(()) };
        let epoch = Record::decode(epoch).map_err(Error::data)?;
        if let Record::Epoch { transaction, .. } = &epoch
            && let Some(Some(first)) = self.known.defining.remove(transaction)
        {
            self.stage_parts(*transaction, journal, first..end)?;
        }
        self.apply(epoch)
    }

    /// Stages the parts of a transaction, which are in this range.
    fn stage_parts(&mut self, of: u64, journal: Past<'_>, range: Range<Position>) -> Result<()> {
        let damaged = |error| Error::data(damage::of_storage(&error).to_string());
        let mut records = journal.records(range.start).map_err(damaged)?;
        for position in (range.start.0..range.end.0).map(Position) {
            let ended = || Error::data(format!("{} is missing", journal.place(position)));
            let next = records.next(|| self.known.has_alone(self.engine));
            let bytes = next.map_err(damaged)?.ok_or_else(ended)?;
            let record = Record::decode(&bytes).map_err(Error::data)?;
            if matches!(record, Record::Part { transaction, .. } if transaction == of) {
                self.apply(record)?;
            }
        }
        Ok(())
    }

    /// The transaction of which so many parts come before this record.
    fn follow(&self, begun: Option<(Transaction, u32)>, parts: u32) -> Result<Transaction> {
        match begun {
            None if parts == 0 => Transaction::begin(&self.engine.instance, None),
            Some((begun, known)) if known == parts => Ok(begun),
            begun => {
                let known = begun.map_or(0, |(_, known)| known);
                Err(Error::data(format!("it follows {parts} parts, and not {known}")))
            }
        }
    }
}

fn stage(transaction: &mut Transaction, changes: Vec<ChangedTable>) -> Result<()> {
    changes.into_iter().try_for_each(|ChangedTable { table, weights, rows }| {
        transaction.restore(&table, TableChange::decode(weights, rows)?)
    })
}

/// The next portion of an input, which has to be as it was.
fn read_again(reader: &mut InputReader, input: &Input, recorded: &ReadPortion) -> Result<Portion> {
    let (portion, end) = (reader.next_to(&recorded.end.position())?, reader.position()?);
    let (Some(portion), Some(end)) = (portion, end) else {
        let (end, rows) = (recorded.end.position(), recorded.len());
        return Err(Error::source(format!(
            "what was read is not there any more: it ends, and {rows} rows up to {end} were read before"
        )));
    };
    recorded.check(&ReadPortion::new(input.id(), &portion, &end))?;
    Ok(portion)
}

/// Makes an epoch again, of this number.
fn commit(transaction: Transaction, number: u64) -> Result<()> {
    match transaction.commit()? {
        epoch if epoch == number => Ok(()),
        epoch => Err(Error::data(format!("it is of epoch {number}, and not of {epoch}"))),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use alluvium_storage::{
        ClaimedStorage, Manifests, MemoryJournal, MemoryManifests, MemoryStorage,
    };
    use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
    use arrow::datatypes::Int64Type;

    use super::*;
    use crate::catalog::RelationKind;
    use crate::durable::archive;
    use crate::durable::checkpoint::{Checkpoint, DataflowName};
    use crate::durable::record::UNNUMBERED;
    use crate::durable::versions::record_3;
    use crate::unstable::BuilderParts;

    /// One row of the table `t`.
    fn row(n: i64) -> Vec<ChangedTable> {
        let column: ArrayRef = Arc::new(Int64Array::from(vec![n]));
        let rows = RecordBatch::try_from_iter([("n", column)]).unwrap();
        let (weights, rows) = TableChange::insertions(rows).encode().unwrap();
        vec![ChangedTable { table: "t".to_owned(), weights, rows }]
    }

    fn journal(records: &[Record]) -> Arc<MemoryJournal> {
        let journal = MemoryJournal::default();
        for record in records {
            let position = journal.append(&record.encode().unwrap()).unwrap();
            journal.sync(position).unwrap();
        }
        Arc::new(journal)
    }

    fn table() -> Record {
        Record::definition("CREATE TABLE t (n BIGINT)", Path::new(""), 0).unwrap()
    }

    fn part(transaction: u64, number: u32, n: i64) -> Record {
        Record::Part { transaction, number, changes: row(n) }
    }

    /// An epoch of the transaction of this number.
    fn epoch_of(transaction: u64, number: u64, parts: u32, n: i64) -> Record {
        let (time, changes, key, refused) = (number as i64, row(n), None, Vec::new());
        Record::Epoch { number, time, transaction, parts, changes, key, refused, end: None }
    }

    fn epoch(number: u64, n: i64) -> Record {
        epoch_of(UNNUMBERED, number, 0, n)
    }

    fn numbers(engine: &Engine, relation: &str) -> Vec<i64> {
        let rows = engine.query(&format!("SELECT n FROM {relation} ORDER BY n")).unwrap();
        rows[0].column(0).as_primitive::<Int64Type>().values().to_vec()
    }

    #[test]
    fn a_table_whose_rows_are_kept_in_another_way_is_refused_and_a_view_is_computed_again() {
        let (journal, manifests) = (journal(&[]), Arc::new(MemoryManifests::default()));
        let blobs = MemoryStorage::default();
        let open = || {
            let blobs = ClaimedStorage::open(Arc::new(blobs.clone())).unwrap();
            Engine::builder()
                .workers(2)
                .store(journal.clone(), manifests.clone(), Arc::new(blobs))
                .open()
        };
        let engine = open().unwrap();
        engine
            .execute(
                "CREATE TABLE t (n BIGINT); CREATE TABLE e (n BIGINT);
                 CREATE MATERIALIZED VIEW v AS SELECT SUM(n) AS s FROM t; INSERT INTO t VALUES (1), (2); CHECKPOINT",
            )
            .unwrap();
        drop(engine);
        let publish = |name: &str| {
            let last = manifests.list().unwrap().pop().unwrap();
            let mut checkpoint = Checkpoint::decode(&manifests.read(last).unwrap()).unwrap();
            for dataflow in &mut checkpoint.dataflows {
                if dataflow.key.name == DataflowName::Relation(name.to_owned()) {
                    dataflow.key.fingerprint = "another".to_owned();
                }
            }
            manifests.publish(last + 1, &checkpoint.encode().unwrap()).unwrap();
        };
        for other in ["v", "e"] {
            publish(other);
            let rows = open().unwrap().query("SELECT s FROM v").unwrap();
            assert_eq!(rows[0].column(0).as_primitive::<Int64Type>().values(), &[3], "{other}");
        }
        publish("t");
        let error = open().err().unwrap().to_string();
        assert!(error.contains("the rows of \"t\"") && error.contains("version"), "{error}");
    }

    #[test]
    fn relations_that_have_failed_are_known_until_they_resume_or_are_dropped() {
        let (journal, manifests) = (journal(&[]), Arc::new(MemoryManifests::default()));
        let blobs = MemoryStorage::default();
        let open = || {
            let blobs = ClaimedStorage::open(Arc::new(blobs.clone())).unwrap();
            let engine = Engine::builder()
                .workers(1)
                .store(journal.clone(), manifests.clone(), Arc::new(blobs))
                .open();
            engine.unwrap()
        };
        let failed = |engine: &Engine| {
            let failed = engine.instance.reader.sequencer.failed();
            failed.into_iter().map(|(name, reason)| format!("{name}: {reason}")).collect::<Vec<_>>()
        };
        let definitions = "CREATE TABLE t (n BIGINT);
            CREATE MATERIALIZED VIEW a AS SELECT SUM(n) AS s FROM t; CREATE MATERIALIZED VIEW b AS SELECT n FROM t;
            CREATE MATERIALIZED VIEW c AS SELECT n + 1 AS n FROM t; CREATE MATERIALIZED VIEW d AS SELECT n FROM t";
        let mut engine = open();
        engine.execute(definitions).unwrap();
        let sequencer = &engine.instance.reader.sequencer;
        sequencer.record_failed("a", "it overflows").unwrap();
        sequencer.record_failed("a", "once more").unwrap();
        sequencer.record_failed("c", "it panics").unwrap();
        sequencer.record_failed("d", "it panics").unwrap();
        let expected = ["a: it overflows", "c: it panics", "d: it panics"];
        for behind in ["", "CHECKPOINT", "INSERT INTO t VALUES (1)", "CHECKPOINT"] {
            assert_eq!(failed(&engine), expected, "{behind}");
            engine.execute(behind).unwrap();
            drop(engine);
            engine = open();
        }
        let is_running = |view: &str| engine.query(&format!("SELECT * FROM {view}")).is_ok();
        assert_eq!(["a", "b", "c", "d"].map(is_running), [false, true, false, false]);
        engine
            .execute(
                "ALTER VIEW a RESUME; DROP VIEW c; CREATE MATERIALIZED VIEW c AS SELECT n FROM t;
                 CREATE OR REPLACE VIEW d AS SELECT n FROM t",
            )
            .unwrap();
        for behind in ["", "CHECKPOINT"] {
            assert_eq!(failed(&engine), [""; 0]);
            engine.execute(behind).unwrap();
            drop(engine);
            engine = open();
        }
    }

    #[test]
    fn parts_of_transactions_may_interleave_and_those_of_one_that_failed_belong_to_no_other() {
        let records = [
            table(),
            part(2, 0, 1),
            part(3, 0, 100),
            part(4, 0, 10),
            part(2, 1, 2),
            epoch(1, 4),
            part(3, 1, 101),
            epoch_of(4, 2, 1, 11),
            part(2, 2, 3),
            epoch_of(2, 3, 3, 5),
            part(11, 0, 102),
        ];
        let engine = Engine::builder().workers(1).journal(journal(&records)).open().unwrap();
        assert_eq!(numbers(&engine, "t"), [1, 2, 3, 4, 5, 10, 11]);
    }

    #[test]
    fn a_table_is_dropped_behind_parts_of_a_transaction_that_failed() {
        let dropped = Record::dropped(RelationKind::Table, "t", false);
        let replaced = "CREATE OR REPLACE TABLE t (n BIGINT)";
        let replaced = Record::definition(replaced, Path::new(""), 0).unwrap();
        let records = [
            table(),
            part(2, 0, 1),
            dropped,
            table(),
            part(5, 0, 2),
            part(5, 1, 3),
            replaced,
            part(8, 0, 4),
            Record::definition("CREATE VIEW v AS SELECT * FROM t", Path::new(""), 0).unwrap(),
            epoch_of(8, 1, 1, 5),
        ];
        let engine = Engine::builder().workers(1).journal(journal(&records)).open().unwrap();
        assert_eq!(numbers(&engine, "v"), [4, 5]);
    }

    /// There, the parts of an epoch come right before it, and nothing says that a transaction with parts has failed.
    #[test]
    fn parts_in_records_of_version_3_are_of_the_next_epoch() {
        let part = |number, n| record_3::Record::Part { number, changes: row(n) };
        let epoch = |number: u64, parts, n| {
            let (time, changes, key, refused) = (number as i64, row(n), None, Vec::new());
            record_3::Record::Epoch { number, time, parts, changes, key, refused }
        };
        let definition = |sql: &str| {
            let (sql, base) = (sql.to_owned(), String::new());
            record_3::Record::Definition { sql, base, now: 0 }
        };
        let records = [
            definition("CREATE TABLE t (n BIGINT)"),
            part(0, 1),
            part(1, 2),
            epoch(1, 2, 3),
            // Three transactions that failed.
            part(0, 100),
            part(1, 101),
            epoch(2, 0, 4),
            part(0, 102),
            part(0, 5),
            epoch(3, 1, 6),
            definition("CREATE TABLE other (n BIGINT)"),
            part(0, 103),
            definition("DROP TABLE other"),
        ];
        let journal = MemoryJournal::default();
        for record in &records {
            let bytes = archive::encode(record, record_3::VERSION).unwrap();
            let position = journal.append(&bytes).unwrap();
            journal.sync(position).unwrap();
        }
        let engine = Engine::builder().workers(1).journal(Arc::new(journal)).open().unwrap();
        assert_eq!(numbers(&engine, "t"), [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn a_journal_that_is_none_of_ours_is_refused_with_the_record() {
        let refused = |records: &[Record]| {
            let opened = Engine::builder().workers(1).journal(journal(records)).open();
            opened.err().unwrap().to_string()
        };
        let error = refused(&[table(), epoch(2, 1)]);
        assert!(error.contains("record 1") && error.contains("epoch 2"), "{error}");
        let error = refused(&[table(), epoch_of(1, 1, 1, 1)]);
        assert!(error.contains("record 1") && error.contains("1 parts"), "{error}");
        let error = refused(&[epoch(1, 1)]);
        assert!(error.contains("record 0") && error.contains("\"t\""), "{error}");
        let text = Record::definition("CREATE TABLE t (n VARCHAR)", Path::new(""), 0).unwrap();
        let error = refused(&[text, epoch(1, 1)]);
        assert!(error.contains("record 1") && error.contains("columns of \"t\""), "{error}");
        let noise = MemoryJournal::default();
        let position = noise.append(b"noise").unwrap();
        noise.sync(position).unwrap();
        let opened = Engine::builder().workers(1).journal(Arc::new(noise)).open();
        let error = opened.err().unwrap().to_string();
        assert!(error.contains("record 0") && error.contains("it is of version 101"), "{error}");
    }
}
