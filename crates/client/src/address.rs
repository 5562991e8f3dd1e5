//! Addresses of servers.

use std::env;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::SslMode;

use crate::error::{Error, Result};

/// How long a connection is idle before the peer is asked whether it is still there, and between two such questions.
const KEEPALIVE: Duration = Duration::from_secs(15);

/// How long a server may take to accept a connection, unless the address says so.
const CONNECT: Duration = Duration::from_secs(30);

/// Where a server is, and how to log in.
///
/// As libpq has it: `postgresql://user:password@host:5432/alluvium?sslmode=verify-full&sslrootcert=ca.pem`, or the folder of
/// a socket as `postgresql:///alluvium?host=/run/alluvium`, or just `/run/alluvium`. Of the parameters of libpq those of tokio-postgres
/// are known, and `sslmode` with all of its values:
///
/// | `sslmode` | meaning |
/// |---|---|
/// | `disable` | no TLS |
/// | `prefer` | TLS if the server has it; the default |
/// | `require` | TLS; the server's certificate is not checked without `sslrootcert` |
/// | `verify-ca` | TLS; a certificate of the file `sslrootcert` has to have signed the server's |
/// | `verify-full` | the same, and the certificate has to name the host |
///
/// `target_session_attrs` and `load_balance_hosts` have no effect: hosts are tried in their order.
/// A password that the address lacks is that of the environment variable `PGPASSWORD`.
#[derive(Clone)]
pub struct Address {
    pub(crate) config: Config,
    pub(crate) verification: Verification,
}

/// What is checked of a server's certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verification {
    /// Nothing.
    Nothing,
    /// That one of these signed it.
    Issuer(PathBuf),
    /// The same, and that it names the host.
    Full(PathBuf),
}

impl Address {
    /// Logs in as this role.
    pub fn user(mut self, user: &str) -> Self {
        self.config.user(user);
        self
    }

    /// Logs in with this password.
    pub fn password(mut self, password: &str) -> Self {
        self.config.password(password);
        self
    }

    /// Sets a setting of the session that connections begin, beside those of the address.
    pub fn setting(mut self, name: &str, value: &str) -> Self {
        let escaped = |text: &str| text.replace('\\', r"\\").replace(' ', r"\ ");
        let before = self.config.get_options().map(|options| format!("{options} "));
        let options =
            format!("{}-c {}={}", before.unwrap_or_default(), escaped(name), escaped(value));
        self.config.options(options);
        self
    }

    /// The name by which the server lists the connection.
    pub fn application_name(mut self, name: &str) -> Self {
        self.config.application_name(name);
        self
    }
}

impl fmt::Debug for Address {
    /// Without the password.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (hosts, ports) = (self.config.get_hosts(), self.config.get_ports());
        to.debug_struct("Address")
            .field("hosts", &hosts)
            .field("ports", &ports)
            .field("verification", &self.verification)
            .finish_non_exhaustive()
    }
}

impl FromStr for Address {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        if text.starts_with('/') {
            let mut config = Config::new();
            config.host_path(text);
            return Ok(with_defaults(config, Verification::Nothing));
        }
        if !["postgresql://", "postgres://"].iter().any(|scheme| text.starts_with(scheme)) {
            // The text may have a password, and is not shown.
            return Err(Error::Address(
                "the address of a server is postgresql://[user@]host[:port], or the folder of its socket, such as /run/alluvium"
                    .to_owned(),
            ));
        }
        let (text, security) = without_security(text);
        let mut config: Config = text.parse().map_err(|error: tokio_postgres::Error| {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            Error::Address(format!("the address of the server: {}", cause.unwrap_or_default()))
        })?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(Error::Address("the address of the server names no host".to_owned()));
        }
        let verification = security.apply(&mut config)?;
        Ok(with_defaults(config, verification))
    }
}

/// The parameters of an address that are about TLS.
#[derive(Default)]
struct Security {
    mode: Option<String>,
    root: Option<PathBuf>,
}

