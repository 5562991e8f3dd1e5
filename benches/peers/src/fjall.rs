//! fjall: a keyspace, without compression.

use std::path::Path;

use ::fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use crate::Result;
use crate::row::LOADED;
use crate::store::{Store, Table, Wait};

/// A database with one keyspace.
pub struct Fjall {
    database: Database,
    rows: Keyspace,
    wait: Wait,
}

impl Fjall {
    /// Creates a database with a cache of so many bytes.
    pub fn open(folder: &Path, wait: Wait, cache: usize) -> Result<Self> {
        let database = Database::builder(folder).cache_size(cache as u64).open()?;
        let rows = database.keyspace("rows", KeyspaceCreateOptions::default)?;
        Ok(Self { database, rows, wait })
    }
}

impl Store for Fjall {
    fn name(&self) -> &'static str {
        "fjall"
    }

    fn put(&self, key: u64, value: &[u8]) -> Result<()> {
        let key = key.to_be_bytes();
        match self.wait {
            // With `fdatasync`, as the others do.
            Wait::Disk => {
                let mut batch = self.database.batch().durability(Some(PersistMode::SyncData));
                batch.insert(&self.rows, key, value);
                batch.commit()?;
            }
            Wait::System => self.rows.insert(key, value)?,
        }
        Ok(())
    }
}

impl Table for Fjall {
    fn load(&self, rows: &mut dyn Iterator<Item = (u64, &[u8])>) -> Result<()> {
        let mut batch = self.database.batch();
        for (key, value) in rows {
            batch.insert(&self.rows, key.to_be_bytes(), value);
            if batch.len() == LOADED {
                std::mem::replace(&mut batch, self.database.batch()).commit()?;
            }
        }
        batch.commit()?;
        Ok(())
    }

    fn get(&self, key: u64, value: &mut Vec<u8>) -> Result<bool> {
        let found = self.rows.get(key.to_be_bytes())?;
        value.clear();
        found.iter().for_each(|found| value.extend_from_slice(found));
        Ok(found.is_some())
    }

    fn scan(&self, key: u64, rows: usize, values: &mut Vec<u8>) -> Result<usize> {
        values.clear();
        let mut found = 0;
        for row in self.rows.range(key.to_be_bytes()..).take(rows) {
            values.extend_from_slice(&row.value()?);
            found += 1;
        }
        Ok(found)
    }
}
