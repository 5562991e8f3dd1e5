//! The counters of memory and files.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Counters of the memory and the files of an engine's state. They count, and decide nothing.
#[derive(Debug, Default)]
pub(super) struct Account {
    /// Bytes in use on the heap and in slots.
    used: AtomicUsize,
    /// The highest value of `used`.
    peak: AtomicUsize,
    /// The part of `used` that waits between workers.
    queued: AtomicUsize,
    /// Buffers of unsorted rows.
    buffers: AtomicUsize,
    /// Bytes that jobs which are not done yet have to merge.
    debt: AtomicUsize,
    /// Bytes on the heap that are being moved to files.
    spilling: AtomicUsize,
    /// Bytes of the files that hold state.
    files: AtomicU64,
    /// Bytes ever written to such files.
    written: AtomicU64,
}

impl Account {
    pub(super) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    pub(super) fn peak(&self) -> usize {
        self.peak.load(Ordering::Relaxed)
    }

    pub(super) fn queued(&self) -> usize {
        self.queued.load(Ordering::Relaxed)
    }

    pub(super) fn buffers(&self) -> usize {
        self.buffers.load(Ordering::Relaxed)
    }

    pub(super) fn add_buffer(&self) {
        self.buffers.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn remove_buffer(&self) {
        self.buffers.fetch_sub(1, Ordering::Relaxed);
    }

    /// The counter of bytes that jobs have to merge.
    pub(super) fn debt(&self) -> &AtomicUsize {
        &self.debt
    }

    /// The counter of bytes that are being moved to files.
    pub(super) fn spilling(&self) -> &AtomicUsize {
        &self.spilling
    }

    pub(super) fn files(&self) -> u64 {
        self.files.load(Ordering::Relaxed)
    }

    pub(super) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Counts more bytes; returns the new sum if it is a new peak.
    #[inline]
    pub(super) fn add(&self, bytes: usize) -> Option<usize> {
        let now = self.used.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let is_peak = now > self.peak.load(Ordering::Relaxed);
        if is_peak {
            self.peak.fetch_max(now, Ordering::Relaxed);
        }
        is_peak.then_some(now)
    }

    #[inline]
    pub(super) fn subtract(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(super) fn enqueue(&self, bytes: usize) {
        self.queued.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn dequeue(&self, bytes: usize) {
        self.queued.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(super) fn add_file(&self, bytes: u64) {
        self.files.fetch_add(bytes, Ordering::Relaxed);
        self.written.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn remove_file(&self, bytes: u64) {
        self.files.fetch_sub(bytes, Ordering::Relaxed);
    }
}
