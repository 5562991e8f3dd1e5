//! Files of rows that a query has no memory for: sorted runs, partial aggregates, and rows of joins with equal keys.
//!
//! They are blobs of the engine's storage, as state is that does not fit into memory: a file goes with its last reader, and files that a
//! crash leaves are removed by the next engine. Bytes are read as they are needed, a piece at a time, and checked: what decodes
//! them trusts them.

use std::io::{self, Write};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use alluvium_storage::{BlobWriter, Storage, TemporaryBlob};
use bytes::Bytes;
use datafusion::common::exec_datafusion_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::spill_file::{SpillFile, SpillWriter, TempFileFactory};
use futures::Stream;
use xxhash_rust::xxh3::xxh3_64;

/// The bytes that are read at a time.
const PIECE: usize = 64 << 10;

/// Makes spilled files.
pub(super) struct Spills {
    storage: Arc<dyn Storage>,
}

impl Spills {
    pub(super) fn new(storage: Arc<dyn Storage>) -> Self {
        Self { storage }
    }
}

impl TempFileFactory for Spills {
    fn create_temp_file(&self, _: &str) -> Result<Arc<dyn SpillFile>> {
        let (storage, written) = (self.storage.clone(), Arc::new(OnceLock::new()));
        Ok(Arc::new(Spilled { storage, written }))
    }
}

/// A file of spilled rows.
struct Spilled {
    storage: Arc<dyn Storage>,
    written: Arc<OnceLock<Pieces>>,
}

/// A file that is written.
#[derive(Clone)]
struct Pieces {
    blob: TemporaryBlob,
    /// Of each piece.
    checksums: Arc<[u64]>,
}

impl Pieces {
    fn read(&self, piece: usize) -> Result<Bytes> {
        let start = (piece * PIECE) as u64;
        let end = (start + PIECE as u64).min(self.blob.len());
        let bytes = self.blob.read(start..end).map_err(failed("read"))?;
        match xxh3_64(&bytes) == self.checksums[piece] {
            true => Ok(bytes),
            false => Err(exec_datafusion_err!(
                "rows that the query has moved to the file {} are damaged at byte {start}",
                self.blob.place()
            )),
        }
    }
}

impl SpillFile for Spilled {
    fn size(&self) -> Option<u64> {
        Some(self.written.get().map_or(0, |pieces| pieces.blob.len()))
    }

    fn read_stream(&self) -> Result<Pin<Box<dyn Stream<Item = Result<Bytes>> + Send>>> {
        let Some(pieces) = self.written.get().cloned() else {
            return Err(exec_datafusion_err!("a spilled file is read before it is written"));
        };
        let bytes = (0..pieces.checksums.len()).map(move |piece| pieces.read(piece));
        Ok(Box::pin(futures::stream::iter(bytes)))
    }

    fn open_writer(&self) -> Result<Box<dyn SpillWriter>> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let name = format!("spilled-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let blob = self.storage.create(&name).map_err(failed("written"))?;
        let (storage, written) = (self.storage.clone(), self.written.clone());
        let (piece, checksums) = (Vec::with_capacity(PIECE), Vec::new());
        Ok(Box::new(Writer { storage, written, blob, piece, checksums }))
    }
}

struct Writer {
    storage: Arc<dyn Storage>,
    written: Arc<OnceLock<Pieces>>,
    blob: Box<dyn BlobWriter>,
    /// Less than a whole one.
    piece: Vec<u8>,
    checksums: Vec<u64>,
}

impl Writer {
    fn append_piece(&mut self) -> Result<()> {
        self.blob.append(&self.piece).map_err(failed("written"))?;
        self.checksums.push(xxh3_64(&self.piece));
        self.piece.clear();
        Ok(())
    }
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (first, _) = bytes.split_at(bytes.len().min(PIECE - self.piece.len()));
        self.piece.extend_from_slice(first);
        if self.piece.len() == PIECE {
            self.append_piece().map_err(io::Error::other)?;
        }
        Ok(first.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl SpillWriter for Writer {
    fn finish(&mut self) -> Result<()> {
        if !self.piece.is_empty() {
            self.append_piece()?;
        }
        let blob = self.blob.seal().map_err(failed("written"))?;
        let blob = TemporaryBlob::new(self.storage.clone(), blob);
        let checksums = std::mem::take(&mut self.checksums).into();
        // It is finished once.
        let _ = self.written.set(Pieces { blob, checksums });
        Ok(())
    }
}

/// Why a file cannot be written or read.
fn failed(what: &str) -> impl Fn(alluvium_storage::Error) -> DataFusionError {
    move |error| {
        exec_datafusion_err!(
            "the query has more rows than memory, and the file for them cannot be {what}: {error}"
        )
    }
}
