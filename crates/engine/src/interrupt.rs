//! Ending calls before they are done.
//!
//! Each call has [`Limits`]: a request that ends it, and a deadline. They are set for a call by [`Interrupt::watch`] and
//! [`limited`], and reach all that the call does: waits ([`crate::wait`]), queries, and reading and writing files. Work
//! that moves to another thread takes them along.

use std::cell::RefCell;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::error::{Error, Result};
use crate::wait::WaitList;

/// A request to end calls of an engine. Clones are the same request.
///
/// Calls inside of [`Interrupt::watch`] fail with [`Error::Interrupted`] soon after
/// [`Interrupt::request`], while they wait, answer a query, or read or write a file. They have no effect: staged changes
/// are not committed, and created relations are gone. A call that has nothing to wait for, or that could not be undone,
/// is completed.
#[derive(Clone, Default)]
pub struct Interrupt {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    is_requested: AtomicBool,
    /// Those who wait for something else, and look at this first.
    waits: WaitList<()>,
    condition: Option<Condition>,
}

/// A condition that has to be looked at, because no thread requests the end of calls when it comes true.
struct Condition {
    interval: Duration,
    /// When it is looked at next.
    due: Mutex<Instant>,
    is_true: Box<dyn Fn() -> bool + Send + Sync>,
}

impl Condition {
    fn new(interval: Duration, is_true: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { interval, due: Mutex::new(Instant::now() + interval), is_true: Box::new(is_true) }
    }

    /// Whether the condition is due and true. Of several threads that ask at once, one looks.
    fn is_true(&self) -> bool {
        let Some(mut due) = self.due.try_lock() else { return false };
        let now = Instant::now();
        if now < *due {
            return false;
        }
        *due = now + self.interval;
        (self.is_true)()
    }
}

impl Interrupt {
    /// A request that is also made once `is_true`, which the calls that watch this ask about every `interval`, on their threads. For
    /// conditions that cannot be waited for, as the signals of an interpreter whose handlers run on one thread.
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    ///
    /// let db = alluvium::Engine::builder().workers(1).open_in_memory()?;
    /// let end = Instant::now() + Duration::from_millis(20);
    /// let over = alluvium::Interrupt::polling(Duration::from_millis(5), move || Instant::now() >= end);
    /// // Nobody makes this epoch.
    /// assert_eq!(over.watch(|| db.wait(1)), Err(alluvium::Error::Interrupted));
    /// # Ok::<(), alluvium::Error>(())
    /// ```
    pub fn polling(interval: Duration, is_true: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        let condition = Some(Condition::new(interval, is_true));
        Self { shared: Arc::new(Shared { condition, ..Shared::default() }) }
    }

    /// Ends calls that watch this, now and until it is cleared.
    pub fn request(&self) {
        self.shared.is_requested.store(true, Ordering::SeqCst);
        self.shared.waits.wake_all();
    }

    /// Withdraws the request.
    pub fn clear(&self) {
        self.shared.is_requested.store(false, Ordering::SeqCst);
    }

    /// Runs `act`, whose calls on this thread end when this is requested.
    pub fn watch<R>(&self, act: impl FnOnce() -> R) -> R {
        Limits { interrupt: Some(self.clone()), ..Limits::current() }.scope(act)
    }

    /// Whether it is requested, and not cleared since.
    pub fn is_requested(&self) -> bool {
        if self.shared.is_requested.load(Ordering::SeqCst) {
            return true;
        }
        let is_requested = self.shared.condition.as_ref().is_some_and(Condition::is_true);
        if is_requested {
            self.request();
        }
        is_requested
    }

    /// How long a call may wait before it looks at this again; `None` if it is woken.
    fn interval(&self) -> Option<Duration> {
        self.shared.condition.as_ref().map(|condition| condition.interval)
    }
}

/// The interrupts and deadlines that end a call before it is done.
#[derive(Clone, Default)]
pub(crate) struct Limits {
    interrupt: Option<Interrupt>,
    deadline: Option<Instant>,
    /// Whether the call ends instead of waiting.
    never_waits: bool,
}

