//! The tables of a file, whose rows go and come back.

use alluvium::Engine;
use alluvium::arrow::array::{RecordBatch, UInt32Array};
use alluvium::arrow::compute::{concat_batches, take_record_batch};
use fastrand::Rng;

use crate::answers::batch::Batch;
use crate::answers::contents::contents;

/// A table with more rows is left out: views over it take too long.
const MOST_ROWS: usize = 5_000;

/// A table, and which of its rows are there.
pub(super) struct Table {
    name: String,
    rows: RecordBatch,
    is_there: Vec<bool>,
}

impl Table {
    /// The table as it is; `None` if it has too many rows.
    pub(super) fn read(name: &str, engine: &Engine) -> Result<Option<Self>, String> {
        let (schema, batches) = contents(engine, name)?;
        let rows = concat_batches(&schema, &batches).map_err(|error| error.to_string())?;
        let is_there = vec![true; rows.num_rows()];
        let table = Self { name: name.to_owned(), rows, is_there };
        Ok((table.is_there.len() <= MOST_ROWS).then_some(table))
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Gives DataFusion the rows that are there, forwards or backwards.
    pub(super) fn fill(&self, batch: &mut Batch, is_backwards: bool) {
        let mut rows = self.numbers(|is_there| is_there);
        if is_backwards {
            rows.reverse();
        }
        batch.fill(&self.name, vec![self.take(rows)]);
    }

    fn numbers(&self, choose: impl Fn(bool) -> bool) -> Vec<u32> {
        let numbers = self.is_there.iter().enumerate();
        numbers.filter(|(_, is_there)| choose(**is_there)).map(|(row, _)| row as u32).collect()
    }

    fn take(&self, rows: Vec<u32>) -> RecordBatch {
        take_record_batch(&self.rows, &UInt32Array::from(rows)).expect("each number is a row's")
    }
}

/// Moves rows out of tables and back into them, in one transaction: then each is there with the chance `presence`.
pub(super) fn change(
    tables: &mut [Table],
    engine: &Engine,
    rng: &mut Rng,
    presence: f64,
) -> Result<(), String> {
    let message = |error: alluvium::Error| error.to_string();
    let mut transaction = engine.begin().map_err(message)?;
    for table in tables {
        let (mut gone, mut back) = (Vec::new(), Vec::new());
        for (row, is_there) in table.is_there.iter_mut().enumerate() {
            let will_be = rng.f64() < presence;
            match (*is_there, will_be) {
                (true, false) => gone.push(row as u32),
                (false, true) => back.push(row as u32),
                _ => {}
            }
            *is_there = will_be;
        }
        transaction.delete(&table.name, table.take(gone)).map_err(message)?;
        transaction.insert(&table.name, table.take(back)).map_err(message)?;
    }
    transaction.commit().map(drop).map_err(message)
}
