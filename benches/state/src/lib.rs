//! Shared by the benchmarks: rows, contexts, and a folder on a real disk whose files can be made cold.
//!
//! `docs/benchmarks.md` has the commands and the figures.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use alluvium_storage::{Blob, LocalStorage, Storage};
use alluvium_trace::memory::{MemoryBudget, StateContext};
use alluvium_trace::{Batch, BatchBuilder, RowBuffer};
use differential_dataflow::trace::Description;
use rustix::fs::{Advice, fadvise, statfs};
use tempfile::TempDir;
use timely::progress::Antichain;

/// The bytes of a row's value.
pub const VALUE: usize = 56;

/// The bytes of a row: a key of eight bytes, and its value.
pub const ROW: usize = 8 + VALUE;

/// How many rows a batch has: `ALLUVIUM_BENCH_ROWS`, or two million, which are 128 MB.
pub fn rows() -> u64 {
    let given = std::env::var("ALLUVIUM_BENCH_ROWS").ok();
    given.map_or(2_000_000, |rows| rows.parse().expect("ALLUVIUM_BENCH_ROWS is a number"))
}

/// A row's key: a multiple of four, so that there are absent keys between any two.
pub fn key(row: u64) -> [u8; 8] {
    (4 * row).to_be_bytes()
}

/// A row's value.
pub fn value(row: u64) -> [u8; VALUE] {
    let mut value = [0; VALUE];
    fastrand::Rng::with_seed(row).fill(&mut value);
    value
}

/// An interval from the beginning to the end of time.
pub fn all_times() -> Description<u64> {
    let minimum = Antichain::from_elem(0);
    Description::new(minimum.clone(), Antichain::new(), minimum)
}

/// A batch of the rows of these numbers, which ascend, all at time zero.
pub fn batch(rows: impl Iterator<Item = (u64, [u8; VALUE])>, context: &StateContext) -> Batch<u64> {
    let mut builder = BatchBuilder::new(context);
    for (row, value) in rows {
        builder.push(&key(row), &value, &0, 1);
    }
    builder.finish(all_times())
}

/// A batch in memory of this many keys of `rows` rows, each plus `beside`: 0 for keys that exist, 1 for keys that do not.
pub fn keys(count: usize, rows: u64, beside: u64) -> Batch<u64> {
    let mut random = fastrand::Rng::with_seed(count as u64);
    let mut buffer = RowBuffer::new(&StateContext::default());
    for _ in 0..count {
        let key = 4 * random.u64(..rows) + beside;
        buffer.push(&key.to_be_bytes(), &[], &0, 1);
    }
    buffer.seal(all_times())
}

/// A folder on a disk.
pub struct Folder {
    directory: TempDir,
    storage: Arc<LocalStorage>,
}

impl Folder {
    /// A folder in `ALLUVIUM_BENCH_FOLDER`, or where cargo keeps what is temporary. Prints its file system.
    ///
    /// # Panics
    ///
    /// If the file system has no disk below it.
    pub fn new(default: &str) -> Folder {
        let parent = std::env::var("ALLUVIUM_BENCH_FOLDER").unwrap_or_else(|_| default.to_owned());
        let directory = tempfile::tempdir_in(&parent).expect("a folder for the files is made");
        let name = match statfs(directory.path()).expect("a folder has a file system").f_type {
            0x0102_1994 | 0x8584_58f6 => {
                panic!("{parent} is in memory: name a folder on a disk in ALLUVIUM_BENCH_FOLDER")
            }
            0xef53 => "ext4".to_owned(),
            0x5846_5342 => "xfs".to_owned(),
            0x9123_683e => "btrfs".to_owned(),
            0x2fc1_2fc1 => "zfs".to_owned(),
            0x794c_7630 => "overlay".to_owned(),
            other => format!("number {other:#x}"),
        };
        println!("file system of {parent}: {name}");
        let storage = Arc::new(LocalStorage::open(directory.path()).expect("a folder is opened"));
        Folder { directory, storage }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// A context with so many bytes of memory, and files in this folder for the rest.
    pub fn context(&self, memory: usize) -> StateContext {
        let storage: Arc<dyn Storage> = self.storage.clone();
        StateContext::new(MemoryBudget::new(memory), Some(storage))
    }

    /// Keeps the file of a batch under this name, and drops the batch. All other files of the folder must be kept ones.
    pub fn keep(&self, batch: Batch<u64>, name: &str) {
        assert!(batch.is_file(), "a batch with a file");
        let files = self.storage.list("batch-").expect("the folder is read");
        let [file] = files.as_slice() else { panic!("one file of a batch, not {files:?}") };
        fs::hard_link(self.path().join(file), self.path().join(name)).expect("a link is made");
        let kept = File::open(self.path().join(name)).expect("what was linked is there");
        // Only bytes that are on the disk can be evicted.
        kept.sync_all().expect("the file is synced");
    }

    /// Opens a kept file.
    pub fn open(&self, name: &str, context: &StateContext) -> Batch<u64> {
        let blob: Arc<dyn Blob> = self.storage.open(name).expect("the file is there");
        Batch::open(blob, context.budget()).expect("the file is whole")
    }

    /// Evicts a file that no process has mapped from the system's cache.
    pub fn chill(&self, name: &str) {
        chill(&self.path().join(name)).expect("the system takes advice");
    }
}

/// Evicts a file that no process has mapped from the system's cache.
pub fn chill(path: &PathBuf) -> io::Result<()> {
    fadvise(File::open(path)?, 0, None, Advice::DontNeed)?;
    Ok(())
}
