//! Informing the user while the engine waits: for space on the disk, or for another program.

use std::collections::BTreeSet;
use std::time::Duration;

use alluvium::Engine;

use super::ProgressLine;
use super::ticker::Ticker;
use crate::console;

/// The polling interval.
const INTERVAL: Duration = Duration::from_millis(200);

/// How long a pipe may give nothing before the user is informed.
const PATIENCE: Duration = Duration::from_secs(1);

/// Prints to standard error, beside `line`, when an engine starts and stops waiting for disk space, and once for each
/// pipe or device that it waits for, until the result is dropped.
pub(crate) fn watch(engine: Engine, line: ProgressLine) -> Ticker {
    let mut waits = false;
    let mut told = BTreeSet::new();
    Ticker::start(INTERVAL, move || {
        let reason = engine.waits_for_room();
        if reason.is_some() != waits {
            waits = reason.is_some();
            line.aside(|| match reason {
                Some(reason) => console::report(format_args!(
                    "alluvium: {reason}. No data is lost; the program continues when there is space."
                )),
                None => console::report("alluvium: there is disk space again; continuing"),
            });
        }
        if let Some(path) = engine.waits_for_input(PATIENCE)
            && told.insert(path.clone())
        {
            line.aside(|| {
                console::report(format_args!(
                    "alluvium: waiting for another program to write to \"{}\"",
                    path.display()
                ));
            });
        }
    })
}
