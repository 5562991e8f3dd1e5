//! Where a journal is.

use std::fmt::{self, Display, Formatter};
use std::net::IpAddr;

use http::Uri;

/// The most bytes of a name.
const NAME: usize = 100;

/// Why an address cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Misplaced {
    /// It is no URL of a journal.
    #[error("\"{0}\" is no journal: write https://HOST:PORT/NAME, or http://127.0.0.1:PORT/NAME")]
    Url(String),
    /// The journal's name is not valid.
    #[error(
        "\"{0}\" cannot name a journal: a name has 1 to {NAME} of a-z, 0-9, \"-\", \"_\" and \".\", and does not start with a dot"
    )]
    Name(String),
    /// Other machines are between the two.
    #[error("{0} is on another machine, and http is not encrypted: write https, with certificates")]
    Plain(String),
    /// Nobody could tell who connects.
    #[error("{0} needs a certificate, its key, and the authority of the server's certificate")]
    NoCertificate(String),
    /// They would not be used.
    #[error("{0} is not encrypted, and takes no certificate: write https")]
    Certificate(String),
}

/// The address of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) is_encrypted: bool,
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) name: String,
}

impl Address {
    /// Parses `http://HOST:PORT/NAME` or `https://HOST:PORT/NAME`. Only hosts of this machine go without encryption.
    pub(crate) fn parse(url: &str) -> Result<Address, Misplaced> {
        let wrong = || Misplaced::Url(url.to_owned());
        let uri: Uri = url.parse().map_err(|_| wrong())?;
        let is_encrypted = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(wrong()),
        };
        let authority = uri.authority().ok_or_else(wrong)?;
        let (Some(port), false, None) =
            (authority.port_u16(), authority.as_str().contains('@'), uri.query())
        else {
            return Err(wrong());
        };
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = uri.path().strip_prefix('/').ok_or_else(wrong)?.to_owned();
        check_name(&name)?;
        let is_here = host == "localhost"
            || host.parse::<IpAddr>().is_ok_and(|host| host.to_canonical().is_loopback());
        match is_encrypted || is_here {
            true => Ok(Address { is_encrypted, host, port, name }),
            false => Err(Misplaced::Plain(url.to_owned())),
        }
    }
}

impl Display for Address {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Address { is_encrypted, host, port, name } = self;
        let scheme = if *is_encrypted { "https" } else { "http" };
        match host.contains(':') {
            true => write!(f, "{scheme}://[{host}]:{port}/{name}"),
            false => write!(f, "{scheme}://{host}:{port}/{name}"),
        }
    }
}

/// Fails unless a journal can have this name. It names a folder of the server.
pub(crate) fn check_name(name: &str) -> Result<(), Misplaced> {
    let is_plain = |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.');
    let is_valid =
        (1..=NAME).contains(&name.len()) && name.bytes().all(is_plain) && !name.starts_with('.');
    is_valid.then_some(()).ok_or_else(|| Misplaced::Name(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_journals_are_parsed_and_shown_again() {
        let longest = "x".repeat(NAME);
        for url in [
            "http://127.0.0.1:7301/orders",
            "http://localhost:1/a",
            "http://[::1]:7301/a.b_c-9",
            "https://journals.example:7301/orders",
            &format!("https://[2001:db8::1]:1/{longest}"),
        ] {
            assert_eq!(Address::parse(url).map(|address| address.to_string()), Ok(url.to_owned()));
        }
    }

    #[test]
    fn others_are_refused_with_the_reason() {
        for url in [
            "",
            "orders",
            "ftp://h:1/a",
            "http://127.0.0.1/a",
            "http://u@127.0.0.1:1/a",
            "https://h:1/a?b",
        ] {
            assert_eq!(Address::parse(url), Err(Misplaced::Url(url.to_owned())), "{url}");
        }
        let long = "x".repeat(NAME + 1);
        for name in ["", "..", ".a", "A", "a/b", "%2e", "ä", &long] {
            let refused = Address::parse(&format!("https://h:1/{name}"));
            assert!(matches!(refused, Err(Misplaced::Name(_) | Misplaced::Url(_))), "{name}");
            assert!(check_name(name).is_err(), "{name}");
        }
        for host in ["10.0.0.1", "journals.example", "[2001:db8::1]"] {
            let url = format!("http://{host}:1/a");
            assert_eq!(Address::parse(&url), Err(Misplaced::Plain(url)));
        }
    }
}
