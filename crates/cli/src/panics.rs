//! Panics: the engine reports them as errors, so nothing else is printed.

use std::panic;
use std::sync::Mutex;

use crate::console;

/// Where the last panic was.
static PLACE: Mutex<Option<String>> = Mutex::new(None);

/// Makes panics print nothing; to be called once per process.
pub(crate) fn silence() {
    panic::set_hook(Box::new(|panic| {
        if let (Ok(mut place), Some(location)) = (PLACE.try_lock(), panic.location()) {
            *place = Some(location.to_string());
        }
    }));
}

/// Prints where the last panic was, if there was any: the program has failed.
pub(crate) fn report_place() {
    let place = PLACE.lock().ok().and_then(|mut place| place.take());
    if let Some(place) = place {
        console::report(format_args!("note: this is a fault of Alluvium, at {place}"));
    }
}
