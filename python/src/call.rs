//! Calls that may block.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use alluvium::Interrupt;
use parking_lot::Mutex;
use pyo3::prelude::*;

use crate::error;
use crate::open::Open;

/// How often a call looks for signals.
const INTERVAL: Duration = Duration::from_millis(50);

thread_local! {
    /// The exception of Python code that a call of this thread has run.
    static CAUSE: RefCell<Option<PyErr>> = const { RefCell::new(None) };
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
    let raised: Arc<Mutex<Option<PyErr>>> = Arc::default();
    let interrupt = Interrupt::polling(INTERVAL, {
        let raised = raised.clone();
        move || is_signalled(&raised)
    });
    CAUSE.take();
    let result = {
        let _running = open.enter(&interrupt);
        py.detach(|| catch_unwind(AssertUnwindSafe(|| interrupt.watch(|| act(&interrupt)))))
    };
    let cause = CAUSE.take();
    let error = match result {
        Ok(Ok(result)) => return Ok(result),
        Ok(Err(error)) => error,
        Err(_) => return Err(error::internal(py, "a fault of Alluvium: a call has panicked")),
    };
    if let Some(raised) = raised.lock().take() {
        return Err(raised);
    }
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
fn is_signalled(raised: &Mutex<Option<PyErr>>) -> bool {
    let signalled = Python::try_attach(|py| py.check_signals());
    let Some(Err(error)) = signalled else { return false };
    *raised.lock() = Some(error);
    true
}
