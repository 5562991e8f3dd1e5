//! The options of `alluvium serve`.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use alluvium_server::{Limits, Origin};
use clap::Command;

use super::duration;
use crate::args::{OpenArgs, setting};
use crate::log::LogArgs;
use crate::size;

/// The arguments of `alluvium serve`.
#[derive(Debug, PartialEq, clap::Args)]
#[command(
    after_help = "Each option is also a key of the configuration file, where - is _ : --pg is pg, --tls-key is tls_key. \
    An option is stronger than an environment variable, and that than the file.\n\n\
    A TIME is a number of seconds, or has a unit: 500ms, 10s, 5min, 1h. 0 is forever."
)]
pub(crate) struct ServeArgs {
    /// A program that runs before clients connect; paths in it are relative to its folder
    #[arg(value_name = "PROGRAM", env = "ALLUVIUM_PROGRAM")]
    pub(crate) program: Option<PathBuf>,
    /// The configuration, in TOML; paths in it are relative to its folder
    #[arg(long, value_name = "FILE", env = "ALLUVIUM_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Says what is wrong with the configuration, or that it is right, and opens nothing
    #[arg(long)]
    pub(crate) check: bool,
    /// Serves Postgres's protocol on an address, such as 127.0.0.1:5432; can be repeated
    #[arg(long, value_name = "ADDRESS", env = "ALLUVIUM_PG", value_delimiter = ',')]
    pub(crate) pg: Vec<SocketAddr>,
    /// Serves HTTP on an address, such as 127.0.0.1:8080; can be repeated
    #[arg(long, value_name = "ADDRESS", env = "ALLUVIUM_HTTP", value_delimiter = ',')]
    pub(crate) http: Vec<SocketAddr>,
    /// Answers HTTP for a host of this name, and not for this machine's own alone; can be repeated
    #[arg(long, value_name = "NAME", env = "ALLUVIUM_HTTP_NAME", value_delimiter = ',')]
    pub(crate) http_name: Vec<String>,
    /// Answers HTTP from pages of this origin, such as https://app.example, and not from the server's own alone; can be repeated
    #[arg(long, value_name = "ORIGIN", env = "ALLUVIUM_HTTP_ORIGIN", value_delimiter = ',')]
    pub(crate) http_origin: Vec<Origin>,
    /// Serves Flight SQL on an address, such as 127.0.0.1:31337; can be repeated
    #[arg(long, value_name = "ADDRESS", env = "ALLUVIUM_FLIGHT", value_delimiter = ',', value_parser = flight_address)]
    pub(crate) flight: Vec<SocketAddr>,
    /// The folder of the socket for processes of the same user [default: one that is made for it]
    #[arg(long, value_name = "DIR", env = "ALLUVIUM_SOCKET")]
    pub(crate) socket: Option<PathBuf>,
    /// The certificate of the server and those above it, in PEM: connections can be encrypted
    #[arg(long, value_name = "FILE", env = "ALLUVIUM_TLS_CERTIFICATE", requires = "tls_key")]
    pub(crate) tls_certificate: Option<PathBuf>,
    /// The private key of the certificate, in PEM, which nobody else may read
    #[arg(long, value_name = "FILE", env = "ALLUVIUM_TLS_KEY", requires = "tls_certificate")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Lets other machines connect in the clear and, as long as there are no roles, do everything
    #[arg(long, env = "ALLUVIUM_INSECURE")]
    pub(crate) insecure: bool,
    /// A directory whose files statements of clients may read and write, if their role may; can be repeated
    #[arg(long, value_name = "DIR", env = "ALLUVIUM_FILES", value_delimiter = ',')]
    pub(crate) files: Vec<PathBuf>,
    /// The number of worker threads
    #[arg(long, value_name = "N", env = "ALLUVIUM_WORKERS", default_value = "1")]
    pub(crate) workers: NonZeroUsize,
    /// Sets the value of ${NAME} in the program; can be repeated
    #[arg(long, value_name = "NAME=VALUE", env = "ALLUVIUM_SET", value_parser = setting)]
    pub(crate) set: Vec<(String, String)>,
    /// The memory budget, such as 512M; state beyond it is kept in files [default: 80% of the available memory]
    #[arg(long, value_name = "SIZE", env = "ALLUVIUM_MEMORY", value_parser = size::parse)]
    pub(crate) memory: Option<usize>,
    /// The number of threads that merge state in the background; 0: the workers merge their own
    #[arg(long, value_name = "N", env = "ALLUVIUM_MERGE_THREADS", default_value = "0")]
    pub(crate) merge_threads: usize,
    /// How long changes are kept for subscribers that resume
    #[arg(long, value_name = "TIME", env = "ALLUVIUM_HISTORY", value_parser = duration::parse, default_value = "5min")]
    pub(crate) history: Duration,
    /// How long statements have to end in when the server stops; those that are left are cancelled
    #[arg(long, value_name = "TIME", env = "ALLUVIUM_GRACE", value_parser = duration::parse, default_value = "10s")]
    pub(crate) grace: Duration,
    /// Follows the engine that writes to the journal, under this name: answers reads, and can take its place
    #[cfg(feature = "remote")]
    #[arg(
        long,
        value_name = "NAME",
        env = "ALLUVIUM_FOLLOW",
        requires = "journal",
        conflicts_with = "program"
    )]
    pub(crate) follow: Option<String>,
    #[command(flatten)]
    pub(crate) log: LogArgs,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    #[command(flatten)]
    pub(crate) open: OpenArgs,
    /// The whole command line, from which a changed configuration is read again.
    #[arg(skip)]
    pub(crate) line: Vec<OsString>,
}

