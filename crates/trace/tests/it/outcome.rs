//! What comes of work that may fail.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// What `work` returns, or the message with which it panics.
pub fn outcome<R>(work: impl FnOnce() -> R) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(work))
        .map_err(|panic| *panic.downcast::<String>().expect("a panic with a message"))
}
