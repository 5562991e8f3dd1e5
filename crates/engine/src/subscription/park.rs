//! Calls that block until something is there.

use std::sync::Arc;
use std::task::{Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Instant;

use crate::error::Result;
use crate::interrupt;

/// Wakes a thread that is parked.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

thread_local! {
    static THREAD: Waker = Waker::from(Arc::new(Unpark(thread::current())));
}

/// Calls `look` until it finds what this thread waits for, now and whenever the waker is woken that it is given; `None` at the
/// deadline. Fails if `look` does, or if this thread is interrupted.
pub(super) fn until<T>(
    deadline: Option<Instant>,
    mut look: impl FnMut(&Waker) -> Result<Poll<T>>,
) -> Result<Option<T>> {
    THREAD.with(|waker| {
        loop {
            if let Poll::Ready(found) = look(waker)? {
                return Ok(Some(found));
            }
            // Whoever interrupts it from now on wakes it.
            interrupt::check()?;
            match deadline {
                None => thread::park(),
                Some(deadline) => match deadline.checked_duration_since(Instant::now()) {
                    Some(left) if !left.is_zero() => thread::park_timeout(left),
                    _ => return Ok(None),
                },
            }
        }
    })
}
