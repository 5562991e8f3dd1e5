//! `POST /v1/sql`: statements.

use std::sync::Arc;

use alluvium::{Outcome, Session, Statement, parse};
use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;

use super::answer::{Begun, begin, respond};
use super::body::Incoming;
use super::connection::Connection;
use super::encoder::Format;
use super::media;
use super::problem::Problem;
use super::request::Request;
use super::service::Http;
use crate::identity::Identity;

/// Runs the statements of a request, and answers the last of them.
pub(super) async fn sql(
    State(http): State<Arc<Http>>,
    Extension(connection): Extension<Arc<Connection>>,
    Extension(identity): Extension<Identity>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    media::check_json(&headers)?;
    let format = Format::wanted(&headers)?;
    let limit = http.shared.registry.limits().message_bytes;
    let body = Incoming::new(&headers, body, limit)?.collect().await?;
    let mut caller = http.caller(&identity, &connection)?;
    let begun = caller.call(move |session| run(session, &Request::read(&body)?, format)).await?;
    Ok(respond(caller, begun))
}

/// Runs statements one after the other; the first error ends them.
fn run(session: &mut Session, request: &Request, format: Format) -> Result<Begun, Problem> {
    request.set_up(session)?;
    let failed = |error: alluvium::Error| Problem::of_statement(&error);
    let mut statements: Vec<Statement> =
        parse(&request.sql).collect::<alluvium::Result<_>>().map_err(failed)?;
    let Some(last) = statements.pop() else {
        return Err(Problem::bad("the text has no statement"));
    };
    if !statements.is_empty() && !request.parameters.is_empty() {
        return Err(Problem::bad("one statement can have parameters, and the text has several"));
    }
    session.set_typed_parameters(true);
    for statement in &statements {
        if let Outcome::Rows(rows) = session.run(statement).map_err(failed)? {
            // They are not sent, but may fail.
            for batch in rows {
                batch.map_err(failed)?;
            }
        }
    }
    let outcome = session.run_with(&last, &request.parameters).map_err(failed)?;
    let begun = begin(outcome, last.command(), format)?;
    match session.in_transaction() {
        true => Err(Problem::bad(
            "the statements leave a transaction open, which was rolled back: a request has a session of its own",
        )
        .with("sqlstate", "25000".into())
        .hint("end them with COMMIT")),
        false => Ok(begun),
    }
}
