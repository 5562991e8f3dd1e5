//! Why the shell stops, and the reports of it.

use std::fmt::Display;
use std::io::{self, ErrorKind};

use alluvium::Error;

use crate::console;

/// Why the shell stops.
#[derive(Debug)]
pub(crate) enum Stop {
    /// An error, which has been reported.
    Failed,
    /// The user asked to stop.
    Interrupted,
    /// Everything is done, or the reader of the results is gone.
    Closed,
}

/// Reports that results cannot be written, unless the reader is gone.
pub(crate) fn unwritten(error: io::Error) -> Stop {
    match error.kind() {
        ErrorKind::BrokenPipe => Stop::Closed,
        _ => failed(Some(&"<stdout>"), error),
    }
}

/// Reports an error of the engine, unless the user has ended the call.
pub(crate) fn stopped(error: Error) -> Stop {
    match error {
        Error::Interrupted => Stop::Interrupted,
        error => failed(None, error),
    }
}

/// Reports an error without a position in a program.
pub(crate) fn failed(what: Option<&dyn Display>, error: impl Display) -> Stop {
    let error = console::shortened(&error);
    match what {
        Some(what) => console::report(format_args!("error: {what}: {error}")),
        None => console::report(format_args!("error: {error}")),
    }
    Stop::Failed
}
