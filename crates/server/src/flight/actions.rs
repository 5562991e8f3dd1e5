//! Actions of Flight that are not those of Flight SQL.

use std::sync::Arc;

use arrow_flight::sql::{Any, Command};
use arrow_flight::{CancelFlightInfoRequest, CancelFlightInfoResult, CancelStatus, FlightInfo};
use prost::Message;
use tonic::Status;

use super::answer::id_of;
use super::calls::shown;
use super::options::{self, CANCEL, CLOSE, CloseResult, CloseStatus, GET, Options, SET};
use super::service::Flight;
use super::session::Session;
use super::status;

/// Their names, and what they do.
pub(super) const LIST: [(&str, &str); 4] = [
    (
        CANCEL,
        "Ends the statement of a FlightInfo.\nRequest: CancelFlightInfoRequest\nResponse: CancelFlightInfoResult",
    ),
    (
        SET,
        "Sets settings of the session.\nRequest: SetSessionOptionsRequest\nResponse: SetSessionOptionsResult",
    ),
    (
        GET,
        "Gets the settings of the session.\nRequest: GetSessionOptionsRequest\nResponse: GetSessionOptionsResult",
    ),
    (CLOSE, "Ends the session.\nRequest: CloseSessionRequest\nResponse: CloseSessionResult"),
];

/// Does what an action says, and returns its answer.
pub(super) async fn act(
    flight: &Flight,
    session: &Arc<Session>,
    action: arrow_flight::Action,
) -> Result<Vec<u8>, Status> {
    let unread = |error: prost::DecodeError| {
        status::bad(format!("the body of the action cannot be read: {error}"))
    };
    match action.r#type.as_str() {
        CANCEL => {
            let request = CancelFlightInfoRequest::decode(&*action.body).map_err(unread)?;
            let status = match request.info {
                Some(info) => cancel(session, &info)?,
                None => return Err(status::bad("a cancellation names a FlightInfo")),
            };
            Ok(CancelFlightInfoResult { status: status.into() }.encode_to_vec())
        }
        SET => {
            let _use = session.enter()?;
            let request = Options::decode(&*action.body).map_err(unread)?;
            Ok(options::set(session, request).await?.encode_to_vec())
        }
        GET => {
            let _use = session.enter()?;
            Ok(options::get(session).await?.encode_to_vec())
        }
        CLOSE => {
            flight.sessions.end(session);
            Ok(CloseResult { status: CloseStatus::Closed.into() }.encode_to_vec())
        }
        other => Err(status::unsupported(format!("there is no action \"{}\" here", shown(other)))),
    }
}

/// Ends the statements of a FlightInfo, or their tickets.
pub(super) fn cancel(session: &Session, info: &FlightInfo) -> Result<CancelStatus, Status> {
    let mut is_ended = false;
    for endpoint in &info.endpoint {
        let Some(ticket) = &endpoint.ticket else { continue };
        let any = Any::decode(&*ticket.ticket)
            .map_err(|error| status::bad(format!("the ticket cannot be read: {error}")))?;
        if let Ok(Command::TicketStatementQuery(ticket)) = Command::try_from(any) {
            is_ended |= session.tickets.cancel(id_of(&ticket)?);
        }
    }
    Ok(if is_ended { CancelStatus::Cancelled } else { CancelStatus::NotCancellable })
}
