//! Calls that may block.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use alluvium::Interrupt;
use pyo3::prelude::*;

use crate::error;
use crate::open::Open;

/// How often a call looks for signals.
const INTERVAL: Duration = Duration::from_millis(50);

thread_local! {
    /// The exception of Python code that a call of this thread has run.
    static CAUSE: RefCell<Option<PyErr>> = const { RefCell::new(None) };

    /// The exception of a signal's handler that has run in a call of this thread. It may be another call that looks for signals: that which
    /// has begun the query whose rows are taken.
    static SIGNALLED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Runs `act` without the GIL. Signals end what it does with the engine, and their exceptions are raised. `sql` is the text that errors are
/// about. `act` is given the request to end, for what it waits for besides.
pub(crate) fn blocking<R: Send>(
    py: Python<'_>,
    open: &Open,
    sql: Option<&str>,
    act: impl FnOnce(&Interrupt) -> alluvium::Result<R> + Send,
) -> PyResult<R> {
    open.check(py)?;
    // That of a call around this one: Python code that it runs has come here.
    if let Some(raised) = SIGNALLED.take() {
        return Err(raised);
    }
    let interrupt = Interrupt::polling(INTERVAL, is_signalled);
    CAUSE.take();
    let result = {
        let _running = open.enter(&interrupt);
        py.detach(|| catch_unwind(AssertUnwindSafe(|| interrupt.watch(|| act(&interrupt)))))
    };
    let cause = CAUSE.take();
    if let Some(raised) = SIGNALLED.take() {
        return Err(raised);
    }
    let error = match result {
        Ok(Ok(result)) => return Ok(result),
        Ok(Err(error)) => error,
        Err(_) => return Err(error::internal(py, "a fault of Alluvium: a call has panicked")),
    };
    match cause {
        // Ctrl-C, and the end of the interpreter, are no errors of a statement.
        Some(cause) if !cause.is_instance_of::<pyo3::exceptions::PyException>(py) => Err(cause),
        cause => {
            let raised = error::raised(py, &error, sql);
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
