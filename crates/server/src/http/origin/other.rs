//! Pages of other origins that the server was told to answer.
//!
//! A browser asks before such a page may send a request, and shows the page an answer only if the server says so (CORS). Pages show who
//! they are by a token: cookies do not count for them, since the server allows no credentials.

use std::str::FromStr;
use std::time::Duration;

use axum::http::header::{
    ACCEPT, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HeaderName, HeaderValue, ORIGIN,
};
use axum::http::{HeaderMap, Method};
use tower_http::cors::{AllowOrigin, CorsLayer};

/// How long a browser may remember that a page may send requests.
const REMEMBERED: Duration = Duration::from_secs(600);

/// The origin of pages: a scheme, `http` or `https`, a host, and a port unless it is the usual one, such as `https://app.example`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin(HeaderValue);

/// A text is no [`Origin`].
#[derive(Debug, thiserror::Error)]
#[error(
    "\"{0}\" is no origin: write it as browsers send it, such as https://app.example or http://localhost:3000"
)]
pub struct NoOrigin(String);

impl FromStr for Origin {
    type Err = NoOrigin;

    /// Fails for what no browser sends, as a path, a user, capital letters or a star.
    fn from_str(text: &str) -> Result<Self, NoOrigin> {
        let refused = || NoOrigin(text.to_owned());
        let schemes = ["http://", "https://"];
        let host = schemes.iter().find_map(|scheme| text.strip_prefix(scheme));
        let is_part = |char: char| {
            char.is_ascii_lowercase() || char.is_ascii_digit() || ".-_[]:".contains(char)
        };
        match host.is_some_and(|host| !host.is_empty() && host.chars().all(is_part)) {
            true => HeaderValue::from_str(text).map(Self).map_err(|_| refused()),
            false => Err(refused()),
        }
    }
}

/// Whether a request comes from a page of one of these origins.
pub(in crate::http) fn is_of(origins: &[Origin], headers: &HeaderMap) -> bool {
    let mut sent = headers.get_all(ORIGIN).iter();
    let (Some(sent), None) = (sent.next(), sent.next()) else { return false };
    origins.iter().any(|Origin(origin)| origin == sent)
}

/// Answers the questions of browsers about these origins.
pub(in crate::http) fn layer(origins: &[Origin]) -> CorsLayer {
    let own = ["idempotency-key", "last-event-id"].map(HeaderName::from_static);
    let headers = [ACCEPT, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE].into_iter().chain(own);
    CorsLayer::new()
        .allow_origin(AllowOrigin::list(origins.iter().map(|Origin(origin)| origin.clone())))
        .allow_methods([Method::GET, Method::POST, Method::PUT, Method::DELETE])
        .allow_headers(headers.collect::<Vec<_>>())
        .max_age(REMEMBERED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_browsers_send_is_an_origin() {
        for origin in ["https://app.example", "http://localhost:3000", "http://[::1]:80"] {
            origin.parse::<Origin>().expect(origin);
        }
        for origin in [
            "",
            "*",
            "null",
            "app.example",
            "https://",
            "https://app.example/",
            "https://App.example",
            "https://*.example",
            "https://me@app.example",
            "file://x",
            "https://app.example https://b.example",
        ] {
            assert!(origin.parse::<Origin>().is_err(), "{origin}");
        }
    }
}
