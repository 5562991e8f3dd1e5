//! Replaying the journal.

use std::path::Path;

use alluvium_sql::error::Position;
use alluvium_sql::statement::{self, TableDefinition};
use alluvium_storage::Journal;
use arrow::ipc::reader::StreamReader;

use super::record::{ChangedTable, Record};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::instance::Instance;
use crate::transaction::Transaction;
use crate::transaction::change::TableChange;

/// Does everything again that a journal has.
pub(crate) fn resume(engine: &Engine, journal: &dyn Journal) -> Result<()> {
    let failed = |error: &dyn std::fmt::Display| Error::Start {
        message: format!("the journal cannot be replayed: {error}"),
    };
    let records = journal.replay(journal.range().start).map_err(|error| failed(&error))?;
    let mut replay = Replay { engine, transaction: None, parts: 0 };
    for record in records {
        let (position, bytes) = record.map_err(|error| failed(&error))?;
        let record = Record::decode(&bytes, position)?;
        replay
            .apply(record)
            .map_err(|error| failed(&format_args!("record {position}: {error}")))?;
    }
    // Parts without their epoch were never committed.
    drop(replay);
    engine.wait(engine.instance.writer.last())
}

struct Replay<'a> {
    engine: &'a Engine,
    /// The epoch whose parts come.
    transaction: Option<Transaction>,
    /// How many of them have come.
    parts: u32,
}

impl Replay<'_> {
    fn apply(&mut self, record: Record) -> Result<()> {
        let instance = &self.engine.instance;
        match record {
            Record::Definition { sql, base, now } => instance.writer.with_time(now, || {
                let mut session = self.engine.session();
                session.set_base(base);
                statement::parse(&sql).try_for_each(|statement| session.redo(&statement?))
            }),
            Record::Clock { now } => instance.definitions.start_clock(now),
            Record::Table { name, columns } => {
                let columns = StreamReader::try_new(&columns[..], None)?.schema();
                let definition = TableDefinition::with_columns(
                    &name,
                    Position { line: 1, column: 1 },
                    &columns,
                )?;
                let Instance { definitions, writer, connectors, .. } = &**instance;
                definitions.create_table(&definition, Path::new(""), writer, connectors)
            }
            Record::Part { number, changes } => {
                self.follow(number)?;
                self.stage(changes)?;
                self.parts += 1;
                Ok(())
            }
            Record::Epoch { number, time, parts, changes } => {
                self.follow(parts)?;
                self.parts = 0;
                self.stage(changes)?;
                let Some(mut transaction) = self.transaction.take() else { return Ok(()) };
                transaction.restore_time(time);
                match transaction.commit()? {
                    epoch if epoch == number => Ok(()),
                    epoch => {
                        Err(Error::data(format!("it is of epoch {number}, and not of {epoch}")))
                    }
                }
            }
        }
    }

    /// So many parts of an epoch come before this record. Forgets those of a transaction that has failed.
    fn follow(&mut self, parts: u32) -> Result<()> {
        if parts == 0 {
            (self.transaction, self.parts) = (None, 0);
        }
        match parts == self.parts {
            true => Ok(()),
            false => Err(Error::data(format!("it follows {parts} parts, and not {}", self.parts))),
        }
    }

    fn stage(&mut self, changes: Vec<ChangedTable>) -> Result<()> {
        let transaction = match self.transaction.take() {
            Some(transaction) => transaction,
            None => Transaction::begin(&self.engine.instance, None)?,
        };
        let transaction = self.transaction.insert(transaction);
        for ChangedTable { table, weights, rows } in changes {
            transaction.restore(&table, TableChange::decode(weights, rows)?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use alluvium_storage::MemoryJournal;
    use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
    use arrow::datatypes::Int64Type;

    use super::*;

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

    fn epoch(number: u64, parts: u32, n: i64) -> Record {
        Record::Epoch { number, time: number as i64, parts, changes: row(n) }
    }

    #[test]
    fn parts_of_a_transaction_that_failed_belong_to_no_other() {
        let part = |number, n| Record::Part { number, changes: row(n) };
        let records = [
            table(),
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
            part(0, 103),
        ];
        let engine = Engine::builder().workers(1).journal(journal(&records)).open().unwrap();
        let rows = engine.query("SELECT n FROM t ORDER BY n").unwrap();
        assert_eq!(rows[0].column(0).as_primitive::<Int64Type>().values(), &[1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn a_journal_that_is_none_of_ours_is_refused_with_the_record() {
        let refused = |records: &[Record]| {
            let opened = Engine::builder().workers(1).journal(journal(records)).open();
            opened.err().unwrap().to_string()
        };
        let error = refused(&[table(), epoch(2, 0, 1)]);
        assert!(error.contains("record 1") && error.contains("epoch 2"), "{error}");
        let error = refused(&[table(), epoch(1, 1, 1)]);
        assert!(error.contains("record 1") && error.contains("1 parts"), "{error}");
        let error = refused(&[epoch(1, 0, 1)]);
        assert!(error.contains("record 0") && error.contains("\"t\""), "{error}");
        let text = Record::definition("CREATE TABLE t (n VARCHAR)", Path::new(""), 0).unwrap();
        let error = refused(&[text, epoch(1, 0, 1)]);
        assert!(error.contains("record 1") && error.contains("columns of \"t\""), "{error}");
        let noise = MemoryJournal::default();
        let position = noise.append(b"noise").unwrap();
        noise.sync(position).unwrap();
        let opened = Engine::builder().workers(1).journal(Arc::new(noise)).open();
        let error = opened.err().unwrap().to_string();
        assert!(error.contains("record 0") && error.contains("it is of version 101"), "{error}");
    }
}
