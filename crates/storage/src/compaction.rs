//! Jobs that are done in slices, on whichever thread has time: merges.
//!
//! The owner of a job makes it, hands it to a [`Compaction`], and continues. Until the job is done its inputs stay as they
//! are. The owner may do a slice itself at any time, cancel the job, and take its result.

use std::fmt;
use std::sync::Arc;

use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use crate::sync::{Mutex, MutexGuard, PoisonError};

/// Work that is done in slices.
pub trait Work: Send {
    /// Continues for about `bytes` bytes of input.
    ///
    /// Must not panic: a failure is a result, which the owner takes.
    fn slice(&mut self, bytes: u64) -> Slice;

    /// Called once, when others can see that the work is done.
    fn finish(&mut self) {}

    /// Releases everything. No more slices are asked of the work. May be called again.
    fn release(&mut self);
}

/// The outcome of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The bytes of input that it has gone through.
    pub bytes: u64,
    /// Whether all of the work is done, or has failed.
    pub is_done: bool,
}

/// Work, and how far it is. Shared by its owner and the threads that do it.
pub struct Job<W: ?Sized> {
    owner: u64,
    bytes: u64,
    progress: AtomicU64,
    is_done: AtomicBool,
    is_cancelled: AtomicBool,
    work: Mutex<W>,
}

impl<W: ?Sized> fmt::Debug for Job<W> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Job")
            .field("owner", &self.owner)
            .field("bytes", &self.bytes)
            .field("progress", &self.progress)
            .field("is_done", &self.is_done)
            .finish_non_exhaustive()
    }
}

impl<W: Work> Job<W> {
    /// A job of this owner, a worker for instance, with so many bytes of input.
    pub fn new(owner: u64, bytes: u64, work: W) -> Arc<Self> {
        Arc::new(Self {
            owner,
            bytes,
            progress: AtomicU64::new(0),
            is_done: AtomicBool::new(false),
            is_cancelled: AtomicBool::new(false),
            work: Mutex::new(work),
        })
    }
}

impl<W: Work + ?Sized> Job<W> {
    /// The owner.
    pub fn owner(&self) -> u64 {
        self.owner
    }

    /// The bytes of the input.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The bytes of input that it has gone through.
    pub fn progress(&self) -> u64 {
        self.progress.load(Ordering::Relaxed)
    }

    /// Whether it has a result.
    pub fn is_done(&self) -> bool {
        self.is_done.load(Ordering::Acquire)
    }

    /// Whether nothing more is to be done, because there is a result or it was cancelled.
    pub fn is_settled(&self) -> bool {
        self.is_done() || self.is_cancelled()
    }

    /// Continues for about `bytes` bytes of input, once a slice that another thread does is over. Nothing happens once it is
    /// settled.
    pub fn advance(&self, bytes: u64) -> Slice {
        let settled = Slice { bytes: 0, is_done: true };
        if self.is_done() {
            return settled;
        }
        let mut work = self.work();
        let slice = match self.is_settled() {
            true => settled,
            false => work.slice(bytes),
        };
        self.progress.fetch_add(slice.bytes, Ordering::Relaxed);
        if slice.is_done && !self.is_settled() {
            self.is_done.store(true, Ordering::Release);
            work.finish();
        }
        drop(work);
        // A thread that cancels it meanwhile leaves the rest to the holder of the lock.
        fence(Ordering::SeqCst);
        if self.is_cancelled() {
            self.release();
            return settled;
        }
        slice
    }

    /// Ends it without a result. Its resources are released at once, or when the slice ends that another thread is doing.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Release);
        fence(Ordering::SeqCst);
        self.release();
    }

    fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Acquire)
    }

    /// Releases the resources of the work, unless another thread has the lock: that one comes here when it has let go.
    fn release(&self) {
        if let Ok(mut work) = self.work.try_lock() {
            work.release();
        }
    }

    /// The work, for the owner of a job that is done to take the result.
    pub fn work(&self) -> MutexGuard<'_, W> {
        // No slice panics.
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Does jobs on threads of its own.
///
/// It owns no state, and no order is promised between jobs.
pub trait Compaction: Send + Sync + fmt::Debug {
    /// Queues a job. After [`close`](Self::close) it is left as it is.
    fn submit(&self, job: Arc<Job<dyn Work>>);

    /// Ends all threads, after the slices that they are doing. Other jobs are left as they are.
    fn close(&self);
}
