//! Changes as lines of JSON.

use std::convert::Infallible;

use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use bytes::Bytes;
use futures::stream;
use serde_json::json;
use tokio::time::timeout;

use super::HEARTBEAT;
use super::feed::Feed;
use super::part::Part;
use crate::http::media;
use crate::http::problem::Problem;

/// A line for each part, and an empty one when there was none for a while.
pub(super) fn respond(feed: Feed) -> Response {
    let lines = stream::unfold(feed, |mut feed| async {
        let line = match timeout(HEARTBEAT, feed.next()).await {
            Ok(next) => text(next?) + "\n",
            Err(_) => "\n".to_owned(),
        };
        Some((Ok::<_, Infallible>(Bytes::from(line)), feed))
    });
    let mut response = Response::new(Body::from_stream(lines));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media::LINES));
    response
}

/// A part, or the error that is the last.
pub(super) fn text(next: Result<Part, Problem>) -> String {
    match next {
        Ok(part) => part.text,
        Err(problem) => json!({ "error": problem.to_json() }).to_string(),
    }
}
