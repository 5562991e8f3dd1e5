//! A client of HTTP that goes nowhere else than it is sent.

mod addresses;

use std::fs;
use std::time::Duration;

use alluvium::{Error, Result};
use ureq::Agent;
use ureq::http::Uri;
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::unversioned::transport::DefaultConnector;

use addresses::Addresses;

/// What is wrong with an address.
pub enum Wrong {
    /// It is none of `http` or `https`.
    NoAddress,
    /// There is a user in it, and maybe a password.
    HasUser,
}

/// The server of an address, with its port if it is named.
pub fn host(url: &str) -> std::result::Result<String, Wrong> {
    let url = url.parse::<Uri>().map_err(|_| Wrong::NoAddress)?;
    let is_known = matches!(url.scheme_str(), Some("http" | "https"));
    match url.authority().filter(|authority| is_known && !authority.host().is_empty()) {
        Some(authority) if authority.as_str().contains('@') => Err(Wrong::HasUser),
        Some(authority) => Ok(authority.to_string()),
        None => Err(Wrong::NoAddress),
    }
}

/// A client that follows no redirect, takes no proxy from the environment, and connects to no address of its link only. An
/// answer may take so long, and is no error whatever its status is.
pub fn agent(certificates: Option<RootCerts>, timeout: Duration) -> Agent {
    let mut tls = TlsConfig::builder();
    if let Some(certificates) = certificates {
        tls = tls.root_certs(certificates);
    }
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .proxy(None)
        .timeout_global(Some(timeout))
        .tls_config(tls.build())
        .build();
    Agent::with_parts(config, DefaultConnector::default(), Addresses::default())
}

/// The certificates that a server's may be signed by, in a file that an option names.
///
/// # Errors
/// If it cannot be read, or has none.
pub fn certificates(option: &str, path: &str) -> Result<RootCerts> {
    let failed = |problem: String| {
        Error::source(format!("cannot read the certificates of {option} in \"{path}\": {problem}"))
    };
    let text = fs::read(path).map_err(|error| failed(error.to_string()))?;
    let items: std::result::Result<Vec<_>, _> = parse_pem(&text).collect();
    let certificates = items.map_err(|error| failed(error.to_string()))?.into_iter();
    let certificates = certificates.filter_map(|item| match item {
        PemItem::Certificate(certificate) => Some(certificate),
        _ => None,
    });
    let certificates: Vec<_> = certificates.collect();
    match certificates.is_empty() {
        true => Err(failed("it has none".to_owned())),
        false => Ok(RootCerts::from(certificates)),
    }
}
