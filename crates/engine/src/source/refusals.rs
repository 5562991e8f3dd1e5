//! The rows that sources refused, or that came too late, as `alluvium.errors` shows them.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium_trace::Epoch;
use alluvium_trace::memory::{Charge, MemoryBudget};
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray, UInt64Array};
use parking_lot::Mutex;

use super::Refusal;
use crate::catalog::ERRORS_SCHEMA;
use crate::changes::bytes_of;
use crate::error::{Error, Result};

/// The bytes that a row takes beside its texts: the offsets of these, and the epoch.
const ROW_BYTES: usize = 32;

/// Rows that a source refuses, until their transaction commits. The first ones are kept: a file of another format
/// refuses all of its rows.
pub(crate) struct Refusing {
    kept: Vec<Refusal>,
    /// How many others there are.
    left_out: u64,
    room: usize,
}

impl Refusing {
    /// None yet; as many bytes of them are kept as can be queried.
    pub(crate) fn new(budget: &MemoryBudget) -> Self {
        Self { kept: Vec::new(), left_out: 0, room: budget.policy().refused }
    }

    /// These, and so many others.
    pub(crate) fn of(kept: Vec<Refusal>, left_out: u64) -> Self {
        Self { kept, left_out, room: 0 }
    }

    /// Adds rows.
    pub(crate) fn extend(&mut self, refusals: impl IntoIterator<Item = Refusal>) {
        for refusal in refusals {
            let bytes = bytes(&refusal);
            if self.left_out > 0 || bytes > self.room {
                self.left_out += 1;
            } else {
                self.room -= bytes;
                self.kept.push(refusal);
            }
        }
    }

    /// Whether no more are kept.
    pub(crate) fn is_full(&self) -> bool {
        self.left_out > 0
    }

    /// Adds so many rows that are not kept.
    pub(crate) fn leave_out(&mut self, count: u64) {
        self.left_out += count;
    }

    /// The first ones.
    pub(crate) fn kept(&self) -> &[Refusal] {
        &self.kept
    }

    /// How many there are.
    pub(crate) fn len(&self) -> u64 {
        self.kept.len() as u64 + self.left_out
    }
}

fn bytes(refusal: &Refusal) -> usize {
    refusal.message.len() + refusal.file.as_os_str().len() + ROW_BYTES
}

/// Refused rows by table, until the table is dropped: the first of them, and how many there are beside these.
pub(crate) struct Refusals {
    /// How many bytes of them are kept.
    most: usize,
    state: Mutex<State>,
}

struct State {
    tables: BTreeMap<String, Refused>,
    /// The bytes of all rows that are kept.
    bytes: usize,
    charge: Charge,
}

#[derive(Default)]
struct Refused {
    bytes: usize,
    batches: Vec<(Epoch, RecordBatch)>,
    left_out: Option<LeftOut>,
}

/// Rows that are not kept.
#[derive(Clone)]
pub(crate) struct LeftOut {
    pub(crate) count: u64,
    /// The source of the first of them, and its epoch.
    pub(crate) source: String,
    pub(crate) epoch: Epoch,
}

/// The refused rows of a table, as they are at some epoch.
pub(crate) struct KeptRefusals {
    pub(crate) table: String,
    /// A batch for each epoch.
    pub(crate) batches: Vec<(Epoch, RecordBatch)>,
    pub(crate) left_out: Option<LeftOut>,
}

impl KeptRefusals {
    /// Those in batches of one epoch each.
    pub(crate) fn new(
        table: String,
        batches: Vec<RecordBatch>,
        left_out: Option<LeftOut>,
    ) -> Result<Self> {
        let mut with_epochs = Vec::with_capacity(batches.len());
        for rows in batches {
            let epochs = rows.columns().last().and_then(|column| column.as_primitive_opt());
            let epochs: Option<&UInt64Array> = epochs.filter(|epochs| !epochs.is_empty());
            let epoch = epochs.map(|epochs| epochs.value(0));
            let epoch = epoch.ok_or_else(|| Error::data("refused rows without their epoch"))?;
            with_epochs.push((epoch, rows));
        }
        Ok(Self { table, batches: with_epochs, left_out })
    }
}

