//! The options of a table of Postgres.

use std::fmt;
use std::path::PathBuf;

use alluvium::{Error, Result, TransportConnector};

/// How many bytes of a name Postgres keeps.
const LONGEST_NAME: usize = 63;

/// How a connection is encrypted.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Encryption {
    /// Not at all.
    #[default]
    Disabled,
    /// By TLS with a server whose certificate is signed by one of this file, and names its host.
    Verified(PathBuf),
}

/// The options of a table of Postgres.
#[derive(Clone, PartialEq)]
pub struct Settings {
    host: String,
    port: u16,
    user: String,
    password: Option<String>,
    database: Option<String>,
    verifies: bool,
    roots: Option<PathBuf>,
    publication: String,
    slot: String,
    schema: Option<String>,
    table: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            host: String::new(),
            port: 5432,
            user: "postgres".to_owned(),
            password: None,
            database: None,
            verifies: false,
            roots: None,
            publication: String::new(),
            slot: String::new(),
            schema: None,
            table: String::new(),
        }
    }
}

impl Settings {
    /// The options of a table that is read, with its password as it is now.
    ///
    /// # Errors
    /// As of [`read`](Self::read), and if there is no such secret.
    pub(super) fn of_source(connector: &TransportConnector) -> Result<Self> {
        Self::read(&revealed(connector)?)
    }

    /// The options of a table that is written, with its password as it is now.
    ///
    /// # Errors
    /// As of [`read_target`](Self::read_target), and if there is no such secret.
    pub(super) fn of_target(connector: &TransportConnector) -> Result<Self> {
        Self::read_target(&revealed(connector)?)
    }

    /// Reads all options of a table that is read. The last of two that have one name counts.
    ///
    /// # Errors
    /// If there is no such option, it has no such value, or one is missing that has to be there.
    pub fn read(options: &[(String, String)]) -> Result<Self> {
        let this = Self::of_table(options)?;
        let needed = [
            ("publication", &this.publication, "the publication that has the table"),
            (
                "slot",
                &this.slot,
                "the name of a replication slot, which is made for this table alone",
            ),
        ];
        this.check_needed(&needed)?;
        Ok(this)
    }

    /// Reads all options of a table that is written.
    ///
    /// # Errors
    /// As of [`read`](Self::read), and if there is one that only a table has which is read.
    pub fn read_target(options: &[(String, String)]) -> Result<Self> {
        let this = Self::of_table(options)?;
        for (name, value) in [("publication", &this.publication), ("slot", &this.slot)] {
            if !value.is_empty() {
                let message = format!("a table of Postgres that is written has no \"{name}\"");
                return Err(Error::source(message));
            }
        }
        Ok(this)
    }

    /// The options that any table has.
    fn of_table(options: &[(String, String)]) -> Result<Self> {
        let mut this = Self::default();
        options.iter().try_for_each(|(name, value)| this.set(name, value))?;
        this.check_needed(&[
            ("host", &this.host, "the server's, such as 127.0.0.1"),
            ("table", &this.table, "its name, such as public.orders"),
        ])?;
        if this.verifies && this.roots.is_none() {
            let message = "\"sslmode\" = verify-full needs \"sslrootcert\": a file of certificates";
            return Err(Error::source(message));
        }
        Ok(this)
    }

    fn check_needed(&self, needed: &[(&str, &String, &str)]) -> Result<()> {
        match needed.iter().find(|(_, value, _)| value.is_empty()) {
            Some((name, _, what)) => {
                Err(Error::source(format!("a table of Postgres needs \"{name}\": {what}")))
            }
            None => Ok(()),
        }
    }

    /// Fails if there is no such option, or it has no such value.
    pub fn check(name: &str, value: &str) -> Result<()> {
        Self::default().set(name, value)
    }

    /// Whether the value of an option is shown to nobody.
    pub fn is_secret(name: &str) -> bool {
        name == "password"
    }

    /// Whether an option says how the server is reached, and as whom.
    pub fn is_of_connection(name: &str) -> bool {
        !["publication", "slot", "schema", "table"].contains(&name)
    }

