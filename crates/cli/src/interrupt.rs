//! Ctrl-C: the statement in hand is finished first.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::SIGINT;
use signal_hook::flag;

/// The exit status of a program that was interrupted.
pub const STATUS: u8 = 130;

/// Whether the program was asked to stop.
///
/// The first interrupt asks; one that comes while nothing is in hand, or a second one, ends the
/// program there and then.
#[derive(Clone)]
pub struct Interrupt {
    asked: Arc<AtomicBool>,
    at_once: Arc<AtomicBool>,
}

impl Interrupt {
    /// Starts to listen, once per process.
    pub fn listen() -> io::Result<Self> {
        let this = Self { asked: Arc::default(), at_once: Arc::default() };
        // In this order: what the first interrupt sets, only the second one finds.
        flag::register_conditional_shutdown(SIGINT, STATUS.into(), this.at_once.clone())?;
        flag::register(SIGINT, this.at_once.clone())?;
        flag::register(SIGINT, this.asked.clone())?;
        Ok(this)
    }

    /// Whether to stop now.
    pub fn is_asked(&self) -> bool {
        self.asked.load(Ordering::SeqCst)
    }

    /// Forgets that the program was asked to stop: what was in hand has been given up, and that is all.
    pub fn forget(&self) {
        self.asked.store(false, Ordering::SeqCst);
        self.at_once.store(false, Ordering::SeqCst);
    }

    /// Waits for input with nothing in hand: an interrupt ends the program at once.
    pub fn while_idle<T>(&self, wait: impl FnOnce() -> T) -> T {
        self.at_once.store(true, Ordering::SeqCst);
        let result = wait();
        self.at_once.store(self.is_asked(), Ordering::SeqCst);
        result
    }
}
