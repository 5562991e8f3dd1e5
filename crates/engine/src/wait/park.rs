//! Calls that block until something is there.

use std::sync::Arc;
use std::task::{Wake, Waker};
use std::thread::{self, Thread};

use crate::error::Result;
use crate::interrupt::Limits;

/// The result of a look at what a thread waits for.
pub(crate) enum Look<T, W> {
    /// The awaited result.
    Found(T),
    /// Not yet: it has entered a list.
    Waits(W),
}

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

/// The waker that unparks this thread.
pub fn thread_waker() -> Waker {
    thread_local! {
        static THREAD: Waker = Waker::from(Arc::new(Unpark(thread::current())));
    }
    THREAD.with(Waker::clone)
}

/// Calls `look` until it finds what this thread waits for, now and whenever the waker is woken that it is given. Fails if `look`
/// does, or if it has to wait and the [limits](Limits) of the call are reached.
pub(crate) fn until<T, W>(mut look: impl FnMut(&Waker) -> Result<Look<T, W>>) -> Result<T> {
    let (limits, waker) = (Limits::current(), thread_waker());
    loop {
        let entered = match look(&waker)? {
            Look::Found(found) => return Ok(found),
            Look::Waits(entered) => entered,
        };
        limits.park(&waker)?;
        drop(entered);
    }
}
