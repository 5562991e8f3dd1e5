//! Waiting for calls of the client.

use std::pin::pin;
use std::task::{Context, Poll};
use std::thread;

use alluvium::Statement;
use alluvium::unstable::thread_waker;
use alluvium_client::Error;
use tokio::runtime::Handle;

use super::super::backend::Failure;
use crate::process::interrupt::Interrupt;
use crate::program::{Position, position_after};

/// Lets this thread wait for calls, until the user asks to stop.
pub(super) struct Waiting {
    interrupt: Interrupt,
    runtime: Handle,
    /// Ends calls of an engine of this process, which reads files.
    pub(super) engine: alluvium::Interrupt,
}

/// Why a call failed.
pub(super) enum Failed {
    /// The user has ended it.
    Interrupted,
    Error(Error),
}

impl Waiting {
    /// Lets this thread wait for calls that work in a runtime.
    pub(super) fn new(interrupt: Interrupt, runtime: Handle) -> Self {
        let engine = alluvium::Interrupt::default();
        interrupt.attach(engine.clone());
        Self { interrupt, runtime, engine }
    }

    /// Waits for a call. When the user asks to stop, the call is dropped.
    pub(super) fn wait<T>(
        &self,
        call: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Failed> {
        let _entered = self.runtime.enter();
        self.interrupt.unparks(&thread::current());
        let waker = thread_waker();
        let mut call = pin!(call);
        loop {
            if let Poll::Ready(done) = call.as_mut().poll(&mut Context::from_waker(&waker)) {
                return done.map_err(Failed::Error);
            }
            if self.interrupt.is_asked() {
                return Err(Failed::Interrupted);
            }
            thread::park();
        }
    }
}

impl Failed {
    /// The failure of a statement, at its place in the text that the statement was parsed from.
    pub(super) fn of(self, statement: &Statement) -> Failure {
        let Self::Error(error) = self else { return Failure::Interrupted };
        let position = error.position().map(|character| place(statement, character as usize));
        Failure::Error(message(&error), position)
    }
}

impl From<Failed> for Failure {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Interrupted => Self::Interrupted,
            Failed::Error(error) => Self::new(message(&error)),
        }
    }
}

/// The message of an error, with what the server says besides.
fn message(error: &Error) -> String {
    let mut message = error.to_string();
    if let Some(refusal) = error.refusal() {
        for (what, text) in [("detail", &refusal.detail), ("hint", &refusal.hint)] {
            if let Some(text) = text {
                message.push_str(&format!("\n{what}: {text}"));
            }
        }
    }
    message
}

/// The position of a character of a statement, counted from one, in the text that the statement was parsed from.
fn place(statement: &Statement, character: usize) -> Position {
    let before: String = statement.text().chars().take(character.saturating_sub(1)).collect();
    position_after(statement.position(), &before)
}
