//! Rows of a transaction: in memory, or in a file until they are read.

use std::fmt::Display;
use std::io::ErrorKind;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use alluvium_storage::{Storage, TemporaryBlob};
use alluvium_trace::memory::{DiskFullGate, MemoryBudget};
use arrow::array::RecordBatch;
use arrow::buffer::Buffer;
use arrow::ipc::reader::StreamDecoder;
use arrow::ipc::writer::StreamWriter;
use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_64;

use super::counted;
use crate::error::{Error, Result};
use crate::interrupt;

/// How many rows go into one piece of a file.
const PIECE_ROWS: usize = 8192;

/// How many bytes do, as far as rows are of one length.
const PIECE_BYTES: usize = 2 << 20;

/// Rows of one table.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    count: usize,
    place: Place,
}

#[derive(Clone, Debug)]
enum Place {
    Memory(RecordBatch),
    /// As an Arrow stream of one batch. The budget counts rows that are read from it.
    File {
        blob: TemporaryBlob,
        range: Range<u64>,
        checksum: u64,
        budget: MemoryBudget,
    },
}

impl From<RecordBatch> for Rows {
    fn from(rows: RecordBatch) -> Self {
        Self { count: rows.num_rows(), place: Place::Memory(rows) }
    }
}

impl Rows {
    /// The number of rows.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// How much memory they take, without that of a larger batch that they are sliced from.
    pub(crate) fn bytes(&self) -> usize {
        self.in_memory().map_or(0, counted::bytes_of)
    }

    /// How many bytes they take, in memory or in a file.
    pub(crate) fn size(&self) -> u64 {
        match &self.place {
            Place::Memory(rows) => counted::bytes_of(rows) as u64,
            Place::File { range, .. } => range.end - range.start,
        }
    }

    /// The rows, if they are in memory.
    pub(crate) fn in_memory(&self) -> Option<&RecordBatch> {
        match &self.place {
            Place::Memory(rows) => Some(rows),
            Place::File { .. } => None,
        }
    }

    /// Counts the memory of these rows until the last of them is dropped, wherever they go; returns how much it is.
    pub(crate) fn count(&mut self, budget: &MemoryBudget) -> usize {
        let Place::Memory(rows) = &mut self.place else { return 0 };
        let bytes;
        (*rows, bytes) = counted::rows(rows, budget);
        bytes
    }

    /// The rows. Rows in a file are read each time, and counted until they are dropped.
    pub(crate) fn load(&self) -> Result<RecordBatch> {
        match &self.place {
            Place::Memory(rows) => Ok(rows.clone()),
            Place::File { range, budget, .. } => {
                let charge = budget.charge((range.end - range.start) as usize);
                self.read(|bytes| counted::buffer(bytes, &Arc::new(charge)))
            }
        }
    }

    /// The rows, for a program, which are not counted.
    pub(crate) fn take(self) -> Result<RecordBatch> {
        match self.place {
            Place::Memory(rows) => Ok(rows),
            Place::File { .. } => self.read(|bytes| bytes),
        }
    }

    /// The rows as an Arrow stream.
    pub(crate) fn encode(&self) -> Result<Vec<u8>> {
        match &self.place {
            Place::Memory(rows) => encode(rows),
            Place::File { blob, range, checksum, .. } => Ok(read(blob, range, *checksum)
                .map_err(|error| damaged(blob, range, &error))?
                .into()),
        }
    }

    /// The rows of an Arrow stream of one batch.
    pub(crate) fn decode(bytes: Vec<u8>) -> Result<Self> {
        let rows = decode(&mut Buffer::from_vec(bytes));
        rows.map(Self::from).map_err(|error| Error::data(format!("rows cannot be read: {error}")))
    }

    /// Reads rows that are in a file.
    fn read(&self, wrap: impl FnOnce(Buffer) -> Buffer) -> Result<RecordBatch> {
        let (blob, range, checksum) = match &self.place {
            Place::Memory(rows) => return Ok(rows.clone()),
            Place::File { blob, range, checksum, .. } => (blob, range, *checksum),
        };
        let rows =
            read(blob, range, checksum).and_then(|bytes| decode(&mut wrap(Buffer::from(bytes))));
        rows.map_err(|error| damaged(blob, range, &error))
    }

    /// The same rows in parts of at most `length` rows. Rows in a file are a part already.
    pub(crate) fn parts(&self, length: usize) -> impl Iterator<Item = Rows> {
        let length = if self.in_memory().is_some() { length.max(1) } else { self.count.max(1) };
        (0..self.count).step_by(length).map(move |start| match &self.place {
            Place::Memory(rows) => {
                let count = length.min(self.count - start);
                Rows { count, place: Place::Memory(rows.slice(start, count)) }
            }
            Place::File { .. } => self.clone(),
        })
    }

