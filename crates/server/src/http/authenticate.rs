//! Who sends a request.

use axum::http::header::{AUTHORIZATION, COOKIE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};

use super::connection::Connection;
use super::problem::Problem;
use super::service::Http;
use super::token::Kind;
use crate::basic::role_of;
use crate::identity::Identity;
use crate::log;
use crate::password;
use crate::traffic::Protocol;

/// Says who sends a request with these headers; counts who shows something else than a password or a token that is known.
///
/// # Errors
/// As [`find`].
pub(super) async fn authenticate(
    http: &Http,
    connection: &Connection,
    headers: &HeaderMap,
) -> Result<Identity, Problem> {
    let found = find(http, connection, headers).await;
    if found.is_err() && headers.contains_key(AUTHORIZATION) {
        http.shared.traffic(Protocol::Http).login(false);
    }
    found
}

/// Says who sends a request with these headers.
///
/// Without roles that is whoever knows the token of the server, by `Authorization: Bearer`, or by the cookie that a browser has got
/// for it. Once there are roles, it is a role: by `Authorization: Basic` with its name and password, by a token that it has got for these, or by the
/// cookie of a browser that has shown such a token.
///
/// # Errors
/// If the headers show nobody. After a wrong password that takes some time.
async fn find(
    http: &Http,
    connection: &Connection,
    headers: &HeaderMap,
) -> Result<Identity, Problem> {
    let found = match headers.get(AUTHORIZATION) {
        Some(value) => match credentials(value) {
            Some(Credentials::Bearer(token)) => match http.tokens.is_token(token) {
                true => http.shared.roles().is_empty().then(Identity::everybody),
                false => found(http, token, Kind::Token),
            },
            Some(Credentials::Basic(encoded)) => {
                let role = role_of(&http.shared, connection.address, encoded).await;
                return role.ok_or_else(|| unknown(http));
            }
            None => None,
        },
        None => {
            let cookies = cookies(headers, &http.cookie);
            cookies.fold(None, |other, cookie| other.or(found(http, cookie, Kind::Cookie)))
        }
    };
    found.ok_or_else(|| {
        log::refused(connection.address, "a request shows no token or password that is known");
        unknown(http)
    })
}

/// The holder of a secret as a client, unless there is no such holder any more.
fn found(http: &Http, secret: &[u8], kind: Kind) -> Option<Identity> {
    let shown = http.tokens.find(secret, kind)?;
    let roles = http.shared.roles();
    if !shown.is_let_in(&roles) {
        return None;
    }
    match shown.role() {
        None => Some(shown),
        Some(name) => {
            let role = roles.get(name).filter(|role| password::is_valid(role))?;
            Some(Identity { token: shown.token, ..Identity::of(role) })
        }
    }
}

/// Whether a client that was known is so still: a stream outlives what its client has shown.
pub(super) fn is_known(http: &Http, identity: &Identity) -> bool {
    let is_issued = identity.token.is_none_or(|number| http.tokens.is_issued(number));
    is_issued && identity.is_let_in(&http.shared.roles())
}

/// The answer to a request that does not show who sends it. The connection ends.
pub(super) fn unknown(http: &Http) -> Problem {
    let detail = match http.shared.roles().is_empty() {
        true => {
            "this server answers who knows its token: send it as Authorization: Bearer TOKEN, or open /login?token=TOKEN in a browser"
        }
        false => {
            "this server answers its roles: send a name and a password as Authorization: Basic, or a token of POST /v1/tokens as \
             Authorization: Bearer TOKEN"
        }
    };
    Problem::new(StatusCode::UNAUTHORIZED, detail).with("sqlstate", "28000".into()).last()
}

/// What an authorization shows.
#[derive(Debug, PartialEq, Eq)]
enum Credentials<'a> {
    Bearer(&'a [u8]),
    /// A name and a password, encoded.
    Basic(&'a [u8]),
}

fn credentials(value: &HeaderValue) -> Option<Credentials<'_>> {
    let value = value.as_bytes();
    let (scheme, rest) = value.split_at(value.iter().position(|byte| *byte == b' ')?);
    let rest = rest.trim_ascii();
    if scheme.eq_ignore_ascii_case(b"Bearer") {
        return Some(Credentials::Bearer(rest));
    }
    scheme.eq_ignore_ascii_case(b"Basic").then_some(Credentials::Basic(rest))
}

/// The values of the cookies of this name.
fn cookies<'a>(headers: &'a HeaderMap, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
    let all = headers.get_all(COOKIE).iter();
    let each = all.flat_map(|line| line.as_bytes().split(|byte| *byte == b';'));
    each.filter_map(move |cookie| {
        cookie.trim_ascii().strip_prefix(name.as_bytes())?.strip_prefix(b"=")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schemes_are_bearer_and_basic() {
        let read = |text: &'static str| {
            let value = HeaderValue::from_static(text);
            credentials(&value).map(|shown| format!("{shown:?}"))
        };
        let bearer = Some(format!("{:?}", Credentials::Bearer(b"abc")));
        assert_eq!((read("Bearer abc"), read("bearer  abc")), (bearer.clone(), bearer));
        assert_eq!(read("Basic abc"), Some(format!("{:?}", Credentials::Basic(b"abc"))));
        assert_eq!((read("Digest abc"), read("Bearer"), read("")), (None, None, None));
    }

    #[test]
    fn cookies_are_found_by_name() {
        let mut headers = HeaderMap::new();
        headers.append(COOKIE, HeaderValue::from_static("a=1; session=x;session=y"));
        headers.append(COOKIE, HeaderValue::from_static("sessions=z"));
        let found: Vec<_> = cookies(&headers, "session").collect();
        assert_eq!(found, [b"x", b"y"]);
    }
}
