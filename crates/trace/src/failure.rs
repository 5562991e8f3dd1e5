//! Failures that end the thread that meets them: state that cannot be read or written.
//!
//! State is read and written deep inside of operators, whose interfaces have no errors. So a failure unwinds the stack, as
//! a panic does, up to the owner of the thread, who reports it. It is no panic: the panic hook is not called, and nothing
//! is printed.

use std::any::Any;
use std::fmt::Display;
use std::panic::resume_unwind;

/// The payload that a failure unwinds with.
#[derive(Debug)]
pub struct Failure(String);

impl Failure {
    /// Unwinds the stack for this reason.
    #[cold]
    pub fn raise(reason: impl Display) -> ! {
        resume_unwind(Box::new(Self(reason.to_string())))
    }

    /// The reason, if this was caught of a failure and not of a panic.
    pub fn reason(caught: &(dyn Any + Send)) -> Option<&str> {
        caught.downcast_ref::<Self>().map(|failure| failure.0.as_str())
    }
}
