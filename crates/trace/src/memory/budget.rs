//! One limit for all state of a process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::mappings::Mappings;
use super::pressure::Pressure;
use super::slots::Slots;

/// A count of bytes, and the most it should be. Clones are of the same count.
#[derive(Clone, Debug)]
pub struct MemoryBudget {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    limit: usize,
    /// Bytes on the heap.
    used: AtomicUsize,
    /// The most bytes there were on the heap.
    peak: AtomicUsize,
    /// Those of them that wait to be taken from one thread to another.
    queued: AtomicUsize,
    /// What was touched of mapped files.
    mappings: Mappings,
    /// Bytes of files that hold state.
    files: AtomicU64,
    /// Bytes ever written to such files.
    written: AtomicU64,
    /// Where full pages are.
    slots: Arc<Slots>,
    pressure: Pressure,
}

/// Batches smaller than this are not worth a file, where the limit leaves room for them.
const SMALL: usize = 64 << 10;

/// A handful is no more than this, and less where there is little.
const HANDFUL: usize = 1 << 20;

/// As much it is in any case.
const LEAST_HANDFUL: usize = 4 << 10;

impl MemoryBudget {
    /// A budget of `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self::with_pressure(limit, Arc::new(|_| ()))
    }

    /// A budget of `limit` bytes; once there is more than a third of it on the heap, `act` is done, with the limit, by
    /// the thread that first sees it.
    pub fn with_pressure(limit: usize, act: Arc<dyn Fn(usize) + Send + Sync>) -> Self {
        Self {
            shared: Arc::new(Shared {
                limit,
                used: AtomicUsize::new(0),
                peak: AtomicUsize::new(0),
                queued: AtomicUsize::new(0),
                mappings: Mappings::new(limit / 8),
                files: AtomicU64::new(0),
                written: AtomicU64::new(0),
                slots: Arc::new(Slots::new(limit)),
                pressure: Pressure::new(limit, act),
            }),
        }
    }

    /// A budget that counts and never limits.
    pub fn unlimited() -> Self {
        Self::new(usize::MAX)
    }

    /// The most bytes there should be; `usize::MAX` for no limit.
    pub fn limit(&self) -> usize {
        self.shared.limit
    }

    /// The bytes on the heap now.
    pub fn used(&self) -> usize {
        self.shared.used.load(Ordering::Relaxed)
    }

    /// The most bytes there were on the heap.
    pub fn peak(&self) -> usize {
        self.shared.peak.load(Ordering::Relaxed)
    }

    /// The bytes of mapped files that were touched since they were last given back.
    pub fn touched(&self) -> usize {
        self.shared.mappings.touched()
    }

    /// The bytes that are kept for pages to come, which are not counted as being on the heap.
    pub fn kept(&self) -> usize {
        self.shared.slots.kept()
    }

    /// The bytes of the files that hold state now.
    pub fn files(&self) -> u64 {
        self.shared.files.load(Ordering::Relaxed)
    }

    /// The bytes that were ever written to files.
    pub fn written(&self) -> u64 {
        self.shared.written.load(Ordering::Relaxed)
    }

    /// Whether there is more on the heap than there should be. Of the limit an eighth is left to mapped files, and an
    /// eighth to what is not counted: columns that single operators decode, and holes in the allocator's heap.
    pub fn is_over(&self) -> bool {
        self.excess() > 0
    }

    /// Whether there is more on the heap than there may be.
    pub fn is_exceeded(&self) -> bool {
        self.used() > self.limit()
    }

    /// By how much there is more on the heap than there should be.
    pub(crate) fn excess(&self) -> usize {
        self.used().saturating_sub(self.most_on_heap())
    }

    /// Whether there would be more on the heap than there should be with `bytes` more.
    pub(crate) fn has_no_room_for(&self, bytes: usize) -> bool {
        self.used().saturating_add(bytes) > self.most_on_heap()
    }

    fn most_on_heap(&self) -> usize {
        self.limit() - self.limit() / 4
    }

    /// Whether so much in one place, which could wait in a file as well, is better moved there.
    pub fn is_much(&self, bytes: usize) -> bool {
        bytes >= self.limit() / 16 || self.is_over() && bytes >= self.limit() / 64
    }

    /// Whether so much waits to be taken from one thread to another that no more should be sent.
    pub fn is_congested(&self) -> bool {
        self.shared.queued.load(Ordering::Relaxed) > SMALL.max(self.limit() / 16)
    }

    /// How many bytes of rows an operator should have in hand at a time.
    pub fn handful(&self) -> usize {
        (self.limit() / 256).clamp(LEAST_HANDFUL, HANDFUL)
    }

    /// How many bytes something that is filled again and again, this time with `used`, may keep allocated when it is
    /// emptied: what it needs each time, unless there is too little memory for that.
    pub fn retained(&self, used: usize) -> usize {
        used.min(self.limit() / 64).max(self.handful())
    }

    /// The fewest bytes that are worth a file.
    pub fn smallest_file(&self) -> usize {
        SMALL.min(self.limit() / 256)
    }

    /// Counts `bytes` until what is returned is dropped.
    pub fn charge(&self, bytes: usize) -> Charge {
        let mut charge = Charge { budget: self.clone(), bytes: 0 };
        charge.set(bytes);
        charge
    }

    /// Counts `bytes` on their way from one thread to another until what is returned is dropped.
    pub fn queue(&self, bytes: usize) -> Queued {
        self.shared.queued.fetch_add(bytes, Ordering::Relaxed);
        Queued { charge: self.charge(bytes) }
    }

    /// The memory for full pages.
    pub(super) fn slots(&self) -> &Arc<Slots> {
        &self.shared.slots
    }

    /// Counts a file that was written.
    pub(crate) fn add_file(&self, bytes: u64) {
        self.shared.files.fetch_add(bytes, Ordering::Relaxed);
        self.shared.written.fetch_add(bytes, Ordering::Relaxed);
    }

    /// No longer counts a file.
    pub(crate) fn remove_file(&self, bytes: u64) {
        self.shared.files.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// The mapped files.
    pub(crate) fn mappings(&self) -> &Mappings {
        &self.shared.mappings
    }
}

/// Bytes that are counted.
#[derive(Debug)]
pub struct Charge {
    budget: MemoryBudget,
    bytes: usize,
}

impl Charge {
    /// What they are counted in.
    pub fn budget(&self) -> &MemoryBudget {
        &self.budget
    }

    /// Counts `bytes` instead of what was counted before.
    pub fn set(&mut self, bytes: usize) {
        if bytes == self.bytes {
            return;
        }
        let Shared { used, peak, pressure, .. } = &*self.budget.shared;
        let before = std::mem::replace(&mut self.bytes, bytes);
        if bytes >= before {
            let more = bytes - before;
            let now = used.fetch_add(more, Ordering::Relaxed) + more;
            if now > peak.load(Ordering::Relaxed) {
                peak.fetch_max(now, Ordering::Relaxed);
                pressure.rises_to(now);
            }
        } else {
            used.fetch_sub(before - bytes, Ordering::Relaxed);
        }
    }

    /// Counts `bytes` more.
    pub(crate) fn add(&mut self, bytes: usize) {
        self.set(self.bytes + bytes);
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// Bytes on their way from one thread to another.
#[derive(Debug)]
pub struct Queued {
    charge: Charge,
}

impl Drop for Queued {
    fn drop(&mut self) {
        self.charge.budget.shared.queued.fetch_sub(self.charge.bytes, Ordering::Relaxed);
    }
}
