//! The log of the process: lines on standard error.
//!
//! [`recent`] keeps the last ones for `alluvium.log`. [`otlp`] sends spans to a collector.

#[cfg(feature = "otlp")]
mod otlp;
mod recent;

use std::io;

use alluvium::unstable::LogLine;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry::Registry;
use tracing_subscriber::reload::{self, Handle};
use tracing_subscriber::util::SubscriberInitExt;

use self::recent::Recent;

/// From where lines are logged: the crates of Alluvium. What other crates log may quote what clients have sent.
const OWN: &str = "alluvium";

/// What `alluvium.log` has, whatever is written to standard error.
const RECENT: Level = Level::Info;

/// The options of commands that log.
#[derive(Clone, Debug, Default, PartialEq, clap::Args)]
pub(crate) struct LogArgs {
    /// What is logged, to standard error [default: off, and info for serve]
    #[arg(long, value_name = "LEVEL", value_enum)]
    pub(crate) log: Option<Level>,
    /// How lines are written
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub(crate) log_format: LogFormat,
    /// Sends spans to an OpenTelemetry collector, such as http://127.0.0.1:4317, by OTLP over gRPC in the clear
    #[arg(long, value_name = "URL", value_parser = otlp_url)]
    pub(crate) otlp: Option<String>,
}

/// What is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Level {
    /// Nothing
    Off,
    /// Failures
    Error,
    /// Also refused rows, slow statements, logins that fail, and connections that are refused
    Warn,
    /// Also sources, outputs, checkpoints, and connections that are opened and closed
    Info,
    /// Also long merges, and connections that break before their login; lines name the calls that they are of
    Debug,
}

/// How lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogFormat {
    /// Text
    #[default]
    Text,
    /// One object per line
    Json,
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

/// Reads the address of a collector.
///
/// # Errors
/// If it is none, or if this program was built without OTLP.
fn otlp_url(text: &str) -> Result<String, String> {
    match cfg!(feature = "otlp") {
        true if text.starts_with("http://") => Ok(text.to_owned()),
        true => Err("expected a URL such as http://127.0.0.1:4317".to_owned()),
        false => Err("this program has no OTLP: build it with the feature \"otlp\"".to_owned()),
    }
}

/// The log of the process, which ends when this is dropped.
pub(crate) struct Log {
    level: Handle<Targets, Registry>,
    recent: Recent,
    #[cfg(feature = "otlp")]
    _spans: Option<otlp::Spans>,
}

impl Log {
    /// Begins to log, at this level if the options name none. If the process has a log of its own already, that one stays.
    ///
    /// # Errors
    /// If spans cannot be sent.
    pub(crate) fn begin(args: &LogArgs, level: Level) -> Result<Self, String> {
        let (filter, level) = reload::Layer::new(args.log.unwrap_or(level).filter());
        let recent = Recent::default();
        let lines = fmt::layer().with_writer(io::stderr);
        let lines = match args.log_format {
            LogFormat::Text => lines.boxed(),
            LogFormat::Json => lines.json().flatten_event(true).boxed(),
        };
        let kept = recent.clone().with_filter(RECENT.filter());
        let registry = tracing_subscriber::registry().with(lines.with_filter(filter)).with(kept);
        #[cfg(feature = "otlp")]
        let spans = args.otlp.as_deref().map(otlp::Spans::begin).transpose()?;
        #[cfg(feature = "otlp")]
        let registry = {
            let layer = |spans: &otlp::Spans| spans.layer().with_filter(Level::Debug.filter());
            registry.with(spans.as_ref().map(layer))
        };
        // It fails if the process has another one.
        let _ = registry.try_init();
        Ok(Self {
            level,
            recent,
            #[cfg(feature = "otlp")]
            _spans: spans,
        })
    }

    /// Begins to log if the options say what.
    ///
    /// # Errors
    /// If spans cannot be sent.
    pub(crate) fn asked(args: &LogArgs) -> Result<Option<Self>, String> {
        let is_asked = args.log.is_some() || args.otlp.is_some();
        is_asked.then(|| Self::begin(args, Level::Off)).transpose()
    }

    /// The last lines.
    pub(crate) fn recent(&self) -> impl Fn() -> Vec<LogLine> + Send + Sync + 'static {
        let recent = self.recent.clone();
        move || recent.lines()
    }

    /// Logs from now on what this level says.
    pub(crate) fn set(&self, level: Level) {
        // It fails once the log is gone.
        let _ = self.level.reload(level.filter());
    }
}
