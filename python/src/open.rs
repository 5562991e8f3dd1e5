//! An open database, and all that belongs to it.

use std::collections::HashMap;
use std::process;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::{self, ThreadId};
use std::time::Duration;

use alluvium::Interrupt;
use parking_lot::Mutex;
use pyo3::prelude::*;

use crate::backend::Backend;
use crate::call;
use crate::error;
use crate::frames::Frames;
use crate::slot::{self, Closes, Slot};

/// An open database: its handle, what belongs to it, and the calls that are running.
pub(crate) struct Open {
    pid: u32,
    /// Its number among the databases of this process.
    number: u64,
    place: Place,
    is_closed: AtomicBool,
    /// The frames that statements read.
    frames: Arc<Frames>,
    running: Mutex<HashMap<u64, (ThreadId, Interrupt)>>,
    next_call: AtomicU64,
    parts: Mutex<Vec<Weak<dyn Closes>>>,
}

/// Where a database is.
pub(crate) enum Place {
    Memory,
    /// In a state directory.
    Directory(String),
    /// On a server.
    Server,
}

impl Open {
    /// The number of a database that is about to be opened.
    pub(crate) fn next_number() -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        NEXT.fetch_add(1, Ordering::Relaxed)
    }

    /// A database that was opened by this process.
    pub(crate) fn database(
        backend: Arc<dyn Backend>,
        number: u64,
        place: Place,
        frames: Arc<Frames>,
    ) -> Arc<Slot<Arc<dyn Backend>>> {
        let open = Self {
            pid: process::id(),
            number,
            place,
            is_closed: AtomicBool::new(false),
            frames,
            running: Mutex::default(),
            next_call: AtomicU64::new(0),
            parts: Mutex::default(),
        };
        Slot::new(&Arc::new(open), backend)
    }

    /// Where the database is.
    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    pub(crate) fn frames(&self) -> &Arc<Frames> {
        &self.frames
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    /// Whether this process is a child of the one that has opened the database: its threads are not here.
    pub(crate) fn is_forked(&self) -> bool {
        process::id() != self.pid
    }

    /// Fails in a forked process, and once the database is closed.
    pub(crate) fn check(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_forked() {
            return Err(error::interface(
                py,
                "the database was opened before this process was forked, and its threads are not here: open it in the process that uses it",
            ));
        }
        self.check_maintained(py)?;
        match self.is_closed() {
            false => Ok(()),
            true => Err(closed(py)),
        }
    }

    /// Fails in a function in Python that a view of the engine calls.
    fn check_maintained(&self, py: Python<'_>) -> PyResult<()> {
        match call::is_maintaining(self.number) {
            false => Ok(()),
            true => Err(error::interface(
                py,
                "a view calls this function, which cannot use the database of the view: it would wait for itself",
            )),
        }
    }

    /// Adds a part, which is closed with the database.
    pub(crate) fn add(&self, part: Weak<dyn Closes>) {
        let mut parts = self.parts.lock();
        if parts.len() == parts.capacity() {
            parts.retain(|part| part.strong_count() > 0);
        }
        parts.push(part);
    }

    /// A call that `interrupt` ends is running until what this returns is dropped.
    pub(crate) fn enter(&self, interrupt: &Interrupt) -> Running<'_> {
        let number = self.next_call.fetch_add(1, Ordering::Relaxed);
        self.running.lock().insert(number, (thread::current().id(), interrupt.clone()));
        Running { open: self, number }
    }

    /// Ends all calls that are running.
    pub(crate) fn interrupt(&self) {
        self.running.lock().values().for_each(|(_, interrupt)| interrupt.request());
    }

    /// Ends the calls that are running, and drops all parts, the backend among them. Fails inside of such a call.
    pub(crate) fn close(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_forked() || self.is_closed() {
            return Ok(());
        }
        self.check_maintained(py)?;
        let parts: Vec<Arc<dyn Closes>> =
            self.parts.lock().iter().filter_map(Weak::upgrade).collect();
        if parts.iter().any(|part| part.is_used_here()) {
            return Err(slot::used(py));
        }
        self.is_closed.store(true, Ordering::SeqCst);
        py.detach(|| {
            self.interrupt();
            // The backend was the first of them. Each interrupts the calls that have begun since.
            parts.iter().rev().for_each(|part| part.close(self));
            drop(parts);
            // They have clones, and the backend ends with the last one.
            while self.is_running_elsewhere() {
                self.interrupt();
                thread::sleep(Duration::from_millis(1));
            }
        });
        Ok(())
    }

    /// Whether a call of another thread is running.
    fn is_running_elsewhere(&self) -> bool {
        let here = thread::current().id();
        self.running.lock().values().any(|(thread, _)| *thread != here)
    }
}

/// A call that is running.
pub(crate) struct Running<'a> {
    open: &'a Open,
    number: u64,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.open.running.lock().remove(&self.number);
    }
}

/// The thread that ends the interpreter.
static ENDING: OnceLock<ThreadId> = OnceLock::new();

/// From now on the interpreter ends, on this thread.
pub(crate) fn end() {
    let _ = ENDING.set(thread::current().id());
}

/// The error of what belongs to a closed database.
///
/// While the interpreter ends, daemon threads get none: they wait until they are gone, as Python makes them do a moment later.
pub(crate) fn closed(py: Python<'_>) -> PyErr {
    if ENDING.get().is_some_and(|ending| *ending != thread::current().id()) {
        py.detach(|| {
            loop {
                thread::park();
            }
        });
    }
    error::interface(py, "the database is closed")
}
