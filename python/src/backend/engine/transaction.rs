//! Transactions of an engine.

use alluvium::arrow::array::RecordBatch;

use crate::backend::{TableColumns, Transaction, Write};
use crate::failure::Fallible;

impl Transaction for alluvium::Transaction {
    fn write(
        &mut self,
        write: Write,
        table: &TableColumns,
        names: &[String],
        rows: RecordBatch,
    ) -> Fallible<()> {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        match write {
            Write::Insert => self.insert_columns(&table.name, &names, rows)?,
            Write::Upsert => self.upsert_columns(&table.name, &names, rows)?,
            Write::Delete => self.delete(&table.name, rows)?,
        }
        Ok(())
    }

    fn is_aborted(&self) -> bool {
        false
    }

    fn commit(self: Box<Self>) -> Fallible<u64> {
        Ok(alluvium::Transaction::commit(*self)?)
    }
}
