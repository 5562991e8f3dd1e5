//! Outcomes of work that may fail.

use std::panic::{AssertUnwindSafe, catch_unwind};

use alluvium_trace::Failure;

/// The result of `work`, or the message with which it fails or panics.
pub fn outcome<R>(work: impl FnOnce() -> R) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|caught| match Failure::reason(&*caught) {
        Some(reason) => reason.to_owned(),
        None => *caught.downcast::<String>().expect("a panic with a message"),
    })
}
