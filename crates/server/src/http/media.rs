//! Media types: what a client sends, and what it wants.

use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};

use super::problem::Problem;

/// The media types of JSON.
pub(super) const JSON: &str = "application/json";
/// Lines of JSON. Registered is none; these are in use.
pub(super) const LINES: &str = "application/x-ndjson";
pub(super) const OTHER_LINES: [&str; 2] = ["application/ndjson", "application/jsonl"];
pub(super) const CSV: &str = "text/csv";
pub(super) const ARROW: &str = "application/vnd.apache.arrow.stream";
pub(super) const PARQUET: &str = "application/vnd.apache.parquet";
pub(super) const EVENTS: &str = "text/event-stream";

/// The choices of a client: for each that it may have, the types by which it asks for it. The first is what it gets if it says nothing.
pub(super) type Choices<T> = [(T, &'static [&'static str])];

/// What a client wants of these.
///
/// # Errors
/// 406 if it wants none of them.
pub(super) fn wanted<T: Copy>(headers: &HeaderMap, choices: &Choices<T>) -> Result<T, Problem> {
    let mut ranges = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(','))
        .filter_map(range)
        .peekable();
    let named = choices.first().map(|(choice, _)| *choice);
    let found = match ranges.peek() {
        None => named,
        Some(_) => {
            // The first of those that it wants most.
            let mut best: Option<(T, f32)> = None;
            for (range, weight) in ranges {
                let fits = |types: &[&str]| types.iter().any(|one| fits(&range, one));
                let found = choices.iter().find(|(_, types)| fits(types));
                if let Some((choice, _)) = found
                    && weight > best.map_or(0.0, |(_, weight)| weight)
                {
                    best = Some((*choice, weight));
                }
            }
            best.map(|(choice, _)| choice)
        }
    };
    found.ok_or_else(|| {
        let first = choices.iter().filter_map(|(_, types)| types.first().copied());
        let detail = format!("the answer can be {}", first.collect::<Vec<_>>().join(", "));
        Problem::new(StatusCode::NOT_ACCEPTABLE, detail)
    })
}

/// A range of media types in small letters, and its weight.
fn range(text: &str) -> Option<(String, f32)> {
    let mut parts = text.split(';');
    let name = parts.next()?.trim().to_ascii_lowercase();
    let mut weights = parts.filter_map(|part| {
        let (name, value) = part.split_once('=')?;
        name.trim().eq_ignore_ascii_case("q").then(|| value.trim().parse().unwrap_or(0.0))
    });
    (!name.is_empty()).then_some((name, weights.next_back().unwrap_or(1.0)))
}

fn fits(range: &str, media_type: &str) -> bool {
    let kind = || media_type.split('/').next();
    range == "*/*"
        || range == media_type
        || range.strip_suffix("/*").is_some_and(|of| Some(of) == kind())
}

/// The media type of a body, without its parameters and in small letters, and the parameters.
pub(super) fn sent(headers: &HeaderMap) -> (String, String) {
    let line = headers.get(CONTENT_TYPE).and_then(|line| line.to_str().ok()).unwrap_or("");
    let (name, parameters) = line.split_once(';').unwrap_or((line, ""));
    (name.trim().to_ascii_lowercase(), parameters.trim().to_ascii_lowercase())
}

/// Fails unless the body is JSON. A page of another origin cannot send that without being asked for leave.
pub(super) fn check_json(headers: &HeaderMap) -> Result<(), Problem> {
    match sent(headers).0 == JSON {
        true => Ok(()),
        false => Err(unsupported("the body is to be JSON: send Content-Type: application/json")),
    }
}

/// The problem of a body of a type that is not read here.
pub(super) fn unsupported(detail: &str) -> Problem {
    Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    const CHOICES: &Choices<u8> = &[(1, &[JSON]), (2, &[LINES, "application/jsonl"]), (3, &[CSV])];

    #[test]
    fn clients_get_what_they_want_most() {
        for (accept, expected) in [
            ("*/*", Some(1)),
            ("text/*", Some(3)),
            ("application/jsonl", Some(2)),
            ("text/html, text/csv;q=0.5, application/json;q=0.4", Some(3)),
            ("text/csv;q=0", None),
            ("text/csv; q = 0.1 , */*;q=0.05", Some(3)),
            ("image/png", None),
            ("TEXT/CSV", Some(3)),
            (",,;", Some(1)),
            ("", Some(1)),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, HeaderValue::from_static(accept));
            assert_eq!(wanted(&headers, CHOICES).ok(), expected, "{accept}");
        }
        assert_eq!(wanted(&HeaderMap::new(), CHOICES).ok(), Some(1));
    }

    #[test]
    fn only_json_is_json() {
        for (line, is_json) in [
            ("application/json", true),
            ("Application/JSON; charset=utf-8", true),
            ("text/plain", false),
            ("application/jsonx", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(line));
            assert_eq!(check_json(&headers).is_ok(), is_json, "{line}");
        }
    }
}
