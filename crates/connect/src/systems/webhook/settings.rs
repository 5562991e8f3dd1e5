//! The options of a webhook.

use std::time::Duration;

use alluvium::{Error, Result, TransportConnector};

use super::signature::Signer;
use crate::systems::http::{self, Wrong};

const AUTHORIZATION: &str = "authorization";
const SIGNING_SECRET: &str = "signing_secret";
const CERTIFICATES: &str = "ca";

/// How long a server may take for an answer, if it is not said.
const ANSWER: Duration = Duration::from_secs(10);

/// The options of a webhook.
pub(super) struct Settings {
    url: String,
    timeout: Duration,
    certificates: Option<String>,
}

impl Settings {
    /// Reads all options, without secrets.
    ///
    /// # Errors
    /// If there is no such option, it has no such value, or the address is missing.
    pub(super) fn read(connector: &TransportConnector) -> Result<Self> {
        let mut this = Self { url: String::new(), timeout: ANSWER, certificates: None };
        for (name, value) in &connector.options {
            match name.as_str() {
                "url" => this.url = url(value)?,
                "timeout_ms" => this.timeout = timeout(value)?,
                CERTIFICATES => this.certificates = Some(value.clone()),
                AUTHORIZATION | SIGNING_SECRET => {}
                _ => {
                    return Err(Error::source(format!(
                        "a webhook has no option \"{name}\"; there are url, authorization, signing_secret, ca and timeout_ms"
                    )));
                }
            }
        }
        match this.url.is_empty() {
            true => Err(Error::source("a webhook needs \"url\": where changes are posted")),
            false => Ok(this),
        }
    }

    /// Fails if there is no such option, or it has no such value.
    pub(super) fn check(name: &str, value: &str) -> Result<()> {
        let mut connector = TransportConnector::default();
        connector.options = vec![(name.to_owned(), value.to_owned())];
        if name != "url" {
            connector.options.push(("url".to_owned(), "http://127.0.0.1".to_owned()));
        }
        Self::read(&connector).map(drop)
    }

    pub(super) fn is_secret(name: &str) -> bool {
        [AUTHORIZATION, SIGNING_SECRET].contains(&name)
    }

    pub(super) fn is_file(name: &str) -> bool {
        name == CERTIFICATES
    }

    /// Where changes are posted.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// The server, with its port if it is named.
    pub(super) fn host(&self) -> Option<String> {
        http::host(&self.url).ok()
    }

    /// A client for these requests.
    ///
    /// # Errors
    /// If the certificates cannot be read.
    pub(super) fn agent(&self) -> Result<ureq::Agent> {
        let certificates = self.certificates.as_deref();
        let certificates = certificates.map(|path| http::certificates(CERTIFICATES, path));
        Ok(http::agent(certificates.transpose()?, self.timeout))
    }
}

/// What tells a server who asks, as it is now.
pub(super) struct Credentials {
    pub(super) authorization: Option<String>,
    pub(super) signer: Option<Signer>,
}

impl Credentials {
    /// # Errors
    /// If a secret cannot be read, or is none that signs.
    pub(super) fn read(connector: &TransportConnector) -> Result<Self> {
        let authorization = connector.secret(AUTHORIZATION)?;
        let signer = connector.secret(SIGNING_SECRET)?.map(|secret| {
            Signer::new(secret.reveal()).ok_or_else(|| {
                Error::source(format!(
                    "\"{SIGNING_SECRET}\" is base64 after \"whsec_\", as the server shows it"
                ))
            })
        });
        Ok(Self {
            authorization: authorization.map(|secret| secret.reveal().trim().to_owned()),
            signer: signer.transpose()?,
        })
    }
}

fn url(value: &str) -> Result<String> {
    match http::host(value) {
        Ok(_) => Ok(value.to_owned()),
        Err(Wrong::HasUser) => Err(Error::source(
            "\"url\" of a webhook has a user in it: name the secret \"authorization\"",
        )),
        Err(Wrong::NoAddress) => Err(Error::source(format!(
            "\"url\" of a webhook is an address such as https://example.com/changes, not \"{value}\""
        ))),
    }
}

fn timeout(value: &str) -> Result<Duration> {
    match value.parse() {
        Ok(milliseconds @ 1..=60_000) => Ok(Duration::from_millis(milliseconds)),
        _ => Err(Error::source(format!(
            "\"timeout_ms\" of a webhook is a number of milliseconds up to a minute, not \"{value}\""
        ))),
    }
}