    /// The host and the port that a connector names, if it does.
    pub(super) fn address(connector: &TransportConnector) -> Option<String> {
        let mut this = Self::default();
        for (name, value) in connector.options.iter().filter(|(name, _)| !Self::is_secret(name)) {
            this.set(name, value).ok()?;
        }
        let Self { host, port, .. } = this;
        match (host.is_empty(), host.contains(':')) {
            (true, _) => None,
            (false, true) => Some(format!("[{host}]:{port}")),
            (false, false) => Some(format!("{host}:{port}")),
        }
    }

    fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let text = || value.to_owned();
        match name {
            "url" => self.set_url(value)?,
            "host" => self.host = text(),
            "port" => self.port = port(value)?,
            "user" => self.user = text(),
            "password" => self.password = Some(text()),
            "database" => self.database = Some(text()),
            "sslmode" => {
                self.verifies = match value {
                    "disable" => false,
                    "verify-full" => true,
                    _ => {
                        return Err(Error::source(format!(
                            "\"sslmode\" is disable or verify-full, not \"{value}\""
                        )));
                    }
                }
            }
            "sslrootcert" => self.roots = Some(value.into()),
            "publication" => self.publication = named(name, value)?,
            "slot" => self.slot = slot(value)?,
            "schema" => self.schema = Some(named(name, value)?),
            "table" => self.table = text(),
            _ => {
                return Err(Error::source(format!(
                    "a table of Postgres has no option \"{name}\"; there are url, host, port, user, password, database, sslmode, \
                     sslrootcert, publication, slot, schema and table"
                )));
            }
        }
        Ok(())
    }

    /// `postgres://user@host:port/database`, without a password: messages would show it.
    fn set_url(&mut self, url: &str) -> Result<()> {
        let wrong = |what: &str| Error::source(format!("\"url\" {what}"));
        let rest = url.strip_prefix("postgres://").or_else(|| url.strip_prefix("postgresql://"));
        let rest = rest.ok_or_else(|| wrong("is postgres://user@host:port/database"))?;
        let (server, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, server) = match server.rsplit_once('@') {
            Some((user, server)) => (Some(user), server),
            None => (None, server),
        };
        if user.is_some_and(|user| user.contains(':')) {
            return Err(wrong("has no password: that is an option of its own, and a secret"));
        }
        if rest.contains(['?', '%', '#']) {
            return Err(wrong("has a user, a host, a port and a database only"));
        }
        let (host, named_port) = match server.rsplit_once(':') {
            Some((host, named)) if !named.ends_with(']') => (host, Some(named)),
            _ => (server, None),
        };
        self.host = host.trim_matches(['[', ']']).to_owned();
        self.port = named_port.map_or(Ok(self.port), port)?;
        self.user = user.map_or_else(|| self.user.clone(), str::to_owned);
        if !database.is_empty() {
            self.database = Some(database.to_owned());
        }
        Ok(())
    }

    /// The server's host.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The server's port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The role that logs in.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// Its password.
    pub(super) fn password(&self) -> Option<&str> {
        self.password.as_deref()
    }

    /// The database; the one that is called as the user, if none is named.
    pub fn database(&self) -> &str {
        self.database.as_deref().unwrap_or(&self.user)
    }

    /// How the connection is encrypted.
    pub fn encryption(&self) -> Encryption {
        match &self.roots {
            Some(roots) if self.verifies => Encryption::Verified(roots.clone()),
            _ => Encryption::Disabled,
        }
    }

    /// The publication that has the table.
    pub fn publication(&self) -> &str {
        &self.publication
    }

    /// The replication slot of the table.
    pub fn slot(&self) -> &str {
        &self.slot
    }

    /// The schema and the name of the table.
    pub fn table(&self) -> (&str, &str) {
        match (&self.schema, self.table.split_once('.')) {
            (Some(schema), _) => (schema, &self.table),
            (None, Some(names)) => names,
            (None, None) => ("public", &self.table),
        }
    }

    /// The table, for people.
    pub fn place(&self) -> String {
        let (schema, table) = self.table();
        let (host, port, database) = (&self.host, self.port, self.database());
        format!("postgres://{host}:{port}/{database}/{schema}.{table}")
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Settings")
            .field("place", &self.place())
            .field("user", &self.user)
            .field("encryption", &self.encryption())
            .field("publication", &self.publication)
            .field("slot", &self.slot)
            .finish_non_exhaustive()
    }
}

