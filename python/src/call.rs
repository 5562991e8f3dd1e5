//! Calls that may block.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use alluvium::Interrupt;
use pyo3::prelude::*;

use crate::error;
use crate::failure::Fallible;
use crate::open::Open;

/// How often a call looks for signals.
pub(crate) const INTERVAL: Duration = Duration::from_millis(50);

/// For how long the end of the interpreter waits for functions that are running.
const PATIENCE: Duration = Duration::from_secs(10);

thread_local! {
    /// The exception of Python code that a call of this thread has run.
    static CAUSE: RefCell<Option<PyErr>> = const { RefCell::new(None) };

    /// The exception of a signal's handler that has run in a call of this thread. It may be another call that looks for signals: that which
    /// has begun the query whose rows are taken.
    static SIGNALLED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

thread_local! {
    /// How many calls are running on this thread, one within the other.
    static DEPTH: Cell<usize> = const { Cell::new(0) };

    /// The request to end the innermost call that is running on this thread.
    static INTERRUPT: RefCell<Option<Interrupt>> = const { RefCell::new(None) };

    /// The engine whose views this thread maintains, while it runs Python code.
    static MAINTAINED: Cell<Option<u64>> = const { Cell::new(None) };
}

/// How many threads that are none of Python's run Python code, or wait for the GIL.
static INSIDE: AtomicUsize = AtomicUsize::new(0);

/// Whether no more of them may.
static IS_OVER: AtomicBool = AtomicBool::new(false);

/// Runs Python code on a thread that is none of Python's; `None` once the interpreter has ended.
///
/// Python ends threads that want the GIL while the interpreter ends, and the process with them if there are frames of Rust on their stacks. So they
/// wait here for its end.
pub(crate) fn from_thread<R>(act: impl FnOnce(Python<'_>) -> R) -> Option<R> {
    struct Inside;
    impl Drop for Inside {
        fn drop(&mut self) {
            INSIDE.fetch_sub(1, Ordering::SeqCst);
        }
    }

    INSIDE.fetch_add(1, Ordering::SeqCst);
    let inside = Inside;
    if IS_OVER.load(Ordering::SeqCst) {
        drop(inside);
        loop {
            thread::park();
        }
    }
    Python::try_attach(act)
}

/// Forgets the threads of the process that this one was forked from.
pub(crate) fn forget_threads() {
    INSIDE.store(0, Ordering::SeqCst);
}

/// From now on only Python's own threads run Python code. Waits for others, for a while.
pub(crate) fn end(py: Python<'_>) {
    IS_OVER.store(true, Ordering::SeqCst);
    py.detach(|| {
        let until = Instant::now() + PATIENCE;
        while INSIDE.load(Ordering::SeqCst) > 0 && Instant::now() < until {
            thread::sleep(Duration::from_millis(1));
        }
    });
}

/// Runs Python code that an engine calls. A thread on which no call is running is one of the engine, and maintains views.
pub(crate) fn from_engine<R>(engine: u64, act: impl FnOnce(Python<'_>) -> R) -> Option<R> {
    if DEPTH.get() > 0 {
        return Python::try_attach(act);
    }
    let outer = MAINTAINED.replace(Some(engine));
    let result = from_thread(act);
    MAINTAINED.set(outer);
    result
}

/// Whether Python code that is running here was called to maintain a view of an engine: what it asks of that would wait for itself.
pub(crate) fn is_maintaining(engine: u64) -> bool {
    MAINTAINED.get() == Some(engine)
}

/// Whether the call that is running on this thread is asked to end.
pub(crate) fn is_asked_to_end() -> bool {
    let interrupt = INTERRUPT.with_borrow(Clone::clone);
    interrupt.is_some_and(|interrupt| interrupt.is_requested())
}

/// Runs `act` without the GIL. Signals end what it does with the backend, and their exceptions are raised. `sql` is the text that errors are
/// about. `act` is given the request to end, for what it waits for besides.
pub(crate) fn blocking<R: Send>(
    py: Python<'_>,
    open: &Open,
    sql: Option<&str>,
    act: impl FnOnce(&Interrupt) -> Fallible<R> + Send,
) -> PyResult<R> {
    open.check(py)?;
    let interrupt = Interrupt::polling(INTERVAL, is_signalled);
    let _running = open.enter(&interrupt);
    interruptible(py, &interrupt, sql, act)
}

/// Runs `act`, which opens a database, as [`blocking`] does.
pub(crate) fn opening<R: Send>(
    py: Python<'_>,
    act: impl FnOnce() -> Fallible<R> + Send,
) -> PyResult<R> {
    interruptible(py, &Interrupt::polling(INTERVAL, is_signalled), None, |_| act())
}

fn interruptible<R: Send>(
    py: Python<'_>,
    interrupt: &Interrupt,
    sql: Option<&str>,
    act: impl FnOnce(&Interrupt) -> Fallible<R> + Send,
) -> PyResult<R> {
    // That of a call around this one: Python code that it runs has come here.
    if let Some(raised) = SIGNALLED.take() {
        return Err(raised);
    }
    CAUSE.take();
    DEPTH.set(DEPTH.get() + 1);
    let outer = INTERRUPT.replace(Some(interrupt.clone()));
    let result =
        py.detach(|| catch_unwind(AssertUnwindSafe(|| interrupt.watch(|| act(interrupt)))));
    INTERRUPT.set(outer);
    DEPTH.set(DEPTH.get() - 1);
    let cause = CAUSE.take();
    if let Some(raised) = SIGNALLED.take() {
        return Err(raised);
    }
    let failure = match result {
        Ok(Ok(result)) => return Ok(result),
        Ok(Err(failure)) => failure,
        Err(_) => return Err(error::internal(py, "a fault of Alluvium: a call has panicked")),
    };
    match cause {
        // Ctrl-C, and the end of the interpreter, are no errors of a statement.
        Some(cause) if !cause.is_instance_of::<pyo3::exceptions::PyException>(py) => Err(cause),
        cause => {
            let raised = error::raised(py, &failure, sql);
            raised.set_cause(py, cause);
            Err(raised)
        }
    }
}

/// Remembers an exception that Python code has raised in a call, as the cause of the error that the call ends with.
pub(crate) fn caused(error: PyErr) {
    CAUSE.set(Some(error));
}

/// Runs the handlers of signals that have come, if this is the thread for it. Returns whether one has raised an exception.
fn is_signalled() -> bool {
    let signalled = Python::try_attach(|py| py.check_signals());
    let Some(Err(error)) = signalled else { return false };
    SIGNALLED.set(Some(error));
    true
}
