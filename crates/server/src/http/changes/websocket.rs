//! Changes as messages of a WebSocket.

use std::sync::Arc;

use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use futures::StreamExt;
use tokio::time::{MissedTickBehavior, interval};

use super::HEARTBEAT;
use super::feed::Feed;
use super::lines::text;
use crate::http::connection::Connection;

/// The bytes of a message from a client, who has nothing to say.
const MESSAGE: usize = 4 << 10;

/// A message for each part, and a ping when there was none for a while. The connection counts until it is closed.
pub(super) fn respond(
    upgrade: WebSocketUpgrade,
    feed: Feed,
    connection: Arc<Connection>,
) -> Response {
    upgrade.max_message_size(MESSAGE).max_frame_size(MESSAGE).on_upgrade(|socket| async move {
        // Its client is gone then.
        let _ = send(socket, feed).await;
        drop(connection);
    })
}

/// Sends changes until there are no more or the client closes.
async fn send(mut socket: WebSocket, mut feed: Feed) -> Result<(), axum::Error> {
    let mut heartbeat = interval(HEARTBEAT);
    heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut is_heard = true;
    loop {
        let message = tokio::select! {
            next = feed.next() => match next {
                Some(next) => Message::text(text(next)),
                None => break,
            },
            heard = StreamExt::next(&mut socket) => match heard {
                Some(Ok(Message::Close(_))) | None => return Ok(()),
                Some(Err(error)) => return Err(error),
                Some(Ok(_)) => {
                    is_heard = true;
                    continue;
                }
            },
            _ = heartbeat.tick() => {
                // It answers pings if it is there.
                if !std::mem::take(&mut is_heard) {
                    return Ok(());
                }
                Message::Ping(Default::default())
            }
        };
        socket.send(message).await?;
    }
    socket.send(Message::Close(None)).await
}
