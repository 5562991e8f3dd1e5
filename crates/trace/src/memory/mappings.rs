//! Which mapped files have pages in memory, and how many.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::policy::MemoryPolicy;

/// A mapped file.
pub(crate) trait Mapping: Send + Sync {
    /// How many of its bytes became resident since the last eviction.
    fn resident(&self) -> usize;

    /// Evicts all of its pages. Readers may be at work: a page that one needs again is read again.
    fn evict(&self);
}

/// All mapped files of a budget. It evicts whole files when together they have too much in memory.
pub(crate) struct Mappings {
    policy: MemoryPolicy,
    resident: AtomicUsize,
    files: Mutex<Vec<Weak<dyn Mapping>>>,
}

impl std::fmt::Debug for Mappings {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Mappings").field("resident", &self.resident).finish_non_exhaustive()
    }
}

impl Mappings {
    pub(super) fn new(policy: &MemoryPolicy) -> Self {
        Mappings { policy: *policy, resident: AtomicUsize::new(0), files: Mutex::default() }
    }

    /// The resident bytes of all files.
    pub(super) fn resident(&self) -> usize {
        self.resident.load(Ordering::Relaxed)
    }

    /// Registers a file that will be read.
    pub(crate) fn add(&self, file: Weak<dyn Mapping>) {
        let mut files = self.files.lock();
        // Files that are gone make room before the list grows.
        if files.len() == files.capacity() {
            files.retain(|file| file.strong_count() > 0);
        }
        files.push(file);
    }

    /// Counts bytes that have become resident, also in the counter of their file. Above
    /// [`MemoryPolicy::resident`] it evicts files, those with most resident bytes first: a sequential reader needs
    /// little of what it has read, and pages that are looked up here and there in other files stay.
    pub(crate) fn add_resident(&self, bytes: usize, file: &AtomicUsize) {
        // The sum comes first: once the file has the bytes, another thread may evict and subtract them.
        let resident = self.resident.fetch_add(bytes, Ordering::Relaxed) + bytes;
        file.fetch_add(bytes, Ordering::Release);
        if resident <= self.policy.resident {
            return;
        }
        // Another thread may be evicting just now.
        let Some(files) = self.files.try_lock() else { return };
        let held = files.iter().filter_map(Weak::upgrade);
        let mut held: Vec<(usize, Arc<dyn Mapping>)> = held
            .map(|file| (file.resident(), file))
            .filter(|(resident, _)| *resident > 0)
            .collect();
        drop(files);
        held.sort_unstable_by_key(|(resident, _)| std::cmp::Reverse(*resident));
        for (_, file) in held {
            if self.resident() <= self.policy.resident_after_eviction {
                break;
            }
            file.evict();
        }
    }

    /// Subtracts the resident bytes of a file, and sets its counter to zero.
    pub(crate) fn subtract_resident(&self, file: &AtomicUsize) {
        self.resident.fetch_sub(file.swap(0, Ordering::Acquire), Ordering::Relaxed);
    }
}
