//! What each request passes before it is answered, even before its message is read.

use std::sync::Arc;

use arrow_flight::flight_service_server::FlightServiceServer;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, ORIGIN};
use axum::http::{HeaderMap, Request, Response};
use hyper::body::Incoming;
use tonic::body::Body;
use tonic::{Code, Status};
use tower::ServiceExt;

use super::connection::Connection;
use super::door::Door;
use super::service::Flight;
use super::session::Session;
use super::status::status;
use crate::identity::Identity;
use crate::traffic::Protocol;

/// The path of the login, and the bytes of its message.
const LOGIN: &str = "/arrow.flight.protocol.FlightService/Handshake";
const LOGIN_BYTES: usize = 64 << 10;
/// How the content of requests is called.
const GRPC: &[u8] = b"application/grpc";

/// Answers the requests of a connection.
#[derive(Clone)]
pub(super) struct Gate {
    flight: Arc<Flight>,
    connection: Arc<Connection>,
    /// Answers who is known, and who logs in.
    known: FlightServiceServer<Door>,
    login: FlightServiceServer<Door>,
}

impl Gate {
    pub(super) fn new(flight: &Arc<Flight>, connection: Arc<Connection>) -> Self {
        let limit = flight.shared.registry.limits().message_bytes;
        let service = || FlightServiceServer::new(Door::new(flight.clone()));
        Self {
            flight: flight.clone(),
            connection,
            known: service().max_decoding_message_size(limit).max_encoding_message_size(usize::MAX),
            login: service().max_decoding_message_size(LOGIN_BYTES),
        }
    }

    /// Answers a request of somebody who is known, or a login.
    pub(super) async fn answer(self, mut request: Request<Incoming>) -> Response<Body> {
        if let Err(refused) = check_client(request.headers()) {
            return refused.into_http();
        }
        let service = if request.uri().path() == LOGIN {
            request.extensions_mut().insert(self.connection.clone());
            self.login
        } else {
            match self.session(request.headers()) {
                Ok(session) => request.extensions_mut().insert(session),
                Err(refused) => return refused.into_http(),
            };
            self.known
        };
        service.oneshot(request).await.unwrap_or_else(|no| match no {})
    }

    /// The session of a request.
    fn session(&self, headers: &HeaderMap) -> Result<Arc<Session>, Status> {
        let session = match headers.get(AUTHORIZATION) {
            None if self.flight.shared.roles().is_empty() => {
                check_place(&self.flight, &self.connection)?;
                self.connection.own()?
            }
            None => {
                let message = "this server answers its roles: log in with a name and a password";
                return Err(unknown(message));
            }
            Some(value) => {
                let session = self.shown(value.as_bytes())?;
                self.connection.attach(&session)?;
                session
            }
        };
        if session.identity.role().is_none() {
            check_place(&self.flight, &self.connection)?;
        }
        session.check_let_in()?;
        Ok(session)
    }

    /// The session of a token.
    fn shown(&self, authorization: &[u8]) -> Result<Arc<Session>, Status> {
        let token = credentials(b"Bearer ", authorization).ok_or_else(|| {
            unknown("requests show the token of a login, as Bearer: Handshake takes a name and a password, as Basic")
        })?;
        self.flight.sessions.find(token).ok_or_else(|| {
            unknown("the token is of no session: it has ended, or the server has been started again; log in again")
        })
    }
}

/// Fails for clients of other machines as long as there are no roles, unless the server may be insecure.
fn check_place(flight: &Flight, connection: &Connection) -> Result<(), Status> {
    let is_here = connection.address.is_none_or(|address| address.to_canonical().is_loopback());
    match is_here || flight.shared.is_insecure {
        true => Ok(()),
        false => Err(unknown(
            "this server has no roles, and serves its own machine only: CREATE ROLE there",
        )),
    }
}

/// Fails for what is no client of gRPC, as a page in a browser.
fn check_client(headers: &HeaderMap) -> Result<(), Status> {
    let is_grpc = headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(GRPC));
    match is_grpc && !headers.contains_key(ORIGIN) {
        true => Ok(()),
        false => Err(status(
            Code::PermissionDenied,
            "08P01",
            "clients of gRPC are answered, and no pages",
        )),
    }
}

/// What an authorization of this scheme shows; `None` of another scheme.
fn credentials<'a>(scheme: &[u8], authorization: &'a [u8]) -> Option<&'a [u8]> {
    let (given, rest) = authorization.split_at_checked(scheme.len())?;
    given.eq_ignore_ascii_case(scheme).then(|| rest.trim_ascii())
}

fn unknown(message: &str) -> Status {
    status(Code::Unauthenticated, "28000", message)
}

/// Who logs in by these headers. As long as there are no roles it is everybody.
///
/// # Errors
/// If they show nobody. After a wrong password that takes some time.
pub(super) async fn log_in(
    flight: &Flight,
    connection: &Connection,
    authorization: Option<&[u8]>,
) -> Result<Identity, Status> {
    if flight.shared.roles().is_empty() {
        check_place(flight, connection)?;
        return Ok(Identity::everybody());
    }
    let encoded = authorization.and_then(|value| credentials(b"Basic ", value));
    let encoded = encoded
        .ok_or_else(|| unknown("a login has a name and a password, as Authorization: Basic"))?;
    let _turn = connection.logins.lock().await;
    let role = crate::basic::role_of(&flight.shared, connection.address, encoded).await;
    role.ok_or_else(|| {
        flight.shared.traffic(Protocol::Flight).login(false);
        status(
            Code::Unauthenticated,
            "28P01",
            "the name and the password are of no role that may connect",
        )
    })
}
