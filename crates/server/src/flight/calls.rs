//! What calls have in common: their session, their transaction, and answers of rows that are there.

use std::fmt::Display;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use arrow_flight::{FlightDescriptor, FlightInfo, Ticket};
use tonic::{Code, Request, Response, Status};

use super::answer;
use super::id::Id;
use super::query::{Query, no_columns};
use super::session::{Session, no_transaction};
use super::status;
use super::stream::{Data, send};
use super::tickets::Handle;

/// The session of a request that the gate has let through.
pub(super) fn session_of<T>(request: &Request<T>) -> Result<Arc<Session>, Status> {
    let session = request.extensions().get::<Arc<Session>>().cloned();
    session.ok_or_else(|| {
        status::status(Code::Unauthenticated, "28000", "the request is of no session: log in")
    })
}

/// The transaction that a request names; an empty name is none.
pub(super) fn transaction(id: Option<&[u8]>) -> Result<Option<Id>, Status> {
    match id.filter(|id| !id.is_empty()) {
        None => Ok(None),
        Some(id) => Id::read(id).map(Some).ok_or_else(no_transaction),
    }
}

/// The columns of a prepared statement.
pub(super) fn prepared_columns(session: &Session, handle: &[u8]) -> Result<SchemaRef, Status> {
    let statement = session.prepared.get(handle)?;
    Ok(statement.prepared.description().columns.clone().unwrap_or_else(no_columns))
}

/// Tells that the rows of a command are got by the command itself.
pub(super) fn by_itself(
    columns: &Schema,
    request: Request<FlightDescriptor>,
) -> Result<Response<FlightInfo>, Status> {
    let descriptor = request.into_inner();
    let ticket = descriptor.cmd.clone();
    answer::info(columns, descriptor, ticket).map(Response::new)
}

/// Sends rows that are there.
pub(super) async fn whole(
    request: &Request<Ticket>,
    rows: Result<RecordBatch, Status>,
) -> Result<Response<Data>, Status> {
    let session = session_of(request)?;
    let of = session.enter()?;
    send(session, of, Query::whole(rows?), (None, Handle::new())).await.map(Response::new)
}

/// A command that is none of Flight SQL's, or one that is not answered here.
pub(super) fn unknown(type_url: &str) -> Status {
    let name = type_url.rsplit('.').next().unwrap_or_default();
    status::unsupported(format!("there is no answer to \"{}\" here", shown(name)))
}

/// A name that a client has sent, without control characters, of at most 100 bytes.
pub(super) fn shown(name: &str) -> impl Display + '_ {
    name[..name.floor_char_boundary(100)].escape_debug()
}