impl Refusals {
    /// None yet. `budget` counts those that are kept, and says how many may be.
    pub(crate) fn new(budget: &MemoryBudget) -> Self {
        let state = State { tables: BTreeMap::new(), bytes: 0, charge: budget.charge(0) };
        Self { most: budget.policy().refused, state: Mutex::new(state) }
    }

    /// Adds the rows that `source` refused while it made `epoch`.
    pub(crate) fn add(
        &self,
        table: &str,
        source: &str,
        epoch: Epoch,
        refusing: &Refusing,
    ) -> Result<()> {
        let state = &mut *self.state.lock();
        let refused = state.tables.entry(table.to_owned()).or_default();
        let mut room = self.most.saturating_sub(state.bytes);
        let fits = |refusal: &&Refusal| {
            let bytes = bytes(refusal) + table.len() + source.len();
            let fits = bytes <= room;
            room -= if fits { bytes } else { room };
            fits
        };
        let rows: Vec<&Refusal> = match &refused.left_out {
            None => refusing.kept.iter().take_while(fits).collect(),
            Some(_) => Vec::new(),
        };
        let left_out = refusing.len() - rows.len() as u64;
        if !rows.is_empty() {
            let batch = batch(table, source, epoch, &rows)?;
            let bytes: usize = rows.iter().map(|row| bytes(row) + table.len() + source.len()).sum();
            refused.bytes += bytes;
            refused.batches.push((epoch, batch));
            state.bytes += bytes;
            state.charge.set(state.bytes);
        }
        if left_out > 0 {
            let source = source.to_owned();
            refused.left_out.get_or_insert(LeftOut { count: 0, source, epoch }).count += left_out;
        }
        Ok(())
    }

    /// The rows refused up to an epoch; the last one of a table says how many are left out, if any are.
    pub(crate) fn rows(&self, epoch: Epoch) -> Result<Vec<RecordBatch>> {
        let state = self.state.lock();
        let mut rows = Vec::new();
        for (table, refused) in &state.tables {
            let batches = refused.batches.iter().filter(|(at, _)| *at <= epoch);
            rows.extend(batches.map(|(_, rows)| rows.clone()));
            if let Some(left_out) = refused.left_out.as_ref().filter(|out| out.epoch <= epoch) {
                rows.push(left_out.row(table, self.most)?);
            }
        }
        Ok(rows)
    }

    /// All that there are.
    pub(crate) fn all(&self) -> Vec<KeptRefusals> {
        let state = self.state.lock();
        let kept = |(table, refused): (&String, &Refused)| KeptRefusals {
            table: table.clone(),
            batches: refused.batches.clone(),
            left_out: refused.left_out.clone(),
        };
        state.tables.iter().map(kept).collect()
    }

    /// Adds those of an engine that has ended.
    pub(crate) fn restore(&self, kept: KeptRefusals) {
        let state = &mut *self.state.lock();
        let KeptRefusals { table, batches, left_out } = kept;
        let bytes = batches.iter().map(|(_, rows)| bytes_of(rows)).sum();
        state.bytes += bytes;
        state.charge.set(state.bytes);
        state.tables.insert(table, Refused { bytes, batches, left_out });
    }

    /// A table with refused rows has another name from now on.
    pub(crate) fn rename(&self, table: &str, name: &str) -> Result<()> {
        let state = &mut *self.state.lock();
        let Some(mut refused) = state.tables.remove(table) else { return Ok(()) };
        for (_, rows) in &mut refused.batches {
            let names = std::iter::repeat_n(name, rows.num_rows());
            let mut columns = rows.columns().to_vec();
            columns[0] = Arc::new(StringArray::from_iter_values(names));
            *rows = RecordBatch::try_new(rows.schema(), columns)?;
        }
        state.tables.insert(name.to_owned(), refused);
        Ok(())
    }

    /// Forgets the rows of a table that is dropped.
    pub(crate) fn forget(&self, table: &str) {
        let state = &mut *self.state.lock();
        if let Some(refused) = state.tables.remove(table) {
            state.bytes -= refused.bytes;
            state.charge.set(state.bytes);
        }
    }
}

