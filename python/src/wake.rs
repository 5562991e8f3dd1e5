//! Callables that the engine wakes.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, OnceLock};
use std::task::Wake;
use std::thread;

use parking_lot::Mutex;
use pyo3::prelude::*;

use crate::call;

/// Callables that wait for something: each is called once, when it may be there, on a thread for this. Threads of the engine wait for no GIL.
#[derive(Default)]
pub(crate) struct Waiting(Mutex<Vec<Py<PyAny>>>);

impl Waiting {
    /// Adds one.
    pub(crate) fn add(&self, call: Py<PyAny>) {
        self.0.lock().push(call);
    }

    /// Forgets one, which does not wait any more.
    pub(crate) fn forget(&self, call: &Py<PyAny>) {
        let forgotten = {
            let mut waiting = self.0.lock();
            let place = waiting.iter().position(|waiting| waiting.is(call));
            place.map(|place| waiting.swap_remove(place))
        };
        // Its end may run code.
        drop(forgotten);
    }

    /// Calls all.
    pub(crate) fn call(&self) {
        let waiting = std::mem::take(&mut *self.0.lock());
        let Some(calls) = calls() else { return };
        for call in waiting {
            // It is gone with the interpreter.
            let _ = calls.send(call);
        }
    }
}

impl Wake for Waiting {
    fn wake(self: Arc<Self>) {
        self.call();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.call();
    }
}

/// The thread that calls; `None` if the system has no thread for it.
fn calls() -> Option<&'static Sender<Py<PyAny>>> {
    static CALLS: OnceLock<Option<Sender<Py<PyAny>>>> = OnceLock::new();
    let start = || {
        let (sender, receiver) = channel::<Py<PyAny>>();
        let run = move || {
            for call in receiver {
                let called = call::from_thread(|py| {
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
