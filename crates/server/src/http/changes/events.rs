//! Changes as Server-Sent Events.

use std::convert::Infallible;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::stream;

use super::HEARTBEAT;
use super::feed::Feed;
use super::part::Part;
use crate::http::problem::Problem;

/// An event for each part, and a comment when there was none for a while.
///
/// The identifier of an event is its epoch. The parts of an epoch before the last have none: who has not got the last part asks for all
/// of the epoch again.
pub(super) fn respond(feed: Feed) -> Response {
    let events = stream::unfold(feed, |mut feed| async {
        let event = match feed.next().await? {
            Ok(part) => of_part(&part),
            Err(problem) => of_problem(&problem),
        };
        Some((Ok::<_, Infallible>(event), feed))
    });
    Sse::new(events).keep_alive(KeepAlive::new().interval(HEARTBEAT)).into_response()
}

fn of_part(part: &Part) -> Event {
    let event = Event::default().event(match part.is_snapshot {
        true => "snapshot",
        false => "change",
    });
    let event = match part.is_last {
        true => event.id(part.epoch.to_string()),
        false => event,
    };
    event.data(&part.text)
}

/// The last event. A page hears it as one of its own errors.
fn of_problem(problem: &Problem) -> Event {
    Event::default().event("problem").data(problem.to_json().to_string())
}
