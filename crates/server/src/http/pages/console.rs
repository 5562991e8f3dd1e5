//! The console: its files, and the page for browsers that are not logged in.

use alluvium_console::{ASSETS, Asset, LOGIN, POLICY, asset};
use axum::extract::Path;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};

use crate::http::media::{self, Choices};
use crate::http::problem::Problem;

/// Where the console is.
pub(in crate::http) const CONSOLE: &str = "/console/";

/// Whether a client is a browser that opens a page. Others are satisfied with any text.
const PAGES: &Choices<bool> = &[(false, &["text/plain", media::JSON]), (true, &["text/html"])];

/// Leads a browser to the console.
pub(in crate::http) async fn lead() -> Redirect {
    Redirect::to(CONSOLE)
}

/// The page.
pub(in crate::http) async fn page() -> Result<Response, Problem> {
    file("")
}

/// What the page consists of.
pub(in crate::http) async fn part(Path(path): Path<String>) -> Result<Response, Problem> {
    file(&path)
}

fn file(path: &str) -> Result<Response, Problem> {
    let nothing = || Problem::new(StatusCode::NOT_FOUND, "the console has no such file");
    asset(path).map(answer).ok_or_else(nothing)
}

fn answer(asset: &'static Asset) -> Response {
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static(asset.media_type)),
        (CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
    ];
    (headers, asset.bytes).into_response()
}

/// Whether a path is one of the files that everybody may have.
pub(in crate::http) fn is_public(path: &str) -> bool {
    let file = path.strip_prefix(CONSOLE);
    file.is_some_and(|file| ASSETS.iter().any(|asset| asset.is_public && asset.path == file))
}

/// Whether a request is that of a browser that opens a page.
pub(in crate::http) fn opens_page(headers: &HeaderMap) -> bool {
    media::wanted(headers, PAGES).unwrap_or(false)
}

/// The page that says how to log in, in place of another answer, whose headers it keeps.
pub(in crate::http) fn login_instead(refused: Response) -> Response {
    let (mut parts, _) = refused.into_parts();
    let (page, body) = answer(&LOGIN).into_parts();
    parts.headers.extend(page.headers);
    Response::from_parts(parts, body)
}
