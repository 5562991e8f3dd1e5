//! What each request passes before it is answered, and each answer before it is sent.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, COOKIE, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::authenticate::authenticate;
use super::connection::Connection;
use super::origin::{self, is_of};
use super::pages::console;
use super::problem::Problem;
use super::service::Http;

/// By which origins' pages an answer may be embedded.
const EMBEDDED_BY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// What anybody may ask for who can reach the server.
const PUBLIC: [&str; 3] = ["/healthz", "/readyz", "/login"];

/// Answers a request if it is for this host, from no other page, and from somebody who is known.
pub(super) async fn guard(State(http): State<Arc<Http>>, request: Request, next: Next) -> Response {
    let is_public = is_public(request.uri().path());
    let opens_page = request.method() == Method::GET && console::opens_page(request.headers());
    let mut response = match admit(&http, request).await {
        Ok(request) => next.run(request).await,
        Err(problem) => problem.into_response(),
    };
    if opens_page && response.status() == StatusCode::UNAUTHORIZED {
        response = console::login_instead(response);
    }
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // A page of another origin cannot embed an answer, not even one on this machine, for which the cookie is sent.
    headers.insert(EMBEDDED_BY, HeaderValue::from_static("same-origin"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    // Pages of the console have their own.
    headers
        .entry(CONTENT_SECURITY_POLICY)
        .or_insert(HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Nobody stays connected who has not shown who it is.
    if is_public {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Whether anybody may ask for a path.
fn is_public(path: &str) -> bool {
    PUBLIC.contains(&path) || console::is_public(path)
}

async fn admit(http: &Http, mut request: Request) -> Result<Request, Problem> {
    origin::check(request.uri(), request.headers(), &http.names, &http.origins)?;
    if is_of(&http.origins, request.headers()) {
        // The user may be logged in for the server's own pages.
        request.headers_mut().remove(COOKIE);
    }
    if is_public(request.uri().path()) {
        return Ok(request);
    }
    let connection = request.extensions().get::<Arc<Connection>>().cloned();
    let connection = connection.ok_or_else(|| {
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the request has no connection")
    })?;
    let identity = authenticate(http, &connection, request.headers()).await?;
    connection.admit(&identity)?;
    request.extensions_mut().insert(identity);
    Ok(request)
}
