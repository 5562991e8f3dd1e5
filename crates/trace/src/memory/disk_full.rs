//! Waiting for space on a disk that is full.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use alluvium_storage::Error;
use alluvium_storage::disk::platform;
use parking_lot::{Condvar, Mutex};

/// How long to wait before a failed write is tried again: a file system does not say when it has room.
const PAUSE: Duration = Duration::from_millis(100);

/// The gate where writers wait while the disk is full. Clones are the same gate.
#[derive(Clone, Debug, Default)]
pub struct DiskFullGate {
    shared: Arc<Shared>,
    /// Ends waiting at this handle alone.
    is_cancelled: Option<Arc<AtomicBool>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The number of waiting threads.
    threads: usize,
    /// The error of the last one.
    reason: Option<String>,
    is_given_up: bool,
}

impl DiskFullGate {
    /// The error that writers wait for, with the file and its file system; `None` while no thread waits.
    pub fn reason(&self) -> Option<String> {
        self.shared.state.lock().reason.clone()
    }

    /// Makes all waiting writers fail, and later ones as well.
    pub fn give_up(&self) {
        self.shared.state.lock().is_given_up = true;
        self.shared.changed.notify_all();
    }

    /// The same gate, at which calls wait no longer once `is_cancelled` is set.
    pub(crate) fn until(&self, is_cancelled: &Arc<AtomicBool>) -> Self {
        let is_cancelled = Some(Arc::clone(is_cancelled));
        Self { shared: Arc::clone(&self.shared), is_cancelled }
    }

    fn is_cancelled(&self) -> bool {
        self.is_cancelled.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    /// Calls `act` until it succeeds or fails for another reason than a full disk, or until the gate has
    /// [given up](DiskFullGate::give_up) or this handle is cancelled. Returns the last result.
    pub fn wait_for<R>(&self, mut act: impl FnMut() -> Result<R, Error>) -> Result<R, Error> {
        let error = match act() {
            Err(error @ Error::Full { .. }) => error,
            other => return other,
        };
        let _waiting = Waiting::new(&self.shared, &error);
        let mut state = self.shared.state.lock();
        let mut result = Err(error);
        while matches!(result, Err(Error::Full { .. }))
            && !state.is_given_up
            && !self.is_cancelled()
        {
            self.shared.changed.wait_for(&mut state, PAUSE);
            parking_lot::MutexGuard::unlocked(&mut state, || result = act());
        }
        result
    }
}

/// A waiting thread, for as long as this lives.
struct Waiting<'a> {
    shared: &'a Shared,
}

impl<'a> Waiting<'a> {
    fn new(shared: &'a Shared, error: &Error) -> Self {
        let mut state = shared.state.lock();
        state.threads += 1;
        state.reason = Some(message(error));
        Self { shared }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.threads -= 1;
        if state.threads == 0 {
            state.reason = None;
        }
    }
}

/// The message of the error, with the mount point of the full file system.
fn message(error: &Error) -> String {
    let system = match error {
        Error::Full { place, .. } => platform::root_of_file_system(Path::new(place)),
        _ => None,
    };
    match system {
        Some(system) => format!("{error}; the file system at {} is full", system.display()),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn a_cancelled_handle_waits_no_longer_and_others_do() {
        let gate = DiskFullGate::default();
        let is_cancelled = Arc::new(AtomicBool::new(false));
        let full = || {
            let cause = io::ErrorKind::StorageFull.into();
            Err::<(), _>(Error::Full { place: "a".to_owned(), operation: "write", cause })
        };
        let (one, other) = (gate.until(&is_cancelled), gate.clone());
        std::thread::scope(|scope| {
            let one = scope.spawn(move || one.wait_for(full));
            let other = scope.spawn(move || other.wait_for(full));
            is_cancelled.store(true, Ordering::Relaxed);
            assert!(one.join().expect("no panic").is_err());
            while gate.reason().is_none() {
                std::thread::yield_now();
            }
            gate.give_up();
            assert!(other.join().expect("no panic").is_err());
        });
        assert_eq!(gate.reason(), None);
    }

    #[test]
    fn a_thread_that_panics_waits_no_longer() {
        let disk_full = DiskFullGate::default();
        let mut calls = 0;
        let act = || {
            calls += 1;
            assert!(calls == 1, "on command");
            assert_eq!(disk_full.reason(), None);
            let cause = io::ErrorKind::StorageFull.into();
            Err::<(), _>(Error::Full { place: "a".to_owned(), operation: "write", cause })
        };
        let waiting = catch_unwind(AssertUnwindSafe(|| disk_full.wait_for(act)));
        assert!(waiting.is_err() && disk_full.reason().is_none());
        assert_eq!(calls, 2);
    }
}