/// Reads an address of Flight SQL.
///
/// # Errors
/// If it is none, or if this program was built without Flight SQL.
fn flight_address(text: &str) -> Result<SocketAddr, String> {
    match cfg!(feature = "flight") {
        true => text.parse().map_err(|error| format!("{error}")),
        false => {
            Err("this program has no Flight SQL: build it with the feature \"flight\"".to_owned())
        }
    }
}

/// What clients may take.
#[derive(Debug, PartialEq, clap::Args)]
pub(crate) struct LimitArgs {
    /// How many clients may be connected
    #[arg(long, value_name = "N", env = "ALLUVIUM_CONNECTIONS", default_value = "1000")]
    connections: NonZeroUsize,
    /// How many of the connections are kept for superusers, once there are roles
    #[arg(long, value_name = "N", env = "ALLUVIUM_RESERVED", default_value = "3")]
    reserved: usize,
    /// How many connections may wait for their login
    #[arg(long, value_name = "N", env = "ALLUVIUM_STRANGERS", default_value = "128")]
    strangers: NonZeroUsize,
    /// How many of these may come from one address
    #[arg(long, value_name = "N", env = "ALLUVIUM_STRANGERS_OF_ADDRESS", default_value = "16")]
    strangers_of_address: NonZeroUsize,
    /// How long a login may take
    #[arg(long, value_name = "TIME", env = "ALLUVIUM_LOGIN_TIME", value_parser = duration::parse, default_value = "10s")]
    login_time: Duration,
    /// How long a failed login waits for its answer, at most
    #[arg(long, value_name = "TIME", env = "ALLUVIUM_LOGIN_DELAY", value_parser = duration::parse, default_value = "2s")]
    login_delay: Duration,
    /// How many statements run at once, beside those of open transactions
    #[arg(long, value_name = "N", env = "ALLUVIUM_STATEMENTS", default_value = "64")]
    statements: NonZeroUsize,
    /// How many statements may wait until they can run
    #[arg(long, value_name = "N", env = "ALLUVIUM_WAITING", default_value = "1000")]
    waiting: usize,
    /// How long a statement may take that sets no statement_timeout
    #[arg(long, value_name = "TIME", env = "ALLUVIUM_STATEMENT_TIME", value_parser = duration::parse, default_value = "0")]
    statement_time: Duration,
    /// How long a client may be idle in a transaction that sets no idle_in_transaction_session_timeout
    #[arg(long, value_name = "TIME", env = "ALLUVIUM_IDLE_IN_TRANSACTION", value_parser = duration::parse, default_value = "10min")]
    idle_in_transaction: Duration,
    /// How long a client may be idle that sets no idle_session_timeout
    #[arg(long, value_name = "TIME", env = "ALLUVIUM_IDLE", value_parser = duration::parse, default_value = "0")]
    idle: Duration,
    /// The bytes of a message of a client
    #[arg(long, value_name = "SIZE", env = "ALLUVIUM_MESSAGE_BYTES", value_parser = size::parse, default_value = "128M")]
    message_bytes: usize,
    /// The bytes of the statements that a client has prepared by names
    #[arg(long, value_name = "SIZE", env = "ALLUVIUM_STATEMENT_BYTES", value_parser = size::parse, default_value = "128M")]
    statement_bytes: usize,
    /// The bytes of the values that a client has bound to portals with names
    #[arg(long, value_name = "SIZE", env = "ALLUVIUM_PORTAL_BYTES", value_parser = size::parse, default_value = "128M")]
    portal_bytes: usize,
    /// How many changes of a subscription may wait for a client that does not read them
    #[arg(long, value_name = "N", env = "ALLUVIUM_SUBSCRIPTION_CHANGES", default_value = "1024")]
    subscription_changes: NonZeroUsize,
    /// How many bytes of rows these may have
    #[arg(long, value_name = "SIZE", env = "ALLUVIUM_SUBSCRIPTION_BYTES", value_parser = size::parse, default_value = "64M")]
    subscription_bytes: usize,
    /// Statements that take longer are logged
    #[arg(long, value_name = "TIME", env = "ALLUVIUM_SLOW_STATEMENT", value_parser = duration::parse, default_value = "1s")]
    slow_statement: Duration,
}

