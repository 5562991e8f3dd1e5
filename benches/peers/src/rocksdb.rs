//! RocksDB: its defaults, without compression and with a larger cache.

use std::path::Path;

use ::rocksdb::{
    BlockBasedOptions, Cache, DB, DBCompressionType, Direction, IteratorMode, Options, WriteBatch,
    WriteOptions,
};

use crate::Result;
use crate::row::LOADED;
use crate::store::{Store, Table, Wait};

/// A database.
pub struct RocksDb {
    database: DB,
    write: WriteOptions,
}

impl RocksDb {
    /// Creates a database with a cache of so many bytes.
    pub fn open(folder: &Path, wait: Wait, cache: usize) -> Result<Self> {
        let mut blocks = BlockBasedOptions::default();
        blocks.set_block_cache(&Cache::new_lru_cache(cache));
        blocks.set_bloom_filter(10.0, false);
        let mut options = Options::default();
        options.create_if_missing(true);
        options.set_compression_type(DBCompressionType::None);
        options.set_block_based_table_factory(&blocks);
        let mut write = WriteOptions::default();
        // With `fdatasync`, by default.
        write.set_sync(wait == Wait::Disk);
        Ok(Self { database: DB::open(&options, folder)?, write })
    }
}

impl Store for RocksDb {
    fn name(&self) -> &'static str {
        "RocksDB"
    }

    fn put(&self, key: u64, value: &[u8]) -> Result<()> {
        Ok(self.database.put_opt(key.to_be_bytes(), value, &self.write)?)
    }
}

impl Table for RocksDb {
    fn load(&self, rows: &mut dyn Iterator<Item = (u64, &[u8])>) -> Result<()> {
        let mut batch = WriteBatch::default();
        for (key, value) in rows {
            batch.put(key.to_be_bytes(), value);
            if batch.len() == LOADED {
                self.database.write_opt(std::mem::take(&mut batch), &self.write)?;
            }
        }
        Ok(self.database.write_opt(batch, &self.write)?)
    }

    fn get(&self, key: u64, value: &mut Vec<u8>) -> Result<bool> {
        let found = self.database.get_pinned(key.to_be_bytes())?;
        value.clear();
        found.iter().for_each(|found| value.extend_from_slice(found));
        Ok(found.is_some())
    }

    fn scan(&self, key: u64, rows: usize, values: &mut Vec<u8>) -> Result<usize> {
        values.clear();
        let (key, mut found) = (key.to_be_bytes(), 0);
        for row in self.database.iterator(IteratorMode::From(&key, Direction::Forward)).take(rows) {
            values.extend_from_slice(&row?.1);
            found += 1;
        }
        Ok(found)
    }
}
