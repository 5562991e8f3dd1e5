//! How much of the mapped files is in memory.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

/// A mapped file.
pub(crate) trait Mapping: Send + Sync {
    /// How many bytes of it were touched and not given back.
    fn touched(&self) -> usize;

    /// Gives back all that was touched. Readers may be at it: what they touch again comes again.
    fn give_back(&self);
}

/// All mapped files, and the most of them that should stay in memory.
pub(crate) struct Mappings {
    limit: usize,
    touched: AtomicUsize,
    files: Mutex<Vec<Weak<dyn Mapping>>>,
}

impl std::fmt::Debug for Mappings {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Mappings").field("touched", &self.touched).finish_non_exhaustive()
    }
}

impl Mappings {
    pub(super) fn new(limit: usize) -> Self {
        Mappings { limit, touched: AtomicUsize::new(0), files: Mutex::default() }
    }

    /// The bytes that were touched and not given back.
    pub(super) fn touched(&self) -> usize {
        self.touched.load(Ordering::Relaxed)
    }

    /// A file that will be touched.
    pub(crate) fn add(&self, file: Weak<dyn Mapping>) {
        let mut files = self.files.lock();
        // Those that are gone make room before the list grows.
        if files.len() == files.capacity() {
            files.retain(|file| file.strong_count() > 0);
        }
        files.push(file);
    }

    /// So many bytes more were touched, which are added to the file's. If that is too much, the files of which most was
    /// touched are given back, as a whole: who goes through one keeps little of it, and what is looked up here and there
    /// in others stays.
    pub(crate) fn touch(&self, bytes: usize, file: &AtomicUsize) {
        // Others may give the file back as soon as its bytes are told: the sum has to have them by then.
        let touched = self.touched.fetch_add(bytes, Ordering::Relaxed) + bytes;
        file.fetch_add(bytes, Ordering::Release);
        if touched <= self.limit {
            return;
        }
        // Another thread may be giving back just now.
        let Some(files) = self.files.try_lock() else { return };
        let held = files.iter().filter_map(Weak::upgrade);
        let mut held: Vec<(usize, Arc<dyn Mapping>)> =
            held.map(|file| (file.touched(), file)).filter(|(touched, _)| *touched > 0).collect();
        drop(files);
        held.sort_unstable_by_key(|(touched, _)| std::cmp::Reverse(*touched));
        for (_, file) in held {
            if self.touched() <= self.limit / 2 {
                break;
            }
            file.give_back();
        }
    }

    /// The bytes that were touched of a file were given back.
    pub(crate) fn give_back(&self, file: &AtomicUsize) {
        self.touched.fetch_sub(file.swap(0, Ordering::Acquire), Ordering::Relaxed);
    }
}
