//! Who sends a request.

use std::time::Instant;

use alluvium::Roles;
use axum::http::header::{AUTHORIZATION, COOKIE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use tokio::time;

use super::connection::Connection;
use super::problem::Problem;
use super::service::Http;
use super::token::Kind;
use crate::identity::Identity;
use crate::log;
use crate::password;

/// Some clients leave the padding out.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Says who sends a request with these headers.
///
/// Without roles that is whoever knows the token of the server, by `Authorization: Bearer`, or by the cookie that a browser has got
/// for it. Once there are roles, it is a role: by `Authorization: Basic` with its name and password, by a token that it has got for these, or by the
/// cookie of a browser that has shown such a token.
///
/// # Errors
/// If the headers show nobody. After a wrong password that takes some time.
pub(super) async fn authenticate(
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
                return basic(http, connection, encoded).await;
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
    if !is_let_in(&roles, &shown) {
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
    is_issued && is_let_in(&http.shared.roles(), identity)
}

/// Whether these roles let a client in: everybody if there are none, or else a role that has still the password that it had.
fn is_let_in(roles: &Roles, identity: &Identity) -> bool {
    match identity.role() {
        None => roles.is_empty(),
        Some(role) => roles.may_connect(role) && identity.is_still(roles),
    }
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

/// The role that a name and a password show.
async fn basic(http: &Http, connection: &Connection, encoded: &[u8]) -> Result<Identity, Problem> {
    let decoded = BASE64.decode(encoded).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let Some((name, password)) = decoded.as_deref().and_then(|text| text.split_once(':')) else {
        return Err(unknown(http));
    };
    let roles = http.shared.roles();
    let role = roles.get(name);
    let verifier =
        role.filter(|role| password::is_valid(role)).and_then(|role| role.verifier.as_deref());
    let verifier = verifier.and_then(password::secret);
    let is_there = verifier.is_some();
    let secret = verifier.unwrap_or_else(|| http.shared.decoy.secret(name));
    let password = password.to_owned();
    // It is made to take long.
    let fits = tokio::task::spawn_blocking(move || password::fits(&password, &secret)).await;
    let is_right = fits.is_ok_and(|fits| fits) && is_there && roles.may_connect(name);
    match role.filter(|_| is_right) {
        Some(role) => Ok(Identity::of(role)),
        None => {
            log::failed_login(connection.address, name, "the password does not fit");
            time::sleep(http.shared.guesses.fail(connection.address, Instant::now())).await;
            Err(unknown(http))
        }
    }
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