impl LimitArgs {
    /// As the server has them.
    pub(crate) fn limits(&self) -> Limits {
        let mut limits = Limits::default();
        limits.connections = self.connections.get();
        limits.reserved = self.reserved;
        limits.strangers = self.strangers.get();
        limits.strangers_of_address = self.strangers_of_address.get();
        limits.login_time = self.login_time;
        limits.login_delay = self.login_delay;
        limits.statements = self.statements.get();
        limits.waiting = self.waiting;
        limits.statement_time = self.statement_time;
        limits.idle_in_transaction = self.idle_in_transaction;
        limits.idle = self.idle;
        limits.message_bytes = self.message_bytes;
        limits.statement_bytes = self.statement_bytes;
        limits.portal_bytes = self.portal_bytes;
        limits.subscription_changes = self.subscription_changes.get() as u64;
        limits.subscription_bytes = self.subscription_bytes as u64;
        limits.slow_statement = self.slow_statement;
        limits
    }
}

/// Gives the options that other commands have as well their environment variables, which are those of servers only.
pub(crate) fn with_variables(command: Command) -> Command {
    #[cfg(feature = "remote")]
    let command = command
        .mut_arg("journal", |journal| journal.env("ALLUVIUM_JOURNAL"))
        .mut_arg("journal_certificate", |file| file.env("ALLUVIUM_JOURNAL_CERTIFICATE"))
        .mut_arg("journal_key", |file| file.env("ALLUVIUM_JOURNAL_KEY"))
        .mut_arg("journal_authority", |file| file.env("ALLUVIUM_JOURNAL_AUTHORITY"));
    command
        .mut_arg("log", |log| log.env("ALLUVIUM_LOG"))
        .mut_arg("log_format", |format| format.env("ALLUVIUM_LOG_FORMAT"))
        .mut_arg("otlp", |otlp| otlp.env("ALLUVIUM_OTLP"))
        .mut_arg("state", |state| state.env("ALLUVIUM_STATE"))
        .mut_arg("durability", |durability| durability.env("ALLUVIUM_DURABILITY"))
        .mut_arg("until", |until| until.env("ALLUVIUM_UNTIL"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        serve: ServeArgs,
    }

    #[test]
    fn limits_are_by_default_those_of_the_server() {
        let line = Line::try_parse_from(["serve"]);
        assert_eq!(line.ok().map(|line| line.serve.limits.limits()), Some(Limits::default()));
    }

    #[test]
    fn flight_sql_is_there_or_refused_with_a_reason() {
        let line = Line::try_parse_from(["serve", "--flight", "127.0.0.1:31337"]);
        match cfg!(feature = "flight") {
            true => assert_eq!(line.ok().map(|line| line.serve.flight.len()), Some(1)),
            false => {
                assert!(line.err().is_some_and(|error| error.to_string().contains("\"flight\"")))
            }
        }
    }

    #[test]
    fn a_certificate_needs_its_key() {
        assert!(Line::try_parse_from(["serve", "--tls-certificate", "a.pem"]).is_err());
        let both = ["serve", "--tls-certificate", "a.pem", "--tls-key", "b.pem"];
        assert!(Line::try_parse_from(both).is_ok());
    }
}
