//! How much the spines of a thread hold.
//!
//! A thread that is to be looked at from outside [attaches](Gauge::attach) a gauge before it makes spines. Each of
//! them keeps its part of the gauge up to date: whenever its list of batches changes, and until it is dropped.
//! Nothing is locked. Batches that somebody else holds on to, when their spine has merged them, are not counted.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

thread_local! {
    static ATTACHED: RefCell<Arc<Gauge>> = RefCell::default();
}

/// How many updates the spines of a thread hold, and how many bytes they take.
#[derive(Debug, Default)]
pub struct Gauge {
    rows: AtomicUsize,
    bytes: AtomicUsize,
}

impl Gauge {
    /// Counts the spines that are made on this thread from now on.
    pub fn attach(self: &Arc<Self>) {
        ATTACHED.set(Arc::clone(self));
    }

    /// How many updates spines hold: for most spines the number of their rows, once times are compacted.
    pub fn rows(&self) -> usize {
        self.rows.load(Ordering::Relaxed)
    }

    /// How many bytes the pages of the spines take.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// A part of a gauge, which is taken out of it again when this is dropped.
pub(crate) struct Share {
    gauge: Arc<Gauge>,
    rows: usize,
    bytes: usize,
}

impl Default for Share {
    /// Nothing of the gauge of this thread.
    fn default() -> Self {
        Self { gauge: ATTACHED.with_borrow(Arc::clone), rows: 0, bytes: 0 }
    }
}

impl Share {
    /// The part is so large now.
    pub(crate) fn set(&mut self, rows: usize, bytes: usize) {
        change(&self.gauge.rows, &mut self.rows, rows);
        change(&self.gauge.bytes, &mut self.bytes, bytes);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.set(0, 0);
    }
}

/// Differences wrap around, and so does the sum they are added to.
fn change(all: &AtomicUsize, part: &mut usize, now: usize) {
    if *part != now {
        all.fetch_add(now.wrapping_sub(*part), Ordering::Relaxed);
        *part = now;
    }
}
