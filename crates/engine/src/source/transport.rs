//! Systems other than files, and transports: those that rows come from.

use arrow::datatypes::SchemaRef;

use super::{Live, Secret, Secrets, SourcePosition, SourceReader, reference};
use crate::error::Result;

/// A system other than files, such as a message broker or a database, that connectors name: a [`Transport`], a
/// [`Delivery`](crate::Delivery), or both.
pub trait System: Send + Sync {
    /// Its name, such as `kafka`; in lower case. A connector of a table names it so, or with `_input` behind, and one of a view with
    /// `_output`.
    fn name(&self) -> &str;

    /// Fails if there is no such option, or it has no such value. Names are in lower case.
    ///
    /// A connector is checked when its table is created, long before it is opened.
    fn check(&self, option: &str, value: &str) -> Result<()>;

    /// Whether an option is a secret, such as a password. A statement then names the [`Secret`] and does not have it: its value is
    /// that of [`TransportConnector::secret`]. An option of a format is asked for with `format.` before its name.
    fn is_secret(&self, option: &str) -> bool {
        let _ = option;
        false
    }

    /// The name that an option has in [`TransportConnector::options`], if a statement may give it another one.
    fn canonical<'a>(&self, option: &'a str) -> &'a str {
        option
    }

    /// Whether an option says how the system is reached, and as whom, and so belongs to `CREATE CONNECTION`; else it says what is read or
    /// written there. Who may only use a connection has no say in the former. All secrets and files belong to connections.
    fn is_of_connection(&self, option: &str) -> bool {
        let _ = option;
        true
    }

    /// Whether an option is the path of a file.
    fn is_file(&self, option: &str) -> bool {
        let _ = option;
        false
    }

    /// The hosts that a connector's options name, `host:port`. `None` if the system does not tell: it then gets no secret that
    /// is for certain hosts.
    fn hosts(&self, connector: &TransportConnector) -> Option<Vec<String>> {
        let _ = connector;
        None
    }
}

/// A system that rows come from.
///
/// It is registered once, when an engine is built ([`crate::Builder::transport`]), and serves the connectors of tables that
/// name it. A table's rows from it are read by a thread of their own, until the table is dropped.
pub trait Transport: System {
    /// What is read, for people, such as `kafka://host:9092/topic`; without secrets. Fails if a connector cannot have these options
    /// together, or needs more.
    fn place(&self, connector: &TransportConnector) -> Result<String>;

    /// Begins to read.
    ///
    /// # Errors
    /// If what is asked for is not there, or an option does not suit it. A system that cannot be reached for now is no error:
    /// the reader tries again until it is.
    fn open(&self, request: &TransportRequest) -> Result<Box<dyn SourceReader>>;
}

/// What stands before the name of an option of a format, where options of both are named.
pub(crate) const OF_FORMAT: &str = "format.";

/// A connector that names a transport, or a [`Delivery`](crate::Delivery).
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct TransportConnector {
    /// The options of the transport in the order they were written, names in lower case. One that is a secret has its name.
    pub options: Vec<(String, String)>,
    /// The format of what is transported, if it is named.
    pub format: Option<String>,
    /// The options of the format in the order they were written, names in upper case.
    pub format_options: Vec<(String, String)>,
    pub(crate) secrets: Secrets,
}

impl TransportConnector {
    /// The value of an option, as it was written. One of the format has `format.` before its name.
    pub fn option(&self, name: &str) -> Option<&str> {
        let (options, name) = match name.strip_prefix(OF_FORMAT) {
            Some(name) => (&self.format_options, name),
            None => (&self.options, name),
        };
        let mut options = options.iter();
        options.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The value of an option that [is a secret](System::is_secret), as it is now: it may have changed since it was last asked for.
    ///
    /// # Errors
    /// If there is no secret of that name any more, or it cannot be read.
    pub fn secret(&self, name: &str) -> Result<Option<Secret>> {
        self.option(name).map(|value| self.secrets.read(value)).transpose()
    }

    /// Whether an option is the secret of this name.
    pub(crate) fn uses_secret(&self, name: &str) -> bool {
        let mut all = self.options.iter().chain(&self.format_options);
        all.any(|(_, value)| reference(value).is_ok_and(|used| used == name))
    }
}

/// A request to a transport to read rows.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TransportRequest {
    /// The connector.
    pub connector: TransportConnector,
    /// The columns of the table. A field that is not nullable belongs to a NOT NULL column: a row without a value there is
    /// malformed, unless the column has a default or the row is deleted by its key.
    pub schema: SchemaRef,
    /// For each of these columns whether it has a DEFAULT other than NULL.
    pub has_default: Vec<bool>,
    /// The columns of the table's primary key; none if it has no key.
    pub key: Vec<usize>,
    /// How many rows a portion should have at most.
    pub batch_rows: usize,
    /// How many bytes the rows of a portion should have at most, give or take one row.
    pub batch_bytes: usize,
    /// How long rows wait for others of their portion, and whether they are still needed; `None` if an engine that starts reads again
    /// what it has read before.
    pub live: Option<Live>,
    /// Where reading begins, if not where the options say: a position that a reader of the same connector had.
    pub start: Option<SourcePosition>,
    /// Whether the engine has a state directory, and so hands positions back after a restart.
    pub lasts: bool,
}
