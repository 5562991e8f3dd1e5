//! Which pages may send requests: the server's own, and those of [`other`] origins that it was told of.
//!
//! A web page of anybody can make a browser send requests to this machine. Its `Origin` gives it away, and so does `Host` when a name of
//! its own stands for an address of this machine (DNS rebinding).

mod other;

use axum::http::header::{HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode, Uri};

pub use self::other::{NoOrigin, Origin};
pub(super) use self::other::{is_of, layer};
use super::problem::Problem;

/// The names that this machine has for itself.
const OWN: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Fails if a request is for another host, or from a page of another one than these origins. The server goes by the names `names` as
/// well.
pub(super) fn check(
    uri: &Uri,
    headers: &HeaderMap,
    names: &[String],
    others: &[Origin],
) -> Result<(), Problem> {
    let host = host(headers).ok_or_else(|| {
        Problem::bad("a request has one Host header, which names a host and a port").last()
    })?;
    let is_own = |authority: &Authority| {
        let name = authority.host();
        OWN.iter().any(|own| name.eq_ignore_ascii_case(own))
            || names.iter().any(|own| name.eq_ignore_ascii_case(own))
    };
    if ![Some(&host), uri.authority()].into_iter().flatten().all(is_own) {
        let detail = "the request is for another host: this server answers to localhost, 127.0.0.1, [::1] and the names that it was started with";
        return Err(Problem::new(StatusCode::MISDIRECTED_REQUEST, detail).last());
    }
    let mut origins = headers.get_all(ORIGIN).iter();
    let is_same = |origin: &[u8]| {
        let of = |scheme: &str| origin.strip_prefix(scheme.as_bytes());
        let authority = of("http://").or_else(|| of("https://"));
        authority.is_some_and(|authority| authority.eq_ignore_ascii_case(host.as_str().as_bytes()))
    };
    match origins.all(|origin| is_same(origin.as_bytes())) || is_of(others, headers) {
        true => Ok(()),
        false => {
            let detail = "the request comes from a page of another origin";
            Err(Problem::new(StatusCode::FORBIDDEN, detail).last())
        }
    }
}

/// The only host of a request.
fn host(headers: &HeaderMap) -> Option<Authority> {
    let mut hosts = headers.get_all(HOST).iter();
    let (host, None) = (hosts.next()?, hosts.next()) else { return None };
    let authority = Authority::try_from(host.as_bytes()).ok()?;
    // Users have no place there.
    (!authority.as_str().contains('@')).then_some(authority)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn status(uri: &str, lines: &[(&'static str, &'static str)]) -> Option<u64> {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, HeaderValue::from_static(value));
        }
        let uri: Uri = uri.parse().expect("a path");
        let problem = check(
            &uri,
            &headers,
            &["db.example".to_owned()],
            &["https://app.example".parse().expect("an origin")],
        )
        .err()?;
        problem.to_json()["status"].as_u64()
    }

    #[test]
    fn only_own_names_are_hosts() {
        for host in ["localhost", "LOCALHOST:80", "127.0.0.1:1", "[::1]:8080", "db.example"] {
            assert_eq!(status("/", &[("host", host)]), None, "{host}");
        }
        for host in ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "0.0.0.0"]
        {
            assert_eq!(status("/", &[("host", host)]), Some(421), "{host}");
        }
        for host in ["", "localhost@evil.example", "evil@localhost", "local host"] {
            assert_eq!(status("/", &[("host", host)]), Some(400), "{host}");
        }
        assert_eq!(status("/", &[]), Some(400));
        assert_eq!(status("/", &[("host", "localhost"), ("host", "localhost")]), Some(400));
        assert_eq!(status("http://evil.example/", &[("host", "localhost")]), Some(421));
    }

    #[test]
    fn pages_of_others_are_refused() {
        let from = |origin| status("/", &[("host", "localhost:8080"), ("origin", origin)]);
        assert_eq!(from("http://localhost:8080"), None);
        assert_eq!(from("https://app.example"), None);
        for origin in [
            "http://evil.example",
            "http://app.example",
            "https://app.example:444",
            "https://app.example.evil.example",
            "http://localhost",
            "http://localhost:8081",
            "null",
            "",
            "file://",
        ] {
            assert_eq!(from(origin), Some(403), "{origin}");
        }
    }
}
