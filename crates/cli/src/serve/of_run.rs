//! The console of a program that `alluvium run` runs.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use alluvium::unstable::BuilderParts;
use alluvium::{Builder, Engine};
use alluvium_server::{Running, Server, with_catalog};

use super::{LAST_STEPS, SOCKET, TOKEN, folder_of_socket, greet_browsers};
use crate::console;
use crate::log::Log;
use crate::process::interrupt::Interrupt;
use crate::process::temporary::Temporary;
use crate::shell::{Stop, failed};

/// How long statements have to end in when the console ends.
const GRACE: Duration = Duration::from_secs(1);

/// The console, until this is dropped.
pub(crate) struct Console {
    running: Option<Running>,
    _folder: Temporary,
}

impl Console {
    /// Lets an engine have a console, which shows this log.
    pub(crate) fn prepared(builder: Builder, log: &Log) -> Builder {
        with_catalog(builder).log(log.recent())
    }

    /// Serves the console of an engine, and a socket for `alluvium report` and the shell, and says where.
    pub(crate) fn start(engine: &Engine, address: SocketAddr) -> Result<Self, Stop> {
        let folder = folder_of_socket()?;
        let token = folder.path().join(TOKEN);
        let server = Server::new(engine.clone())
            .pg_socket(folder.path().join(SOCKET))
            .http(address)
            .http_token_file(&token);
        let running = server.start().map_err(|error| failed(None, error))?;
        console::report(format_args!("alluvium shell --connect {}", folder.path().display()));
        greet_browsers(&running, &token);
        Ok(Self { running: Some(running), _folder: folder })
    }

    /// Stays until the user asks to stop.
    pub(crate) fn stay(&self) -> Result<(), Stop> {
        let interrupt = Interrupt::listen().map_err(|error| failed(Some(&"signals"), error))?;
        interrupt.unparks(&thread::current());
        interrupt.allow(2 * GRACE + LAST_STEPS);
        console::report("the program has ended; the console stays until Ctrl-C");
        interrupt.wait();
        Ok(())
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        self.running.take().into_iter().for_each(|running| running.stop(GRACE));
    }
}
