//! Reads that wait for another program.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The reads of pipes and devices in progress: each may wait until another program writes.
#[derive(Default)]
pub(crate) struct Waiting {
    next: AtomicU64,
    reads: Mutex<Vec<Read>>,
}

struct Read {
    number: u64,
    path: PathBuf,
    since: Instant,
}

impl Waiting {
    /// The path whose reads may wait; `None` for a file or folder, whose do not.
    pub(crate) fn of(path: &Path) -> Option<Arc<Path>> {
        let metadata = fs::metadata(path).ok()?;
        let waits = !metadata.is_file() && !metadata.is_dir();
        waits.then(|| path.into())
    }

    /// Calls `read`, which reads `path`.
    pub(crate) fn during<R>(&self, path: Option<&Path>, read: impl FnOnce() -> R) -> R {
        let Some(path) = path else { return read() };
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (path, since) = (path.to_owned(), Instant::now());
        self.reads.lock().push(Read { number, path, since });
        let result = read();
        self.reads.lock().retain(|read| read.number != number);
        result
    }

    /// A path of which a read has waited for so long.
    pub(crate) fn longer_than(&self, time: Duration) -> Option<PathBuf> {
        let reads = self.reads.lock();
        reads.iter().find(|read| read.since.elapsed() >= time).map(|read| read.path.clone())
    }
}
