//! Ctrl-C and other signals that end a program.
//!
//! A thread waits for SIGINT, SIGTERM and SIGHUP, unless a server [has another use](Interrupt::hangups) for that. The first one ends the statement that runs, as soon as nothing of it is
//! half done, and then the program, or at a prompt only the statement. A program that has not ended [soon](GRACE), one that
//! only waits for input, or that receives a second signal, ends at once. In any case temporary files
//! are removed.

use std::io::{self, ErrorKind, Read};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;

use alluvium::Engine;
use libc::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{SigId, flag, low_level};

use super::status::Status;
use super::temporary;
use super::terminal::Terminal;

/// How long a program may take to end by itself, unless it [says](Interrupt::allow) that it takes longer.
const GRACE: Duration = Duration::from_millis(600);

/// The requests of the user to stop. Clones are the same.
#[derive(Clone)]
pub(crate) struct Interrupt(Arc<State>);

struct State {
    /// The last signal; 0 before the first.
    signal: Arc<AtomicUsize>,
    /// Whether a signal has come since the last statement that was abandoned.
    asked: AtomicBool,
    /// Whether a signal ends the process at once: it waits for input, or nothing has to be completed.
    at_once: AtomicBool,
    /// Whether SIGINT ends statements only.
    is_prompt: AtomicBool,
    /// Ends the engine's statement.
    engine: Mutex<Option<alluvium::Interrupt>>,
    /// How long the program may take to end by itself.
    grace: Mutex<Duration>,
    /// The thread that a signal unparks.
    waiting: Mutex<Option<Thread>>,
    /// The handlers of SIGHUP, as long as it ends the program.
    hangup: Mutex<Vec<SigId>>,
    terminal: Terminal,
}

impl Interrupt {
    /// Listens for signals; the first call of a process installs the handlers.
    pub(crate) fn listen() -> io::Result<Self> {
        static LISTENING: OnceLock<Interrupt> = OnceLock::new();
        if let Some(this) = LISTENING.get() {
            return Ok(this.clone());
        }
        let this = Self(Arc::new(State {
            signal: Arc::default(),
            asked: AtomicBool::new(false),
            at_once: AtomicBool::new(true),
            is_prompt: AtomicBool::new(false),
            engine: Mutex::default(),
            grace: Mutex::new(GRACE),
            waiting: Mutex::default(),
            hangup: Mutex::default(),
            terminal: Terminal::now(),
        }));
        let (received, woken) = UnixStream::pair()?;
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // A program started by `nohup` does not end with its terminal.
            if signal != SIGHUP || !is_ignored(signal) {
                // Handlers run in this order: the thread finds the number of the signal that has woken it.
                let handlers = [
                    flag::register_usize(signal, this.0.signal.clone(), signal as usize)?,
                    low_level::pipe::register(signal, woken.try_clone()?)?,
                ];
                if signal == SIGHUP {
                    this.0.hangup.lock().unwrap_or_else(PoisonError::into_inner).extend(handlers);
                }
            }
        }
        let state = this.0.clone();
        thread::Builder::new().name("signals".to_owned()).spawn(move || state.receive(received))?;
        Ok(LISTENING.get_or_init(|| this).clone())
    }

    /// From now on a signal first ends the statement of this engine.
    pub(crate) fn attach(&self, engine: alluvium::Interrupt) {
        *self.0.engine.lock().unwrap_or_else(PoisonError::into_inner) = Some(engine);
        self.0.at_once.store(false, Ordering::SeqCst);
    }

    /// From now on the program ends by itself after a signal.
    #[cfg(feature = "remote")]
    pub(crate) fn expect_end(&self) {
        self.0.at_once.store(false, Ordering::SeqCst);
    }

    /// From now on the program may take this long to end after a signal.
    #[cfg(any(feature = "remote", feature = "serve"))]
    pub(crate) fn allow(&self, grace: Duration) {
        *self.0.grace.lock().unwrap_or_else(PoisonError::into_inner) = grace;
    }

    /// From now on a signal unparks this thread, which parks for other reasons as well.
    pub(crate) fn unparks(&self, thread: &Thread) {
        *self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread.clone());
    }

    /// From now on SIGHUP does not end the program: each one is a byte in the stream, or one byte stands for several.
    #[cfg(feature = "serve")]
    pub(crate) fn hangups(&self) -> io::Result<UnixStream> {
        let (received, woken) = UnixStream::pair()?;
        low_level::pipe::register(SIGHUP, woken)?;
        let ending =
            std::mem::take(&mut *self.0.hangup.lock().unwrap_or_else(PoisonError::into_inner));
        ending.into_iter().for_each(|handler| {
            low_level::unregister(handler);
        });
        Ok(received)
    }

    /// From now on SIGINT ends statements, not the program.
    pub(crate) fn at_prompt(&self) {
        self.0.is_prompt.store(true, Ordering::SeqCst);
    }

    /// Waits until the user asks to stop, on the thread that signals [unpark](Interrupt::unparks).
    #[cfg(any(feature = "remote", feature = "serve"))]
    pub(crate) fn wait(&self) {
        while !self.is_asked() {
            thread::park();
        }
    }

    /// Whether a signal has come.
    pub(crate) fn is_asked(&self) -> bool {
        self.0.asked.load(Ordering::SeqCst)
    }

    /// Forgets Ctrl-C at a prompt, after the statement was abandoned. Returns whether the program continues.
    pub(crate) fn forget(&self) -> bool {
        if self.0.signal() != SIGINT {
            return false;
        }
        self.0.asked.store(false, Ordering::SeqCst);
        self.0.end_statement(false);
        true
    }

    /// The exit status after a signal.
    pub(crate) fn status(&self) -> Status {
        Status(self.0.status() as u8)
    }

    /// Waits for input; meanwhile a signal ends the process at once.
    pub(crate) fn while_idle<T>(&self, wait: impl FnOnce() -> T) -> T {
        self.0.at_once.store(true, Ordering::SeqCst);
        let result = wait();
        self.0.at_once.store(false, Ordering::SeqCst);
        result
    }
}