    /// Moves those of the rows that are in memory to one new file. Returns the parts of each of `all`, in order. Waits while
    /// the disk is full.
    pub(crate) fn write(
        all: Vec<Rows>,
        storage: &Arc<dyn Storage>,
        disk_full: &DiskFullGate,
        budget: &MemoryBudget,
    ) -> Result<Vec<Vec<Rows>>> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let failed = |error: &dyn Display| {
            Error::data(format!("rows of a transaction cannot be written to a file: {error}"))
        };
        let name = format!("rows-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let mut file = when_there_is_room(disk_full, || storage.create(&name))
            .map_err(|error| failed(&error))?;
        let mut written: Vec<std::result::Result<Vec<_>, Rows>> = Vec::with_capacity(all.len());
        for rows in all {
            let Some(batch) = rows.in_memory() else {
                written.push(Err(rows));
                continue;
            };
            let mut parts = Vec::new();
            let fitting = PIECE_BYTES * rows.len() / rows.bytes().max(1);
            let length = fitting.clamp(1, PIECE_ROWS);
            for start in (0..batch.num_rows()).step_by(length) {
                let part = batch.slice(start, length.min(batch.num_rows() - start));
                let bytes = encode(&part)?;
                let start = file.len();
                when_there_is_room(disk_full, || file.append(&bytes))
                    .map_err(|error| failed(&error))?;
                parts.push((part.num_rows(), start..file.len(), xxh3_64(&bytes)));
            }
            written.push(Ok(parts));
        }
        let blob = when_there_is_room(disk_full, || file.seal()).map_err(|error| failed(&error))?;
        let blob = TemporaryBlob::new(storage.clone(), blob);
        let rows = |(count, range, checksum)| Rows {
            count,
            place: Place::File { blob: blob.clone(), range, checksum, budget: budget.clone() },
        };
        let all = |parts: std::result::Result<Vec<_>, Rows>| match parts {
            Ok(parts) => parts.into_iter().map(rows).collect(),
            Err(before) => vec![before],
        };
        Ok(written.into_iter().map(all).collect())
    }
}

/// Rows as an Arrow stream.
fn encode(rows: &RecordBatch) -> Result<Vec<u8>> {
    let mut stream = StreamWriter::try_new(Vec::new(), rows.schema_ref())?;
    stream.write(rows)?;
    Ok(stream.into_inner()?)
}

/// The one batch of an Arrow stream; fails with the reason.
fn decode(bytes: &mut Buffer) -> std::result::Result<RecordBatch, String> {
    let rows = StreamDecoder::new().decode(bytes).map_err(|error| error.to_string())?;
    rows.ok_or_else(|| "there is nothing".to_owned())
}

/// A checked part of a file; fails with the reason.
fn read(
    blob: &TemporaryBlob,
    range: &Range<u64>,
    checksum: u64,
) -> std::result::Result<Bytes, String> {
    let bytes = blob.read(range.clone()).map_err(|error| error.to_string())?;
    match xxh3_64(&bytes) == checksum {
        true => Ok(bytes),
        false => Err("their checksum is wrong".to_owned()),
    }
}

fn damaged(blob: &TemporaryBlob, range: &Range<u64>, reason: &str) -> Error {
    let (place, start) = (blob.place(), range.start);
    Error::data(format!(
        "rows of a transaction cannot be read from {place}, byte {start}: {reason}"
    ))
}

/// Waits while the disk is full, until this thread should end what it does.
fn when_there_is_room<R>(
    disk_full: &DiskFullGate,
    mut act: impl FnMut() -> alluvium_storage::Result<R>,
) -> alluvium_storage::Result<R> {
    disk_full.wait_for(|| match interrupt::reached() {
        None => act(),
        Some(_) => Err(alluvium_storage::Error::Io {
            place: "it".to_owned(),
            operation: "write",
            cause: ErrorKind::Interrupted.into(),
        }),
    })
}

#[cfg(test)]
mod tests {
    use alluvium_storage::MemoryStorage;
    use arrow::array::{ArrayRef, Int64Array, StringArray};

    use super::*;

    fn rows(numbers: Range<i64>) -> RecordBatch {
        let names = StringArray::from_iter(
            numbers.clone().map(|number| (number % 3 > 0).then(|| format!("name {number}"))),
        );
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(numbers));
        RecordBatch::try_from_iter([("number", numbers), ("name", Arc::new(names) as _)]).unwrap()
    }

    #[test]
    fn rows_come_back_from_a_file_as_they_were() {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let batches = [rows(0..20_000), rows(7..8).slice(0, 1), rows(100..20_000).slice(50, 9000)];
        let all = batches.iter().cloned().map(Rows::from).collect();
        let budget = MemoryBudget::unlimited();
        let written = Rows::write(all, &storage, &DiskFullGate::default(), &budget).unwrap();
        for (parts, batch) in written.iter().zip(&batches) {
            let loaded: Vec<_> = parts.iter().map(|part| part.load().unwrap()).collect();
            assert!(
                parts.iter().all(|part| part.in_memory().is_none() && part.len() <= PIECE_ROWS)
            );
            assert_eq!(
                arrow::compute::concat_batches(batch.schema_ref(), &loaded).unwrap(),
                *batch
            );
            let memory: usize = loaded.iter().map(|rows| rows.get_array_memory_size()).sum();
            // A buffer counts once for each column sliced from it, and an array takes more than its buffers.
            assert!(budget.used() > 0 && budget.used() <= memory, "{} of {memory}", budget.used());
            let column = loaded[0].column(0).clone();
            drop(loaded);
            assert!(budget.used() > 0, "a part of what was read is still there");
            drop(column);
            assert_eq!(budget.used(), 0);
        }
        assert_eq!(storage.list("").unwrap().len(), 1);
        drop(written);
        assert!(storage.list("").unwrap().is_empty());
    }

    #[test]
    fn a_part_of_counted_rows_is_counted_until_the_last_is_gone() {
        let budget = MemoryBudget::new(1 << 20);
        let mut all = Rows::from(rows(0..1000));
        let bytes = all.count(&budget);
        assert_eq!((budget.used(), bytes >= 8000), (bytes, true));
        let mut parts: Vec<_> = all.parts(300).collect();
        assert_eq!(parts.iter().map(Rows::len).collect::<Vec<_>>(), [300, 300, 300, 100]);
        drop(all);
        parts.truncate(1);
        assert_eq!(budget.used(), bytes);
        let name = parts[0].load().unwrap().column(1).slice(1, 2);
        drop(parts);
        assert_eq!(budget.used(), bytes - 8000, "of the numbers nothing is left");
        drop(name);
        assert_eq!(budget.used(), 0);
    }
}