thread_local! {
    /// Those of the call that this thread is in.
    static CURRENT: RefCell<Limits> =
        const { RefCell::new(Limits { interrupt: None, deadline: None, never_waits: false }) };
}

/// The limits that were current before, put back when this is dropped.
struct Restored(Limits);

impl Drop for Restored {
    fn drop(&mut self) {
        CURRENT.set(std::mem::take(&mut self.0));
    }
}

impl Limits {
    /// Those of the call that this thread is in.
    pub(crate) fn current() -> Self {
        CURRENT.with_borrow(Clone::clone)
    }

    /// These limits and those of another call: its request counts if these have none, and the earlier deadline.
    pub(crate) fn or(self, other: Self) -> Self {
        let deadline = [self.deadline, other.deadline].into_iter().flatten().min();
        let never_waits = self.never_waits || other.never_waits;
        Self { interrupt: self.interrupt.or(other.interrupt), deadline, never_waits }
    }

    /// Runs `act` with these limits.
    pub(crate) fn scope<R>(self, act: impl FnOnce() -> R) -> R {
        let _restored = Restored(CURRENT.replace(self));
        act()
    }

    /// Why the call should end, if it should.
    pub(crate) fn reached(&self) -> Option<Error> {
        if self.interrupt.as_ref().is_some_and(Interrupt::is_requested) {
            return Some(Error::Interrupted);
        }
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => Some(Error::TimedOut),
            _ => None,
        }
    }

    /// Fails if the call should end.
    pub(crate) fn check(&self) -> Result<()> {
        self.reached().map_or(Ok(()), Err)
    }

    /// Parks this thread until `waker`, which is its own, is woken; at most until the limits are reached, and then fails.
    pub(crate) fn park(&self, waker: &Waker) -> Result<()> {
        if self.never_waits {
            return Err(Error::TimedOut);
        }
        let _entered =
            self.interrupt.as_ref().map(|interrupt| interrupt.shared.waits.enter((), waker));
        // A request that came before would not wake it.
        self.check()?;
        let until_deadline =
            self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let until_look = self.interrupt.as_ref().and_then(Interrupt::interval);
        match [until_deadline, until_look].into_iter().flatten().min() {
            None => thread::park(),
            Some(timeout) => thread::park_timeout(timeout),
        }
        self.check()
    }
}

/// Runs `act`, whose calls fail with [`Error::TimedOut`] at the deadline, or at that of the call around it if that is earlier.
pub(crate) fn limited<R>(deadline: Option<Instant>, act: impl FnOnce() -> R) -> R {
    Limits::current().or(Limits { deadline, ..Limits::default() }).scope(act)
}

/// Runs `act`, whose calls fail with [`Error::TimedOut`] where they would have to wait.
pub(crate) fn without_waits<R>(act: impl FnOnce() -> R) -> R {
    Limits::current().or(Limits { never_waits: true, ..Limits::default() }).scope(act)
}

/// Runs `act` to its end: it must not stop halfway.
pub(crate) fn deferred<R>(act: impl FnOnce() -> R) -> R {
    Limits::default().scope(act)
}

/// Why the call that this thread is in should end, if it should.
pub(crate) fn reached() -> Option<Error> {
    CURRENT.with_borrow(Limits::reached)
}

/// Whether [`Error::TimedOut`] is of the call that this thread is in, and not of a part of it that has a deadline of its own.
pub(crate) fn ends_call() -> bool {
    CURRENT.with_borrow(|limits| limits.never_waits || limits.reached().is_some())
}

/// Fails if the call that this thread is in should end.
pub(crate) fn check() -> Result<()> {
    reached().map_or(Ok(()), Err)
}

/// Runs a future until it is done or this call should end, which is looked at whenever the future yields.
pub(crate) async fn until_requested<R>(future: impl Future<Output = R>) -> Result<R> {
    let mut future = pin!(future);
    std::future::poll_fn(|context| match check() {
        Err(interrupted) => Poll::Ready(Err(interrupted)),
        // It may have failed because it was interrupted.
        Ok(()) => future.as_mut().poll(context).map(|done| check().map(|()| done)),
    })
    .await
}
