//! The options of a registry.

use std::fmt;

use alluvium::{Error, Result, TransportConnector};

use crate::options::texts;
use crate::systems::http::{self, Wrong};

/// What an option of a registry is named, of the options of a format.
const URLS: &str = "REGISTRY_URLS";
const USERNAME: &str = "REGISTRY_USERNAME";
const PASSWORD: &str = "REGISTRY_PASSWORD";
const TOKEN: &str = "REGISTRY_AUTHORIZATION_TOKEN";
const CERTIFICATES: &str = "REGISTRY_CA";

/// The options of a registry.
#[derive(Clone, Default, PartialEq)]
pub struct Settings {
    /// The addresses of servers that know the same schemas, without a slash at their ends.
    pub(super) urls: Vec<String>,
    pub(super) credentials: Credentials,
    /// The path of a file with the certificates that a server's may be signed by, if not those that browsers know.
    pub(super) certificates: Option<String>,
}

/// Who asks.
#[derive(Clone, Default, PartialEq)]
pub(super) enum Credentials {
    #[default]
    None,
    /// A user, and the password if it was read.
    Basic(String, Option<String>),
    Bearer(String),
}

impl Settings {
    /// The options of the registry among those of a format, and the others. Names are in upper case. Secrets are not read.
    ///
    /// # Errors
    /// If one has no such value.
    pub fn read(options: Vec<(String, String)>) -> Result<(Self, Vec<(String, String)>)> {
        let (mut this, mut others) = (Self::default(), Vec::new());
        let (mut user, mut has_password) = (None, false);
        for (name, value) in options {
            match name.as_str() {
                URLS => this.urls = urls(&value)?,
                USERNAME => user = Some(value),
                PASSWORD => has_password = true,
                TOKEN => this.credentials = Credentials::Bearer(String::new()),
                CERTIFICATES => this.certificates = Some(value),
                _ => others.push((name, value)),
            }
        }
        match user {
            Some(user) if this.credentials == Credentials::None => {
                this.credentials = Credentials::Basic(user, None);
            }
            Some(_) => {
                return Err(Error::source(format!(
                    "{USERNAME} and {TOKEN} are two ways to say who asks: leave one out"
                )));
            }
            None if has_password => {
                return Err(Error::source(format!("{PASSWORD} needs {USERNAME}")));
            }
            None => {}
        }
        let is_asked = this.credentials != Credentials::None || this.certificates.is_some();
        match this.urls.is_empty() && is_asked {
            true => Err(Error::source(format!("options of a registry need {URLS}: its addresses"))),
            false => Ok((this, others)),
        }
    }

    /// With the secrets of a connector as they are now.
    ///
    /// # Errors
    /// If one cannot be read.
    pub fn with_secrets(mut self, connector: &TransportConnector) -> Result<Self> {
        // An option of a connection stands without the format that it is for.
        let secret = |name: &str| {
            let name = name.to_ascii_lowercase();
            let of_format = connector.secret(&format!("format.{name}"))?;
            of_format.map_or_else(|| connector.secret(&name), |secret| Ok(Some(secret)))
        };
        match &mut self.credentials {
            Credentials::None => {}
            Credentials::Basic(_, password) => {
                *password = secret(PASSWORD)?.map(|password| password.reveal().to_owned());
            }
            Credentials::Bearer(token) => {
                if let Some(read) = secret(TOKEN)? {
                    read.reveal().clone_into(token);
                }
            }
        }
        Ok(self)
    }

    /// Fails if an option, by its name in any case, has no such value.
    pub fn check(name: &str, value: &str) -> Result<()> {
        match is_among(name, &[URLS]) {
            true => urls(value).map(drop),
            false => Ok(()),
        }
    }

    /// Whether an option is one of a registry, by its name in any case.
    pub fn is_option(name: &str) -> bool {
        is_among(name, &[URLS, USERNAME, PASSWORD, TOKEN, CERTIFICATES])
    }

    /// Whether an option is a secret, by its name in any case.
    pub fn is_secret(name: &str) -> bool {
        is_among(name, &[PASSWORD, TOKEN])
    }

    /// Whether an option is the path of a file, by its name in any case.
    pub fn is_file(name: &str) -> bool {
        is_among(name, &[CERTIFICATES])
    }

    /// The hosts of addresses, each with its port if it names one.
    pub fn hosts(urls: &str) -> Vec<String> {
        texts(urls).iter().filter_map(|url| http::host(url).ok()).collect()
    }

    /// Whether a registry is named.
    pub fn is_named(&self) -> bool {
        !self.urls.is_empty()
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { urls, credentials, certificates } = self;
        let credentials = match credentials {
            Credentials::None => "none",
            Credentials::Basic(user, _) => user,
            Credentials::Bearer(_) => "a token",
        };
        to.debug_struct("Settings")
            .field("urls", urls)
            .field("credentials", &credentials)
            .field("certificates", certificates)
            .finish()
    }
}

fn is_among(name: &str, options: &[&str]) -> bool {
    options.iter().any(|option| option.eq_ignore_ascii_case(name))
}

/// The addresses of servers.
fn urls(value: &str) -> Result<Vec<String>> {
    let urls: Vec<String> =
        texts(value).into_iter().map(|url| url.trim_end_matches('/').to_owned()).collect();
    for url in &urls {
        http::host(url).map_err(|wrong| match wrong {
            Wrong::HasUser => Error::source(format!(
                "an address of {URLS} has a user in it: name {USERNAME}, and the secret {PASSWORD}"
            )),
            Wrong::NoAddress => Error::source(format!(
                "{URLS} has addresses such as http://127.0.0.1:8081, not \"{url}\""
            )),
        })?;
    }
    Ok(urls)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(options: &[(&str, &str)]) -> std::result::Result<Settings, String> {
        let options = options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let read = Settings::read(options.collect());
        read.map(|(settings, _)| settings).map_err(|error| error.to_string())
    }

    #[test]
    fn options_are_read_and_others_left() {
        let options = [
            ("REGISTRY_URLS", "[\"http://a:8081/\", \"https://b/apis/ccompat/v7\"]"),
            ("SCHEMA", "{}"),
            ("REGISTRY_USERNAME", "ann"),
            ("REGISTRY_PASSWORD", "${secret:p}"),
        ];
        let options = options.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let (settings, others) = Settings::read(options.to_vec()).unwrap();
        assert_eq!(settings.urls, ["http://a:8081", "https://b/apis/ccompat/v7"]);
        assert_eq!(others, [("SCHEMA".to_owned(), "{}".to_owned())]);
        assert!(format!("{settings:?}").contains("ann"));
    }

    #[test]
    fn what_is_not_to_be_read_is_told() {
        for (options, problem) in [
            (&[("REGISTRY_URLS", "file:///etc/passwd")][..], "not \"file:///etc/passwd\""),
            (&[("REGISTRY_URLS", "localhost")], "not \"localhost\""),
            (&[("REGISTRY_URLS", "http://ann:xyzzy@a/")], "has a user in it"),
            (&[("REGISTRY_USERNAME", "ann")], "need REGISTRY_URLS"),
            (&[("REGISTRY_PASSWORD", "${secret:p}")], "needs REGISTRY_USERNAME"),
            (
                &[("REGISTRY_USERNAME", "ann"), ("REGISTRY_AUTHORIZATION_TOKEN", "${secret:t}")],
                "leave one out",
            ),
        ] {
            let error = read(options).unwrap_err();
            assert!(error.contains(problem) && !error.contains("xyzzy"), "{error}");
        }
    }
}
