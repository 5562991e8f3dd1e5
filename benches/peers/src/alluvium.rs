//! Alluvium: a table with a primary key, written with Arrow batches and read through a [`View`].

use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use alluvium::arrow::array::{ArrayRef, AsArray, BinaryArray, Int64Array, RecordBatch};
use alluvium::arrow::buffer::OffsetBuffer;
use alluvium::{Durability, Engine, View};

use crate::Result;
use crate::row::LOADED;
use crate::store::{Store, Table, Wait};

/// An engine with one table.
pub struct Alluvium {
    engine: Engine,
    rows: View,
}

impl Alluvium {
    /// Opens a new state directory. Readers that may be `stale` do not wait for the newest commits.
    pub fn open(folder: &Path, wait: Wait, workers: usize, stale: bool) -> Result<Self> {
        let durability = match wait {
            Wait::Disk => Durability::Always,
            Wait::System => Durability::Never,
        };
        let state = format!("file:{}", folder.display());
        let builder = Engine::builder().workers(workers).durability(durability);
        let engine = builder.state(state).open()?;
        engine.execute("CREATE TABLE rows (id BIGINT PRIMARY KEY, value BYTEA NOT NULL)")?;
        let rows = engine.view("rows")?;
        let rows = if stale { rows.stale() } else { rows };
        Ok(Self { engine, rows })
    }

    fn insert(&self, keys: Vec<i64>, values: &[&[u8]]) -> Result<()> {
        let lengths = OffsetBuffer::from_lengths(values.iter().map(|value| value.len()));
        let values = BinaryArray::try_new(lengths, values.concat().into(), None)?;
        let columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(keys)), Arc::new(values)];
        let rows = RecordBatch::try_new(self.rows.schema().clone(), columns)?;
        let mut transaction = self.engine.begin()?;
        transaction.upsert("rows", rows)?;
        transaction.commit()?;
        Ok(())
    }
}

impl Store for Alluvium {
    fn name(&self) -> &'static str {
        "Alluvium"
    }

    fn put(&self, key: u64, value: &[u8]) -> Result<()> {
        self.insert(vec![key.cast_signed()], &[value])
    }
}

impl Table for Alluvium {
    fn load(&self, rows: &mut dyn Iterator<Item = (u64, &[u8])>) -> Result<()> {
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        for (key, value) in rows {
            keys.push(key.cast_signed());
            values.push(value);
            if keys.len() == LOADED {
                self.insert(std::mem::take(&mut keys), &values)?;
                values.clear();
            }
        }
        self.insert(keys, &values)?;
        self.engine.wait(self.engine.progress().committed)?;
        Ok(())
    }

    fn get(&self, key: u64, value: &mut Vec<u8>) -> Result<bool> {
        let rows = self.rows.get(&[key.cast_signed().into()])?;
        value.clear();
        rows.column(1).as_binary::<i32>().iter().flatten().for_each(|found| value.extend(found));
        Ok(rows.num_rows() > 0)
    }

    fn scan(&self, key: u64, rows: usize, values: &mut Vec<u8>) -> Result<usize> {
        values.clear();
        let (low, mut found) = ([key.cast_signed().into()], 0);
        for batch in self.rows.range(Bound::Included(&low), Bound::Unbounded)? {
            let batch = batch?;
            for value in batch.column(1).as_binary::<i32>().iter().flatten().take(rows - found) {
                values.extend_from_slice(value);
                found += 1;
            }
            if found == rows {
                break;
            }
        }
        Ok(found)
    }
}
