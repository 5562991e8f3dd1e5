//! Ctrl-C: the current statement is completed first.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::SIGINT;
use signal_hook::flag;

/// The exit status after an interrupt.
pub(crate) const STATUS: u8 = 130;

/// Whether the user asked to stop.
///
/// The first interrupt sets a flag. A second one, or one while the program is idle, ends the process immediately.
#[derive(Clone)]
pub(crate) struct Interrupt {
    asked: Arc<AtomicBool>,
    at_once: Arc<AtomicBool>,
}

impl Interrupt {
    /// Installs the signal handlers; to be called once per process.
    pub(crate) fn listen() -> io::Result<Self> {
        let this = Self { asked: Arc::default(), at_once: Arc::default() };
        // Handlers run in this order, so that only a second interrupt finds the flag of the first one set.
        flag::register_conditional_shutdown(SIGINT, STATUS.into(), this.at_once.clone())?;
        flag::register(SIGINT, this.at_once.clone())?;
        flag::register(SIGINT, this.asked.clone())?;
        Ok(this)
    }

    /// Whether an interrupt was received.
    pub(crate) fn is_asked(&self) -> bool {
        self.asked.load(Ordering::SeqCst)
    }

    /// Clears the interrupt, after the current statement was abandoned.
    pub(crate) fn forget(&self) {
        self.asked.store(false, Ordering::SeqCst);
        self.at_once.store(false, Ordering::SeqCst);
    }

    /// Waits for input; meanwhile an interrupt ends the process immediately.
    pub(crate) fn while_idle<T>(&self, wait: impl FnOnce() -> T) -> T {
        self.at_once.store(true, Ordering::SeqCst);
        let result = wait();
        self.at_once.store(self.is_asked(), Ordering::SeqCst);
        result
    }
}
