//! Answers that tell where rows are, and schemas as bytes.

use arrow::datatypes::Schema;
use arrow::ipc::writer::IpcWriteOptions;
use arrow_flight::sql::{ProstMessageExt, TicketStatementQuery};
use arrow_flight::{
    FlightDescriptor, FlightEndpoint, FlightInfo, IpcMessage, SchemaAsIpc, SchemaResult, Ticket,
};
use bytes::Bytes;
use prost::Message;
use tonic::Status;

use super::id::Id;
use super::query::{Begun, no_columns};
use super::session::Session;
use super::status;

/// The bytes of a request that is sent back.
const DESCRIPTOR: usize = 64 << 10;

/// The answer about rows of these columns that a ticket gets.
pub(super) fn info(
    columns: &Schema,
    descriptor: FlightDescriptor,
    ticket: impl Into<Bytes>,
) -> Result<FlightInfo, Status> {
    let info = about(columns, descriptor)?;
    Ok(info.with_endpoint(FlightEndpoint::new().with_ticket(Ticket::new(ticket))))
}

/// The answer about a statement that has begun: a ticket for its rows, or how many it has changed.
pub(super) fn begun(
    session: &Session,
    begun: Begun,
    descriptor: FlightDescriptor,
) -> Result<FlightInfo, Status> {
    match begun {
        Begun::Rows(query) => {
            let columns = query.columns.clone();
            let limit = session.shared.registry.limits().message_bytes;
            let id = session.tickets.add(query, limit)?;
            let ticket = TicketStatementQuery { statement_handle: id.bytes().into() };
            info(&columns, descriptor, ticket.as_any().encode_to_vec())
        }
        Begun::Done(changed) => {
            let info = about(&no_columns(), descriptor)?;
            Ok(info.with_total_records(changed.map_or(-1, records)))
        }
    }
}

/// A client gets its request back, unless that is long: it may take no answer of such a length.
fn about(columns: &Schema, descriptor: FlightDescriptor) -> Result<FlightInfo, Status> {
    let info = FlightInfo::new().try_with_schema(columns).map_err(status::unwritten)?;
    Ok(match descriptor.cmd.len() <= DESCRIPTOR {
        true => info.with_descriptor(descriptor),
        false => info,
    })
}

/// The name in a ticket for rows of a statement.
pub(super) fn id_of(ticket: &TicketStatementQuery) -> Result<Id, Status> {
    Id::read(&ticket.statement_handle).ok_or_else(|| status::bad("the ticket is of no statement"))
}

/// A number of rows as Flight SQL has it.
pub(super) fn records(rows: u64) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
}

/// A schema as a message of Arrow.
pub(super) fn ipc(schema: &Schema) -> Result<Bytes, Status> {
    let options = IpcWriteOptions::default();
    let IpcMessage(bytes) =
        SchemaAsIpc::new(schema, &options).try_into().map_err(status::unwritten)?;
    Ok(bytes)
}

/// A schema as an answer.
pub(super) fn schema(schema: &Schema) -> Result<SchemaResult, Status> {
    ipc(schema).map(|schema| SchemaResult { schema })
}
