//! What is read anew while a server runs: certificates, and the level of its log.

use std::io::{self, Read};
use std::net::Shutdown;
use std::thread;

use alluvium_server::Running;

use super::LEVEL;
use super::options::ServeArgs;
use crate::args::{self, Args};
use crate::console;
use crate::log::Log;
use crate::process::interrupt::Interrupt;

/// Reads certificates and the level of the log again at each SIGHUP, until `wait` returns. What is wrong is reported, and stays as it was.
pub(crate) fn whenever_asked(
    interrupt: &Interrupt,
    running: &Running,
    log: &Log,
    args: &ServeArgs,
    wait: impl FnOnce(),
) -> io::Result<()> {
    let mut asked = interrupt.hangups()?;
    let ends = asked.try_clone()?;
    thread::scope(|scope| {
        let reloads = thread::Builder::new().name("reload".to_owned());
        reloads.spawn_scoped(scope, move || {
            let mut buffer = [0; 1];
            while asked.read_exact(&mut buffer).is_ok() {
                set_level(log, args);
                // It is in the log.
                let _ = running.reload();
            }
        })?;
        wait();
        ends.shutdown(Shutdown::Both)
    })
}

fn set_level(log: &Log, args: &ServeArgs) {
    match args::parse(args.line.iter().cloned()) {
        Ok(Args::Serve(changed)) => log.set(changed.log.log.unwrap_or(LEVEL)),
        Ok(_) => (),
        Err(error) => console::report(format_args!("the log stays as it is: {error}")),
    }
}
