//! Warning the user while the disk is full and the engine waits.

use std::time::Duration;

use alluvium::Engine;

use crate::progress::ProgressLine;
use crate::ticker::Ticker;

/// The polling interval.
const INTERVAL: Duration = Duration::from_millis(200);

/// Prints to standard error, beside `line`, when an engine starts and stops waiting for disk space, until the
/// result is dropped.
pub(crate) fn watch(engine: Engine, line: ProgressLine) -> Ticker {
    let mut waits = false;
    Ticker::start(INTERVAL, move || {
        let reason = engine.waits_for_room();
        if reason.is_some() != waits {
            waits = reason.is_some();
            line.aside(|| match reason {
                Some(reason) => eprintln!(
                    "alluvium: {reason}. No data is lost; the program continues when there is space."
                ),
                None => eprintln!("alluvium: there is disk space again; continuing"),
            });
        }
    })
}
