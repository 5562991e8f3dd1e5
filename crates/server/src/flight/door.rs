//! Flight's own calls, of which the library dispatches those of Flight SQL.

use std::sync::Arc;

use arrow_flight::flight_service_server::FlightService;
use arrow_flight::sql::{Any, Command};
use arrow_flight::{
    Action, Criteria, Empty, FlightData, FlightDescriptor, FlightInfo, HandshakeRequest, PollInfo,
    SchemaResult, Ticket,
};
use prost::Message;
use tonic::{Request, Response, Status, Streaming};

use super::answer;
use super::calls::{prepared_columns, session_of, transaction};
use super::query::no_columns;
use super::service::Flight;
use super::status;

/// Answers calls of Flight.
#[derive(Clone)]
pub(super) struct Door {
    flight: Arc<Flight>,
}

impl Door {
    pub(super) fn new(flight: Arc<Flight>) -> Self {
        Self { flight }
    }
}

/// What a call of the library answers with.
type Answer<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl FlightService for Door {
    type HandshakeStream = <Flight as FlightService>::HandshakeStream;
    type ListFlightsStream = <Flight as FlightService>::ListFlightsStream;
    type DoGetStream = <Flight as FlightService>::DoGetStream;
    type DoPutStream = <Flight as FlightService>::DoPutStream;
    type DoActionStream = <Flight as FlightService>::DoActionStream;
    type ListActionsStream = <Flight as FlightService>::ListActionsStream;
    type DoExchangeStream = <Flight as FlightService>::DoExchangeStream;

    async fn handshake(
        &self,
        request: Request<Streaming<HandshakeRequest>>,
    ) -> Answer<Self::HandshakeStream> {
        self.flight.handshake(request).await
    }

    async fn list_flights(&self, _: Request<Criteria>) -> Answer<Self::ListFlightsStream> {
        Err(status::unsupported("flights are not listed: the tables are, by GetTables"))
    }

    async fn get_flight_info(&self, request: Request<FlightDescriptor>) -> Answer<FlightInfo> {
        self.flight.get_flight_info(request).await
    }

    async fn poll_flight_info(&self, _: Request<FlightDescriptor>) -> Answer<PollInfo> {
        Err(status::unsupported("statements are not polled: GetFlightInfo answers at once"))
    }

    /// The columns of a statement, which is not run, or of what there is.
    async fn get_schema(&self, request: Request<FlightDescriptor>) -> Answer<SchemaResult> {
        let unread = |error: &dyn std::fmt::Display| status::bad(format!("no command: {error}"));
        let any = Any::decode(&*request.get_ref().cmd).map_err(|error| unread(&error))?;
        let command = Command::try_from(any).map_err(|error| unread(&error))?;
        match command {
            Command::CommandStatementQuery(query) => {
                let session = session_of(&request)?;
                let _use = session.enter()?;
                let transaction = transaction(query.transaction_id.as_deref())?;
                let described = session
                    .call(transaction, move |session| session.describe(&query.query))
                    .await?
                    .map_err(|error| status::of(&error))?;
                let columns = described.columns.unwrap_or_else(no_columns);
                answer::schema(&columns).map(Response::new)
            }
            Command::CommandPreparedStatementQuery(query) => {
                let session = session_of(&request)?;
                let columns = prepared_columns(&session, &query.prepared_statement_handle)?;
                answer::schema(&columns).map(Response::new)
            }
            // Their columns are in the answer that tells where their rows are.
            _ => {
                let info = self.flight.get_flight_info(request).await?.into_inner();
                Ok(Response::new(SchemaResult { schema: info.schema }))
            }
        }
    }

    async fn do_get(&self, request: Request<Ticket>) -> Answer<Self::DoGetStream> {
        self.flight.do_get(request).await
    }

    async fn do_put(&self, request: Request<Streaming<FlightData>>) -> Answer<Self::DoPutStream> {
        self.flight.do_put(request).await
    }

    async fn do_action(&self, request: Request<Action>) -> Answer<Self::DoActionStream> {
        self.flight.do_action(request).await
    }

    async fn list_actions(&self, request: Request<Empty>) -> Answer<Self::ListActionsStream> {
        self.flight.list_actions(request).await
    }

    async fn do_exchange(
        &self,
        _: Request<Streaming<FlightData>>,
    ) -> Answer<Self::DoExchangeStream> {
        Err(status::unsupported("Flight SQL exchanges no rows both ways"))
    }
}
