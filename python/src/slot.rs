//! Parts of a database that Python's objects hold.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{self, ThreadId};
use std::time::Duration;

use alluvium::Interrupt;
use parking_lot::Mutex;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

use crate::call;
use crate::error;
use crate::failure::{Failure, Fallible};
use crate::open::{self, Open};

/// How long a thread waits for a part before it looks whether it is to end.
const WAIT: Duration = Duration::from_millis(20);

/// A part of a database: one thread at a time uses it, until it or the database is closed.
pub(crate) struct Slot<T: Send + 'static> {
    open: Arc<Open>,
    /// `None` once it is closed.
    part: Mutex<Option<T>>,
    /// Whether it is being closed by itself.
    is_shut: AtomicBool,
    /// Who uses it.
    user: Mutex<Option<User>>,
}

/// Who uses a part.
struct User {
    thread: ThreadId,
    /// Ends the use.
    interrupt: Interrupt,
}

/// What is closed with its database.
pub(crate) trait Closes: Send + Sync {
    /// Drops the part, once no call uses it. Interrupts calls of `open` until then.
    fn close(&self, open: &Open);

    /// Whether a call of this thread uses the part.
    fn is_used_here(&self) -> bool;
}

/// The use of a part by this thread, until this is dropped.
struct Using<'a>(&'a Mutex<Option<User>>);

impl<'a> Using<'a> {
    fn begin(user: &'a Mutex<Option<User>>, interrupt: &Interrupt) -> Self {
        let interrupt = interrupt.clone();
        *user.lock() = Some(User { thread: thread::current().id(), interrupt });
        Self(user)
    }
}

impl Drop for Using<'_> {
    fn drop(&mut self) {
        *self.0.lock() = None;
    }
}

impl<T: Send + 'static> Slot<T> {
    /// A part of a database.
    pub(crate) fn new(open: &Arc<Open>, part: T) -> Arc<Self> {
        let this = Arc::new(Self {
            open: open.clone(),
            part: Mutex::new(Some(part)),
            is_shut: AtomicBool::new(false),
            user: Mutex::default(),
        });
        let weak: Weak<dyn Closes> = Arc::downgrade(&(this.clone() as Arc<dyn Closes>));
        open.add(weak);
        if open.is_closed() {
            // Another thread has closed the database since this part was made.
            Python::attach(|py| py.detach(|| this.drop_part()));
        }
        this
    }

    /// The database it is a part of.
    pub(crate) fn open(&self) -> &Arc<Open> {
        &self.open
    }

    /// Calls `act`, which may block, with the part.
    pub(crate) fn call<R: Send>(
        &self,
        py: Python<'_>,
        sql: Option<&str>,
        act: impl FnOnce(&mut T) -> Fallible<R> + Send,
    ) -> PyResult<R> {
        self.check_user(py)?;
        let called = call::blocking(py, &self.open, sql, |interrupt| {
            let mut part = loop {
                match self.part.try_lock_for(WAIT) {
                    Some(part) => break part,
                    None if interrupt.is_requested() => return Err(Failure::interrupted()),
                    None => {}
                }
            };
            let Some(part) = part.as_mut() else { return Ok(None) };
            let _using = Using::begin(&self.user, interrupt);
            act(part).map(Some)
        });
        self.called(py, called)
    }

    /// Calls `act`, which may block, with a clone of the part: other calls use it at the same time.
    ///
    /// The clone ends in the call. It may be the last one, and its end waits for threads that wait for the GIL.
    pub(crate) fn share<R: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&T) -> Fallible<R> + Send,
    ) -> PyResult<R>
    where
        T: Clone,
    {
        let called = call::blocking(py, &self.open, None, |_| {
            let part = self.part.lock().clone();
            part.map(|part| act(&part)).transpose()
        });
        self.called(py, called)
    }

    /// Calls `act`, which may block, with the part, which ends in the call; whatever uses it comes first.
    pub(crate) fn consume<R: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(T) -> Fallible<R> + Send,
    ) -> PyResult<R> {
        self.check_user(py)?;
        let called = call::blocking(py, &self.open, None, |_| {
            let part = self.part.lock().take();
            part.map(act).transpose()
        });
        self.called(py, called)
    }

    /// What a call has come to, in which there is nothing once the part is gone.
    fn called<R>(&self, py: Python<'_>, called: PyResult<Option<R>>) -> PyResult<R> {
        match called {
            // Ctrl-C.
            Err(error) if !error.is_instance_of::<PyException>(py) => Err(error),
            Err(_) if self.open.is_closed() => Err(open::closed(py)),
            Err(_) if self.is_shut.load(Ordering::SeqCst) => Err(self.is_gone(py)),
            called => called?.ok_or_else(|| self.is_gone(py)),
        }
    }

    /// Drops the part. A call of another thread that uses it is ended.
    pub(crate) fn shut(&self, py: Python<'_>) -> PyResult<()> {
        if self.open.is_forked() || self.open.is_closed() {
            return Ok(());
        }
        self.check_user(py)?;
        self.is_shut.store(true, Ordering::SeqCst);
        py.detach(|| self.drop_part());
        Ok(())
    }

    /// Drops the part without the lock: that may wait for threads that wait for the GIL, which a thread that waits for the lock has.
    fn drop_part(&self) {
        let part = loop {
            let part = self.part.try_lock_for(WAIT).map(|mut part| part.take());
            match part {
                Some(part) => break part,
                None => self.user.lock().iter().for_each(|user| user.interrupt.request()),
            }
        };
        drop(part);
    }

    /// Whether it, or its database, is closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.open.is_closed()
            || self.is_shut.load(Ordering::SeqCst)
            || self.part.try_lock().is_some_and(|part| part.is_none())
    }

    /// Fails if a function in Python that a call of this part runs calls it again: it would wait for itself.
    fn check_user(&self, py: Python<'_>) -> PyResult<()> {
        self.open.check(py)?;
        match self.is_used_here() {
            false => Ok(()),
            true => Err(used(py)),
        }
    }

    fn is_gone(&self, py: Python<'_>) -> PyErr {
        match self.open.is_closed() {
            true => open::closed(py),
            false => error::interface(py, "it is closed"),
        }
    }
}

impl<T: Send + 'static> Closes for Slot<T> {
    fn close(&self, open: &Open) {
        loop {
            let part = self.part.try_lock_for(WAIT).map(|mut part| part.take());
            match part {
                Some(part) => return drop(part),
                None => open.interrupt(),
            }
        }
    }

    fn is_used_here(&self) -> bool {
        self.user.lock().as_ref().is_some_and(|user| user.thread == thread::current().id())
    }
}

/// The error of Python code that uses a handle while a statement of the same handle runs it.
pub(crate) fn used(py: Python<'_>) -> PyErr {
    error::interface(
        py,
        "a statement is running here: Python code that it calls cannot use the same handle; take another one with Database.session()",
    )
}

/// Dropping a part may wait for threads that wait for the GIL.
impl<T: Send + 'static> Drop for Slot<T> {
    fn drop(&mut self) {
        let Some(part) = self.part.get_mut().take() else { return };
        if self.open.is_forked() {
            // Its threads are in another process, and so is who owns its files.
            return std::mem::forget(part);
        }
        let mut part = Some(part);
        Python::try_attach(|py| {
            let part = part.take();
            py.detach(|| drop(part));
        });
        // The interpreter has ended.
        std::mem::forget(part);
    }
}
