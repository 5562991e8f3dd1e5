//! Callables that the engine wakes.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, OnceLock};
use std::task::{Wake, Waker};
use std::thread;

use parking_lot::Mutex;
use pyo3::prelude::*;

/// A waker that calls `call` once, on a thread for this: threads of the engine wait for no GIL.
pub(crate) fn waker(call: Py<PyAny>) -> Waker {
    Waker::from(Arc::new(Call(Mutex::new(Some(call)))))
}

struct Call(Mutex<Option<Py<PyAny>>>);

impl Wake for Call {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if let Some(call) = self.0.lock().take()
            && let Some(calls) = calls()
        {
            // It is gone with the interpreter.
            let _ = calls.send(call);
        }
    }
}

/// The thread that calls; `None` if the system has no thread for it.
fn calls() -> Option<&'static Sender<Py<PyAny>>> {
    static CALLS: OnceLock<Option<Sender<Py<PyAny>>>> = OnceLock::new();
    let start = || {
        let (sender, receiver) = channel::<Py<PyAny>>();
        let run = move || {
            for call in receiver {
                let called = Python::try_attach(|py| {
                    if let Err(error) = call.call0(py) {
                        error.write_unraisable(py, Some(call.bind(py)));
                    }
                    drop(call);
                });
                if called.is_none() {
                    return;
                }
            }
        };
        thread::Builder::new().name("python-wakers".to_owned()).spawn(run).ok().map(|_| sender)
    };
    CALLS.get_or_init(start).as_ref()
}
