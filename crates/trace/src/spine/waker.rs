//! How a spine gets to run when there is something to do.

use std::cell::Cell;
use std::time::{Duration, Instant};

use timely::scheduling::{Activator, SyncActivator};

/// How long a spine waits before it does the next slice of its jobs.
const TICK: Duration = Duration::from_millis(2);

/// Schedules the operator that maintains a spine.
#[derive(Debug, Default)]
pub struct Waker {
    local: Option<Activator>,
    any_thread: Option<SyncActivator>,
    /// When the operator will run next for the spine's sake.
    next: Cell<Option<Instant>>,
}

impl Waker {
    /// A waker of the spine's own thread. Progress of other threads is then found by polling.
    pub fn local(local: Option<Activator>) -> Self {
        Waker { local, ..Self::default() }
    }

    /// A waker of the spine's own thread and one for all threads, of the same operator.
    pub fn new(local: Activator, any_thread: SyncActivator) -> Self {
        Waker { local: Some(local), any_thread: Some(any_thread), ..Self::default() }
    }

    /// A waker for other threads.
    pub(super) fn any_thread(&self) -> Option<&SyncActivator> {
        self.any_thread.as_ref()
    }

    /// Whether the spine cannot be scheduled, and works when it is called.
    pub(super) fn is_missing(&self) -> bool {
        self.local.is_none()
    }

    /// Whether the time has come that was set.
    pub(super) fn is_due(&self) -> bool {
        self.next.get().is_some_and(|next| next <= Instant::now())
    }

    /// Runs the operator in a while, unless that is set already.
    pub(super) fn set(&self) {
        if let Some(local) = &self.local
            && (self.next.get().is_none() || self.is_due())
        {
            self.next.set(Some(Instant::now() + TICK));
            local.activate_after(TICK);
        }
    }

    /// Nothing is left to do.
    pub(super) fn clear(&self) {
        self.next.set(None);
    }
}
