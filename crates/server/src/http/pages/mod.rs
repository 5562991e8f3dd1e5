//! What the server says of itself, [`mod@metrics`] among it, and the login of browsers; [`console`] has the pages that these see.

pub(super) mod console;
mod metrics;

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::header::{CONTENT_TYPE, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse, Redirect, Response};
use serde_json::json;

pub(super) use self::metrics::metrics;
use super::answer::whole;
use super::authenticate;
use super::connection::Connection;
use super::media;
use super::problem::Problem;
use super::service::Http;
use super::token::Kind;
use crate::identity::Identity;
use crate::log;
use crate::traffic::Protocol;

/// How browsers say which page has sent a request: `none` is its user.
const SENT_FROM: &str = "sec-fetch-site";

/// What the server can be asked.
pub(super) const OPENAPI: &str = include_str!("../openapi.json");

/// The description of all requests.
pub(super) async fn openapi() -> Response {
    ([(CONTENT_TYPE, HeaderValue::from_static(media::JSON))], OPENAPI).into_response()
}

/// Whether the process answers.
pub(super) async fn healthz() -> Response {
    whole(StatusCode::OK, &json!({ "status": "ok" }))
}

/// Whether the engine can be used, and the server does not stop.
pub(super) async fn readyz(State(http): State<Arc<Http>>) -> Response {
    match http.shared.is_usable() && !*http.stops.borrow() {
        true => whole(StatusCode::OK, &json!({ "status": "ok" })),
        false => {
            let detail = "the server stops, or its engine has";
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).into_response()
        }
    }
}

/// Gives a browser that shows the token a cookie in its place.
pub(super) async fn login(
    State(http): State<Arc<Http>>,
    Extension(connection): Extension<Arc<Connection>>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Problem> {
    // A link of another page would make the browser somebody else.
    let is_own = |site: &HeaderValue| site == "none" || site == "same-origin";
    if headers.get(SENT_FROM).is_some_and(|site| !is_own(site)) {
        let detail = "a browser logs in by an address that its user opens, and not by a link of another page";
        return Err(Problem::new(StatusCode::FORBIDDEN, detail).last());
    }
    let query = uri.query().unwrap_or_default();
    let mut parameters = form_urlencoded::parse(query.as_bytes());
    let token = parameters.find(|(name, _)| name == "token");
    let holder = token.and_then(|(_, token)| match http.tokens.is_token(token.as_bytes()) {
        true => Some(Identity::everybody()),
        false => http.tokens.find(token.as_bytes(), Kind::Token),
    });
    let Some(holder) = holder else {
        http.shared.traffic(Protocol::Http).login(false);
        log::refused(connection.address, "a login does not show the token");
        return Err(authenticate::unknown(&http));
    };
    let cookie = http.tokens.log_in(holder).ok().and_then(|cookie| {
        let secure = if connection.is_encrypted { "; Secure" } else { "" };
        let (name, value) = (&http.cookie, cookie.text());
        let line = format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict{secure}");
        HeaderValue::from_str(&line).ok()
    });
    let Some(cookie) = cookie else {
        let detail = "the system has no random numbers for a cookie";
        return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail));
    };
    let mut response = match console::opens_page(&headers) {
        true => Redirect::to(console::CONSOLE).into_response(),
        false => "This browser is logged in.\n".into_response(),
    };
    response.headers_mut().insert(SET_COOKIE, cookie);
    Ok(response)
}