/// The options of a connector, without its password.
pub(super) fn shown(connector: &TransportConnector) -> Result<Vec<(String, String)>> {
    if let Some(format) = &connector.format {
        let message = format!("rows of Postgres have no format, and here it is \"{format}\"");
        return Err(Error::source(message));
    }
    let shown = connector.options.iter().filter(|(name, _)| !Settings::is_secret(name));
    Ok(shown.cloned().collect())
}

/// The options of a connector, with its password as it is now.
fn revealed(connector: &TransportConnector) -> Result<Vec<(String, String)>> {
    let option = |(name, value): &(String, String)| {
        let secret = match Settings::is_secret(name) {
            true => connector.secret(name)?,
            false => None,
        };
        let value = secret.map_or_else(|| value.clone(), |secret| secret.reveal().to_owned());
        Ok((name.clone(), value))
    };
    connector.options.iter().map(option).collect()
}

fn port(value: &str) -> Result<u16> {
    value.parse().map_err(|_| Error::source(format!("\"port\" is a number, not \"{value}\"")))
}

fn named(option: &str, value: &str) -> Result<String> {
    match value.len() {
        1..=LONGEST_NAME if !value.contains('\0') => Ok(value.to_owned()),
        _ => Err(Error::source(format!(
            "\"{option}\" is a name of 1 to {LONGEST_NAME} bytes, not \"{value}\""
        ))),
    }
}

/// A name that a slot can have.
fn slot(value: &str) -> Result<String> {
    let may_have = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    match value.bytes().all(may_have) {
        true => named("slot", value),
        false => Err(Error::source(format!(
            "\"{value}\" is not the name of a slot, which has lower-case letters, digits and underscores"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(given: &[(&str, &str)]) -> Result<Settings> {
        let given = given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Settings::read(&given.collect::<Vec<_>>())
    }

    const NEEDED: [(&str, &str); 3] = [("table", "t"), ("publication", "p"), ("slot", "s")];

    #[test]
    fn a_url_is_a_user_a_host_a_port_and_a_database() {
        let of = |url: &str| read(&[&NEEDED[..], &[("url", url)]].concat());
        let settings = of("postgres://ann@db.example:6543/shop").unwrap();
        assert_eq!(settings.place(), "postgres://db.example:6543/shop/public.t");
        assert_eq!(settings.user(), "ann");
        let settings = of("postgresql://[::1]/shop").unwrap();
        assert_eq!((settings.host(), settings.port()), ("::1", 5432));
        for (url, expected) in [
            ("mysql://a", "is postgres://user@host:port/database"),
            ("postgres://ann:xyzzy@db/shop", "has no password"),
            ("postgres://db/shop?sslmode=require", "only"),
            ("postgres://db:x/shop", "\"port\" is a number"),
        ] {
            let error = of(url).unwrap_err().to_string();
            assert!(error.contains(expected) && !error.contains("xyzzy"), "{error}");
        }
    }

    #[test]
    fn options_that_are_missing_or_wrong_are_told() {
        for (given, expected) in [
            (&[("table", "t")][..], "needs \"host\""),
            (&[("host", "h"), ("table", "t")], "needs \"publication\""),
            (&[("host", "h"), ("table", "t"), ("publication", "p")], "needs \"slot\""),
            (&[("slot", "My slot")], "not the name of a slot"),
            (&[("colour", "red")], "no option \"colour\""),
            (&[("sslmode", "prefer")], "disable or verify-full"),
        ] {
            let error = read(given).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        let mut given = NEEDED.to_vec();
        given.extend([("host", "h"), ("sslmode", "verify-full")]);
        assert!(read(&given).unwrap_err().to_string().contains("needs \"sslrootcert\""));
    }

    #[test]
    fn a_table_has_a_schema_and_the_password_is_shown_to_nobody() {
        let mut given = NEEDED.to_vec();
        given.extend([("host", "h"), ("password", "xyzzy-4711"), ("table", "shop.orders")]);
        let settings = read(&given).unwrap();
        assert_eq!(settings.table(), ("shop", "orders"));
        assert!(!format!("{settings:?}").contains("xyzzy"));
        given.push(("schema", "odd"));
        assert_eq!(read(&given).unwrap().table(), ("odd", "shop.orders"));
    }
}
