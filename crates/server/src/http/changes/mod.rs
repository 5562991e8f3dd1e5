//! `GET /v1/relations/{name}/changes`: the rows of a relation, and then its changes.
//!
//! [`feed`] waits for changes, on no thread, and cuts them into [`part`]s, each a text of JSON. Parts are sent as [`events`] of a page, as
//! [`lines`], or as messages of a [`websocket`]. A client that does not read is cut off once 1,024 changes wait for it, and holds
//! up nobody.

mod events;
mod feed;
mod lines;
mod part;
mod websocket;

use std::sync::Arc;
use std::time::Duration;

use alluvium::{Change, Outcome, Policy, Session, SubscribeOptions, Subscription};
use axum::Extension;
use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::http::header::UPGRADE;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};

use self::feed::Feed;
use super::connection::Connection;
use super::media::{self, Choices};
use super::problem::Problem;
use super::relation::Path;
use super::service::Http;
use crate::identity::Identity;

/// How often a client hears something, by which both sides know that the other is there.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// How changes are sent to clients that do not ask for a WebSocket.
#[derive(Clone, Copy)]
enum Form {
    Events,
    Lines,
}

const FORMS: &Choices<Form> = &[
    (Form::Events, &[media::EVENTS]),
    (Form::Lines, &[media::LINES, media::OTHER_LINES[0], media::OTHER_LINES[1]]),
];

/// Streams the changes of a relation, after the epoch that the client has, or else after all rows.
pub(super) async fn changes(
    State(http): State<Arc<Http>>,
    Extension(connection): Extension<Arc<Connection>>,
    Extension(identity): Extension<Identity>,
    uri: Uri,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Problem> {
    let upgrade = match upgrade {
        Ok(upgrade) => Some(upgrade),
        Err(refused) if headers.contains_key(UPGRADE) => {
            let detail = format!("the connection cannot become a WebSocket: {refused}");
            return Err(Problem::new(StatusCode::UPGRADE_REQUIRED, detail));
        }
        Err(_) => None,
    };
    let form = match upgrade {
        Some(_) => Form::Lines,
        None => media::wanted(&headers, FORMS)?,
    };
    let path = Path::of(&uri)?;
    let after = after(&uri, &headers)?;
    let sql = format!("SUBSCRIBE {}", path.relation.sql);
    let mut caller = http.uncounted(&identity, &connection)?;
    // The first rows may be many: they are read on a thread of the pool.
    let limits = http.shared.registry.limits();
    let options = SubscribeOptions::new()
        .policy(Policy::Disconnect)
        .epochs(limits.subscription_changes)
        .bytes(limits.subscription_bytes);
    let options = after.map_or(options, |epoch| options.after(epoch));
    let begun = caller.call(move |session| begin(session, &sql, options)).await;
    let (subscription, first) = begun.map_err(Problem::of_path)?;
    let feed = Feed::new(subscription, first, http.clone(), identity);
    Ok(match (upgrade, form) {
        (Some(upgrade), _) => websocket::respond(upgrade, feed, connection),
        (None, Form::Events) => events::respond(feed),
        (None, Form::Lines) => lines::respond(feed),
    }
    .into_response())
}

fn begin(
    session: &mut Session,
    sql: &str,
    options: SubscribeOptions,
) -> Result<(Subscription, Option<Change>), Problem> {
    let failed = |error: alluvium::Error| Problem::of(&error);
    session.set_subscribe_options(options);
    match session.execute_with(sql, &[]).map_err(failed)? {
        Outcome::Subscribed(mut subscription) => {
            let first = subscription.try_next().map_err(failed)?;
            Ok((subscription, first))
        }
        _ => Err(Problem::bad("only the changes of relations can be subscribed to")),
    }
}

/// The epoch after which the client wants changes. A browser that connects again says in `Last-Event-ID` which event it had last,
/// however its address was written.
fn after(uri: &Uri, headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let number = |text: &str, of: &str| {
        text.parse().map_err(|_| Problem::bad(format!("{of} is the number of an epoch")))
    };
    if let Some(last) = headers.get("last-event-id").filter(|last| !last.is_empty()) {
        return number(last.to_str().unwrap_or_default(), "Last-Event-ID").map(Some);
    }
    let mut after = None;
    for (name, value) in form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()) {
        match &*name {
            "after" => after = Some(number(&value, "\"after\"")?),
            _ => {
                return Err(Problem::bad(format!(
                    "there is no parameter \"{name}\": there is after"
                )));
            }
        }
    }
    Ok(after)
}