impl Security {
    fn apply(self, config: &mut Config) -> Result<Verification> {
        let file = |mode: &str, root: Option<PathBuf>| {
            root.ok_or_else(|| {
                Error::Address(format!(
                    "sslmode={mode} needs sslrootcert=FILE, the certificate that signed the server's"
                ))
            })
        };
        let (mode, verification) = match (self.mode.as_deref(), self.root) {
            (Some("disable"), _) => (SslMode::Disable, Verification::Nothing),
            (None | Some("prefer" | "allow"), root) => {
                (SslMode::Prefer, root.map_or(Verification::Nothing, Verification::Issuer))
            }
            (Some("require"), root) => {
                (SslMode::Require, root.map_or(Verification::Nothing, Verification::Issuer))
            }
            (Some(mode @ "verify-ca"), root) => {
                (SslMode::Require, Verification::Issuer(file(mode, root)?))
            }
            (Some(mode @ "verify-full"), root) => {
                (SslMode::Require, Verification::Full(file(mode, root)?))
            }
            (Some(other), _) => {
                return Err(Error::Address(format!(
                    "sslmode={other}: it is disable, prefer, require, verify-ca or verify-full"
                )));
            }
        };
        config.ssl_mode(mode);
        Ok(verification)
    }
}

/// An address without the parameters about TLS, and these.
fn without_security(text: &str) -> (String, Security) {
    let Some((before, query)) = text.split_once('?') else {
        return (text.to_owned(), Security::default());
    };
    let mut security = Security::default();
    let mut rest = Vec::new();
    for pair in query.split('&') {
        let decoded = form_urlencoded::parse(pair.as_bytes()).next();
        match decoded {
            Some((name, value)) if name == "sslmode" => security.mode = Some(value.into_owned()),
            Some((name, value)) if name == "sslrootcert" => {
                security.root = Some(PathBuf::from(value.into_owned()));
            }
            _ => rest.push(pair),
        }
    }
    match rest.is_empty() {
        true => (before.to_owned(), security),
        false => (format!("{before}?{}", rest.join("&")), security),
    }
}

fn with_defaults(mut config: Config, verification: Verification) -> Address {
    if config.get_password().is_none()
        && let Some(password) = env::var_os("PGPASSWORD")
    {
        config.password(password.as_encoded_bytes());
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT);
    }
    if config.get_application_name().is_none() {
        config.application_name("alluvium-client");
    }
    config.keepalives_idle(KEEPALIVE).keepalives_interval(KEEPALIVE).keepalives_retries(3);
    Address { config, verification }
}

#[cfg(test)]
mod tests {
    use tokio_postgres::config::Host;

    use super::*;

    fn read(text: &str) -> Address {
        text.parse().expect("an address")
    }

    #[test]
    fn addresses_are_those_of_libpq() {
        let address = read(
            "postgresql://ann:s%26t@db:6543/alluvium?sslmode=verify-full&sslrootcert=%2Fca.pem&application_name=x",
        );
        assert_eq!(address.config.get_hosts(), [Host::Tcp("db".to_owned())]);
        assert_eq!(address.config.get_ports(), [6543]);
        assert_eq!(address.config.get_password(), Some(&b"s&t"[..]));
        assert_eq!(address.config.get_ssl_mode(), SslMode::Require);
        assert_eq!(address.config.get_application_name(), Some("x"));
        assert_eq!(address.verification, Verification::Full("/ca.pem".into()));
        for socket in ["/run/alluvium", "postgresql:///alluvium?host=/run/alluvium"] {
            assert_eq!(read(socket).config.get_hosts(), [Host::Unix("/run/alluvium".into())]);
        }
        assert_eq!(read("postgres://db").config.get_ssl_mode(), SslMode::Prefer);
        assert_eq!(read("postgres://db?sslmode=disable").config.get_ssl_mode(), SslMode::Disable);
    }

    #[test]
    fn wrong_addresses_are_errors_without_the_password() {
        for wrong in [
            "",
            "db",
            "http://ann:secret@db",
            "postgresql://",
            "postgresql://ann:secret@db:port",
            "postgresql://ann:secret@db?sslmode=verify-full",
            "postgresql://ann:secret@db?sslmode=verified",
            "postgresql://ann:secret@db?what=ever",
        ] {
            let error = wrong.parse::<Address>().expect_err(wrong).to_string();
            assert!(!error.contains("secret"), "{error}");
        }
        let settings = read("postgresql://db?options=-c%20a%3D1").setting("b", r"x \y");
        assert_eq!(settings.config.get_options(), Some(r"-c a=1 -c b=x\ \\y"));
        let shown = format!("{:?}", read("postgresql://ann:secret@db"));
        assert!(shown.contains("db") && !shown.contains("secret"), "{shown}");
    }
}