impl State {
    /// Waits for signals.
    fn receive(&self, mut signals: UnixStream) {
        let mut buffer = [0; 1];
        loop {
            match signals.read(&mut buffer) {
                Ok(1..) => {
                    let is_second = self.asked.swap(true, Ordering::SeqCst);
                    if is_second || self.at_once.load(Ordering::SeqCst) {
                        self.end();
                    }
                    self.end_statement(true);
                    self.unpark();
                    if self.signal() != SIGINT || !self.is_prompt.load(Ordering::SeqCst) {
                        // The next read fails after this time.
                        let grace = *self.grace.lock().unwrap_or_else(PoisonError::into_inner);
                        let _ = signals.set_read_timeout(Some(grace));
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                _ => self.end(),
            }
        }
    }

    fn signal(&self) -> i32 {
        self.signal.load(Ordering::SeqCst) as i32
    }

    fn status(&self) -> i32 {
        128 + self.signal()
    }

    /// Makes the engine end its statement, or lets it continue.
    fn end_statement(&self, ends: bool) {
        let engine = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        match &*engine {
            Some(engine) if ends => engine.request(),
            Some(engine) => engine.clear(),
            None => {}
        }
    }

    fn unpark(&self) {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.iter().for_each(Thread::unpark);
    }

    /// Ends the process, whatever its other threads do.
    fn end(&self) -> ! {
        Engine::remove_temporary_files();
        alluvium_connect::remove_unfinished();
        temporary::remove_all();
        self.terminal.restore();
        low_level::exit(self.status())
    }
}

/// Whether the process was started with a signal ignored.
fn is_ignored(signal: i32) -> bool {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: the call changes no action, and initialises the one it is given if it returns 0.
    unsafe {
        libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}
