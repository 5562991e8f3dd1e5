//! What a server logs: lines on standard error.

use std::io;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::Registry;
use tracing_subscriber::reload::{self, Handle};
use tracing_subscriber::util::SubscriberInitExt;

/// From where lines are logged: the crates of Alluvium. What other crates log may quote what clients have sent.
const OWN: &str = "alluvium";

/// What is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Level {
    /// Nothing
    Off,
    /// Faults of the server
    Error,
    /// Also logins that fail, connections that are refused, and slow statements
    Warn,
    /// Also connections that are opened and closed
    Info,
    /// Also connections that break before their login
    Debug,
}

impl Level {
    fn filter(self) -> Targets {
        let level = match self {
            Self::Off => LevelFilter::OFF,
            Self::Error => LevelFilter::ERROR,
            Self::Warn => LevelFilter::WARN,
            Self::Info => LevelFilter::INFO,
            Self::Debug => LevelFilter::DEBUG,
        };
        Targets::new().with_target(OWN, level)
    }
}

/// The log of the process.
pub(crate) struct Log(Handle<Targets, Registry>);

impl Log {
    /// Begins to log. If the process has a log of its own already, that one stays.
    pub(crate) fn begin(level: Level) -> Self {
        let (filter, handle) = reload::Layer::new(level.filter());
        let lines = fmt::layer().with_writer(io::stderr);
        // It fails if the process has another one.
        let _ = tracing_subscriber::registry().with(filter).with(lines).try_init();
        Self(handle)
    }

    /// Logs from now on what this level says.
    pub(crate) fn set(&self, level: Level) {
        // It fails once the log is gone.
        let _ = self.0.reload(level.filter());
    }
}
