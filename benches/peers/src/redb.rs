//! redb: a table in a file.

use std::path::Path;

use ::redb::{Database, Durability, ReadableDatabase, TableDefinition, WriteTransaction};

use crate::Result;
use crate::row::LOADED;
use crate::store::{Store, Table, Wait};

const ROWS: TableDefinition<'static, u64, &[u8]> = TableDefinition::new("rows");

/// A database with one table.
pub struct Redb {
    database: Database,
    wait: Wait,
}

impl Redb {
    /// Creates a database with a cache of so many bytes.
    pub fn open(folder: &Path, wait: Wait, cache: usize) -> Result<Self> {
        std::fs::create_dir_all(folder)?;
        let mut builder = Database::builder();
        let database = builder.set_cache_size(cache).create(folder.join("rows.redb"))?;
        let transaction = database.begin_write()?;
        transaction.open_table(ROWS)?;
        transaction.commit()?;
        Ok(Self { database, wait })
    }

    fn begin(&self) -> Result<WriteTransaction> {
        let mut transaction = self.database.begin_write()?;
        transaction.set_durability(match self.wait {
            Wait::Disk => Durability::Immediate,
            // The operating system does not get it either.
            Wait::System => Durability::None,
        })?;
        Ok(transaction)
    }
}

impl Store for Redb {
    fn name(&self) -> &'static str {
        "redb"
    }

    fn put(&self, key: u64, value: &[u8]) -> Result<()> {
        let transaction = self.begin()?;
        transaction.open_table(ROWS)?.insert(key, value)?;
        transaction.commit()?;
        Ok(())
    }
}

impl Table for Redb {
    fn load(&self, rows: &mut dyn Iterator<Item = (u64, &[u8])>) -> Result<()> {
        let mut rows = rows.peekable();
        while rows.peek().is_some() {
            // Durable, so that what was loaded does not stay in memory.
            let transaction = self.database.begin_write()?;
            {
                let mut table = transaction.open_table(ROWS)?;
                for (key, value) in rows.by_ref().take(LOADED) {
                    table.insert(key, value)?;
                }
            }
            transaction.commit()?;
        }
        Ok(())
    }

    fn get(&self, key: u64, value: &mut Vec<u8>) -> Result<bool> {
        let table = self.database.begin_read()?.open_table(ROWS)?;
        let found = table.get(key)?;
        value.clear();
        found.iter().for_each(|found| value.extend_from_slice(found.value()));
        Ok(found.is_some())
    }

    fn scan(&self, key: u64, rows: usize, values: &mut Vec<u8>) -> Result<usize> {
        values.clear();
        let mut found = 0;
        let table = self.database.begin_read()?.open_table(ROWS)?;
        for row in table.range(key..)?.take(rows) {
            values.extend_from_slice(row?.1.value());
            found += 1;
        }
        Ok(found)
    }
}
