//! Panics: the engine reports them as errors, so nothing else is printed.

use std::panic::{self, UnwindSafe};
use std::sync::Mutex;
use std::thread;

use crate::console;

/// Where the last panic was.
static PLACE: Mutex<Option<String>> = Mutex::new(None);

/// Runs `act`; meanwhile panics print nothing.
pub(crate) fn silenced<T>(act: impl FnOnce() -> T + UnwindSafe) -> thread::Result<T> {
    let before = panic::take_hook();
    panic::set_hook(Box::new(|panic| {
        if let (Ok(mut place), Some(location)) = (PLACE.try_lock(), panic.location()) {
            *place = Some(location.to_string());
        }
    }));
    let result = panic::catch_unwind(act);
    panic::set_hook(before);
    result
}

/// Prints where the last panic was, if there was any: the program has failed.
pub(crate) fn report_place() {
    let place = PLACE.lock().ok().and_then(|mut place| place.take());
    if let Some(place) = place {
        console::report(format_args!("note: this is a fault of Alluvium, at {place}"));
    }
}