impl LeftOut {
    fn row(&self, table: &str, most: usize) -> Result<RecordBatch> {
        let rows = if self.count == 1 { "row was" } else { "rows were" };
        let kib = most >> 10;
        let message = format!(
            "{} more {rows} refused; the first {kib} KiB of refused rows are kept here",
            self.count
        );
        let texts = [table, &self.source, "", &message];
        let texts = texts.map(|text| Arc::new(StringArray::from(vec![text])) as ArrayRef);
        let epoch: ArrayRef = Arc::new(UInt64Array::from(vec![self.epoch]));
        let columns = texts.into_iter().chain([epoch]).collect();
        Ok(RecordBatch::try_new(ERRORS_SCHEMA.clone(), columns)?)
    }
}

fn batch(table: &str, source: &str, epoch: Epoch, rows: &[&Refusal]) -> Result<RecordBatch> {
    let same = |text: &str| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(std::iter::repeat_n(text, rows.len())))
    };
    let messages = rows.iter().map(|row| row.message.as_str());
    let columns: Vec<ArrayRef> = vec![
        same(table),
        same(source),
        Arc::new(StringArray::from_iter_values(rows.iter().map(|row| row.place()))),
        Arc::new(StringArray::from_iter_values(messages)),
        Arc::new(UInt64Array::from(vec![epoch; rows.len()])),
    ];
    Ok(RecordBatch::try_new(ERRORS_SCHEMA.clone(), columns)?)
}

#[cfg(test)]
mod tests {
    use alluvium_dataflow::messages::shorten::shorten;

    use super::*;
    use crate::durable::refused::SavedRefusals;

    #[test]
    fn the_first_refused_rows_are_kept_and_the_others_are_counted() {
        let budget = MemoryBudget::new(32 << 20);
        let refusals = Refusals::new(&budget);
        let refuse = |table: &str, epoch, count: u64| {
            let mut refusing = Refusing::new(&budget);
            refusing.extend((1..=count).map(|line| Refusal {
                file: "f.csv".into(),
                line,
                message: shorten("x".repeat(10_000)),
            }));
            assert_eq!(refusing.len(), count);
            refusals.add(table, "csv", epoch, &refusing).unwrap();
        };
        refuse("t", 1, 2);
        assert_eq!(refusals.rows(1).unwrap()[0].num_rows(), 2);
        refuse("t", 2, 50_000);
        refuse("u", 3, 7);
        // A sixteenth of the budget.
        assert!(budget.used() <= 2 << 20 && budget.used() > 3 << 19, "{}", budget.used());
        let count = |epoch| -> (usize, String) {
            let rows = refusals.rows(epoch).unwrap();
            let last =
                rows.iter().rfind(|batch| batch.column(0).as_string::<i32>().value(0) == "t");
            let message = last.unwrap().column(3).as_string::<i32>().value(0).to_owned();
            (rows.iter().map(RecordBatch::num_rows).sum(), message)
        };
        let (rows, message) = count(2);
        let expected = format!("{} more rows were refused", 50_002 - (rows - 1));
        assert!(message.starts_with(&expected), "{message}");
        assert_eq!(count(3).0, rows + 1, "of the other table there is no more than their number");
        refusals.forget("t");
        refusals.forget("u");
        assert_eq!((budget.used(), refusals.rows(3).unwrap().len()), (0, 0));
    }

    /// They were counted with all of the message that they were decoded from, once for each of their buffers.
    #[test]
    fn rows_of_an_engine_that_has_ended_take_as_much_memory_as_before() {
        let (before, after) = (MemoryBudget::new(32 << 20), MemoryBudget::new(32 << 20));
        let refusals = Refusals::new(&before);
        let mut refusing = Refusing::new(&before);
        let message = || "x".repeat(200);
        refusing.extend((1..=1000).map(|line| Refusal {
            file: "f.csv".into(),
            line,
            message: message(),
        }));
        refusals.add("t", "csv", 1, &refusing).unwrap();
        drop(refusing);
        let restored = Refusals::new(&after);
        for kept in refusals.all() {
            restored.restore(SavedRefusals::new(&kept).unwrap().kept().unwrap());
        }
        let counted = before.used() * 4 / 5..before.used() * 6 / 5;
        assert!(counted.contains(&after.used()), "{} and {}", after.used(), before.used());
    }
}
