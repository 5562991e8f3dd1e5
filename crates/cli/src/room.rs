//! Tells people that the disk is full while the engine waits for room.

use std::time::Duration;

use alluvium::Engine;

use crate::progress::ProgressLine;
use crate::ticker::Ticker;

/// How often the engine is asked.
const INTERVAL: Duration = Duration::from_millis(200);

/// Tells on standard error, beside `line`, when an engine begins to wait and when it goes on, until what is returned is
/// dropped.
pub fn watch(engine: Engine, line: ProgressLine) -> Ticker {
    let mut waits = false;
    Ticker::start(INTERVAL, move || {
        let reason = engine.waits_for_room();
        if reason.is_some() != waits {
            waits = reason.is_some();
            line.aside(|| match reason {
                Some(reason) => eprintln!(
                    "alluvium: {reason}. Nothing is lost; the program goes on when there is room."
                ),
                None => eprintln!("alluvium: there is room again"),
            });
        }
    })
}
