//! An open engine, and all that belongs to it.

use std::collections::HashMap;
use std::process;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::{self, ThreadId};

use alluvium::{Engine, Interrupt};
use parking_lot::Mutex;
use pyo3::prelude::*;

use crate::error;
use crate::frames::Frames;
use crate::slot::{self, Closes, Slot};

/// An open engine: its handle, what belongs to it, and the calls that are running.
pub(crate) struct Open {
    pid: u32,
    path: Option<String>,
    is_closed: AtomicBool,
    /// The frames that statements read.
    frames: Arc<Frames>,
    running: Mutex<HashMap<u64, Interrupt>>,
    next_call: AtomicU64,
    parts: Mutex<Vec<Weak<dyn Closes>>>,
}

impl Open {
    /// An engine that was opened by this process.
    pub(crate) fn engine(
        engine: Engine,
        path: Option<String>,
        frames: Arc<Frames>,
    ) -> Arc<Slot<Engine>> {
        let open = Self {
            pid: process::id(),
            path,
            is_closed: AtomicBool::new(false),
            frames,
            running: Mutex::default(),
            next_call: AtomicU64::new(0),
            parts: Mutex::default(),
        };
        Slot::new(&Arc::new(open), engine)
    }

    /// The state directory.
    pub(crate) fn path(&self) -> Option<&str> {
        self.path.as_deref()
    }

    pub(crate) fn frames(&self) -> &Arc<Frames> {
        &self.frames
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    /// Whether this process is a child of the one that has opened the engine: its threads are not here.
    pub(crate) fn is_forked(&self) -> bool {
        process::id() != self.pid
    }

    /// Fails in a forked process, and once the engine is closed.
    pub(crate) fn check(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_forked() {
            return Err(error::interface(
                py,
                "the database was opened before this process was forked, and its threads are not here: open it in the process that uses it",
            ));
        }
        match self.is_closed() {
            false => Ok(()),
            true => Err(closed(py)),
        }
    }

    /// Adds a part, which is closed with the engine.
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
        self.running.lock().insert(number, interrupt.clone());
        Running { open: self, number }
    }

    /// Ends all calls that are running.
    pub(crate) fn interrupt(&self) {
        self.running.lock().values().for_each(Interrupt::request);
    }

    /// Ends the calls that are running, and drops all parts, the engine among them. Fails inside of such a call.
    pub(crate) fn close(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_forked() || self.is_closed() {
            return Ok(());
        }
        let parts: Vec<Arc<dyn Closes>> =
            self.parts.lock().iter().filter_map(Weak::upgrade).collect();
        if parts.iter().any(|part| part.is_used_here()) {
            return Err(slot::used(py));
        }
        self.is_closed.store(true, Ordering::SeqCst);
        py.detach(|| {
            self.interrupt();
            // The engine was the first of them. Each interrupts the calls that have begun since.
            parts.iter().rev().for_each(|part| part.close(self));
            drop(parts);
        });
        Ok(())
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

/// The error of what belongs to a closed engine.
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
