//! The calls of Flight SQL.

use std::pin::Pin;
use std::sync::Arc;

use alluvium::Session as EngineSession;
use arrow_flight::flight_service_server::FlightService;
use arrow_flight::sql::server::{DoPutError, FlightSqlService, PeekableFlightDataStream};
use arrow_flight::sql::{
    ActionBeginTransactionRequest, ActionBeginTransactionResult, ActionCancelQueryRequest,
    ActionCancelQueryResult, ActionClosePreparedStatementRequest,
    ActionCreatePreparedStatementRequest, ActionCreatePreparedStatementResult,
    ActionEndTransactionRequest, Any, CommandGetCatalogs, CommandGetCrossReference,
    CommandGetDbSchemas, CommandGetExportedKeys, CommandGetImportedKeys, CommandGetPrimaryKeys,
    CommandGetSqlInfo, CommandGetTableTypes, CommandGetTables, CommandGetXdbcTypeInfo,
    CommandPreparedStatementQuery, CommandPreparedStatementUpdate, CommandStatementIngest,
    CommandStatementQuery, CommandStatementUpdate, DoPutPreparedStatementResult, EndTransaction,
    SqlInfo, TicketStatementQuery,
};
use arrow_flight::{
    Action, ActionType, FlightDescriptor, FlightInfo, HandshakeRequest, HandshakeResponse, Ticket,
};
use futures::stream;
use prost::Message;
use tonic::metadata::AsciiMetadataValue;
use tonic::{Code, Request, Response, Status, Streaming};

use super::actions;
use super::answer;
use super::calls::{by_itself, session_of, transaction, unknown, whole};
use super::connection::Connection;
use super::gate::log_in;
use super::incoming::Incoming;
use super::ingest::ingest;
use super::metadata::{facts, keys, relations, types};
use super::parameters::{self, Values};
use super::prepared::prepare;
use super::query::{self, begin, counted};
use super::session::no_transaction;
use super::sessions::Sessions;
use super::status;
use super::stream::{Data, send};
use super::tickets::Handle;
use super::update::{update, update_prepared};
use crate::shared::Shared;

/// What all connections of Flight SQL share.
pub(super) struct Flight {
    pub(super) shared: Arc<Shared>,
    pub(super) sessions: Arc<Sessions>,
}

/// Answers to a login.
type Handshakes = Pin<Box<dyn futures::Stream<Item = Result<HandshakeResponse, Status>> + Send>>;

impl Flight {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, sessions: Arc::default() }
    }
}

#[tonic::async_trait]
impl FlightSqlService for Flight {
    type FlightService = Self;

    async fn do_handshake(
        &self,
        request: Request<Streaming<HandshakeRequest>>,
    ) -> Result<Response<Handshakes>, Status> {
        let connection = request.extensions().get::<Arc<Connection>>().cloned();
        let connection = connection.ok_or_else(|| {
            status::status(Code::Internal, "XX000", "the login has no connection")
        })?;
        let authorization = request.metadata().get("authorization").cloned();
        let shown = authorization.as_ref().map(|value| value.as_encoded_bytes());
        let identity = log_in(self, &connection, shown).await?;
        let session = connection.begin(identity)?;
        let token = self.sessions.add(session)?;
        let answer = HandshakeResponse { protocol_version: 0, payload: token.clone().into() };
        let answers: Handshakes = Box::pin(stream::iter([Ok(answer)]));
        let mut response = Response::new(answers);
        if let Ok(mut bearer) = AsciiMetadataValue::try_from(format!("Bearer {token}")) {
            bearer.set_sensitive(true);
            response.metadata_mut().insert("authorization", bearer);
        }
        Ok(response)
    }

    async fn get_flight_info_statement(
        &self,
        query: CommandStatementQuery,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        let session = session_of(&request)?;
        let _use = session.enter()?;
        let transaction = transaction(query.transaction_id.as_deref())?;
        let begun = counted(&session, begin(&session, query.query, transaction)).await?;
        answer::begun(&session, begun, request.into_inner()).map(Response::new)
    }

    async fn get_flight_info_prepared_statement(
        &self,
        query: CommandPreparedStatementQuery,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        let session = session_of(&request)?;
        let _use = session.enter()?;
        let statement = session.prepared.get(&query.prepared_statement_handle)?;
        let values = statement.values.unwrap_or_else(Values::none);
        let (prepared, transaction) = (statement.prepared, statement.transaction);
        let begun = async {
            let begin = move |session: &mut EngineSession| {
                query::begin_prepared(session, prepared, values, transaction)
            };
            session.call(transaction, begin).await?
        };
        let begun = counted(&session, begun).await?;
        answer::begun(&session, begun, request.into_inner()).map(Response::new)
    }

    async fn get_flight_info_catalogs(
        &self,
        query: CommandGetCatalogs,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        by_itself(&query.into_builder().schema(), request)
    }

    async fn get_flight_info_schemas(
        &self,
        query: CommandGetDbSchemas,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        by_itself(&query.into_builder().schema(), request)
    }

    async fn get_flight_info_tables(
        &self,
        query: CommandGetTables,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        by_itself(&query.into_builder().schema(), request)
    }

    async fn get_flight_info_table_types(
        &self,
        query: CommandGetTableTypes,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        by_itself(&query.into_builder().schema(), request)
    }

    async fn get_flight_info_sql_info(
        &self,
        _: CommandGetSqlInfo,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        by_itself(&facts::facts()?.schema(), request)
    }

    async fn get_flight_info_primary_keys(
        &self,
        _: CommandGetPrimaryKeys,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        by_itself(&keys::primary_columns(), request)
    }

    async fn get_flight_info_exported_keys(
        &self,
        _: CommandGetExportedKeys,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        by_itself(&keys::foreign_columns(), request)
    }

    async fn get_flight_info_imported_keys(
        &self,
        _: CommandGetImportedKeys,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        by_itself(&keys::foreign_columns(), request)
    }

    async fn get_flight_info_cross_reference(
        &self,
        _: CommandGetCrossReference,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        by_itself(&keys::foreign_columns(), request)
    }

    async fn get_flight_info_xdbc_type_info(
        &self,
        _: CommandGetXdbcTypeInfo,
        request: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        by_itself(&types::types()?.schema(), request)
    }

    async fn do_get_statement(
        &self,
        ticket: TicketStatementQuery,
        request: Request<Ticket>,
    ) -> Result<Response<Data>, Status> {
        let session = session_of(&request)?;
        let of = session.enter()?;
        let (id, handle) = (answer::id_of(&ticket)?, Handle::new());
        let query = session.tickets.take(id, &handle).ok_or_else(|| {
            let message =
                "the ticket is of no statement of this session, or was used: tickets are used once";
            status::status(Code::NotFound, "26000", message)
        })?;
        send(session, of, query, (Some(id), handle)).await.map(Response::new)
    }

    async fn do_get_catalogs(
        &self,
        query: CommandGetCatalogs,
        request: Request<Ticket>,
    ) -> Result<Response<Data>, Status> {
        whole(&request, relations::catalogs(query)).await
    }

    async fn do_get_schemas(
        &self,
        query: CommandGetDbSchemas,
        request: Request<Ticket>,
    ) -> Result<Response<Data>, Status> {
        let rows = relations::schemas(&*session_of(&request)?, query).await;
        whole(&request, rows).await
    }

    async fn do_get_tables(
        &self,
        query: CommandGetTables,
        request: Request<Ticket>,
    ) -> Result<Response<Data>, Status> {
        let rows = relations::tables(&*session_of(&request)?, query).await;
        whole(&request, rows).await
    }

    async fn do_get_table_types(
        &self,
        _: CommandGetTableTypes,
        request: Request<Ticket>,
    ) -> Result<Response<Data>, Status> {
        whole(&request, relations::table_types()).await
    }

    async fn do_get_sql_info(
        &self,
        query: CommandGetSqlInfo,
        request: Request<Ticket>,
    ) -> Result<Response<Data>, Status> {
        let rows = query.into_builder(&facts::facts()?).build().map_err(Status::from);
        whole(&request, rows).await
    }

    async fn do_get_primary_keys(
        &self,
        query: CommandGetPrimaryKeys,
        request: Request<Ticket>,
    ) -> Result<Response<Data>, Status> {
        let rows = keys::primary(&*session_of(&request)?, query).await;
        whole(&request, rows).await
    }

    async fn do_get_exported_keys(
        &self,
        _: CommandGetExportedKeys,
        request: Request<Ticket>,
    ) -> Result<Response<Data>, Status> {
        whole(&request, Ok(keys::foreign())).await
    }

    async fn do_get_imported_keys(
        &self,
        _: CommandGetImportedKeys,
        request: Request<Ticket>,
    ) -> Result<Response<Data>, Status> {
        whole(&request, Ok(keys::foreign())).await
    }

    async fn do_get_cross_reference(
        &self,
        _: CommandGetCrossReference,
        request: Request<Ticket>,
    ) -> Result<Response<Data>, Status> {
        whole(&request, Ok(keys::foreign())).await
    }

    async fn do_get_xdbc_type_info(
        &self,
        query: CommandGetXdbcTypeInfo,
        request: Request<Ticket>,
    ) -> Result<Response<Data>, Status> {
        let rows = types::types()?.record_batch(query.data_type).map_err(Status::from);
        whole(&request, rows).await
    }

    async fn do_put_error_callback(
        &self,
        _: Request<PeekableFlightDataStream>,
        error: DoPutError,
    ) -> Result<Response<<Self as FlightService>::DoPutStream>, Status> {
        Err(status::bad(format!("what is sent begins with a command: {error}")))
    }

    async fn do_put_statement_update(
        &self,
        command: CommandStatementUpdate,
        request: Request<PeekableFlightDataStream>,
    ) -> Result<i64, Status> {
        let session = session_of(&request)?;
        let _use = session.enter()?;
        let transaction = transaction(command.transaction_id.as_deref())?;
        session.counted(update(&session, command.query, transaction)).await
    }

    async fn do_put_statement_ingest(
        &self,
        command: CommandStatementIngest,
        request: Request<PeekableFlightDataStream>,
    ) -> Result<i64, Status> {
        let session = session_of(&request)?;
        let _use = session.enter()?;
        let transaction = transaction(command.transaction_id.as_deref())?;
        session.counted(ingest(&session, transaction, &command, request.into_inner())).await
    }

    async fn do_put_prepared_statement_query(
        &self,
        command: CommandPreparedStatementQuery,
        request: Request<PeekableFlightDataStream>,
    ) -> Result<DoPutPreparedStatementResult, Status> {
        let session = session_of(&request)?;
        let _use = session.enter()?;
        let handle = command.prepared_statement_handle;
        let statement = session.prepared.get(&handle)?;
        let wanted = statement.prepared.description().parameters.len();
        let limit = self.shared.registry.limits().message_bytes;
        let incoming = Incoming::new(request.into_inner(), limit);
        let values = parameters::read(incoming, wanted, limit).await?;
        session.prepared.bind(&handle, values, limit)?;
        Ok(DoPutPreparedStatementResult { prepared_statement_handle: Some(handle) })
    }

    async fn do_put_prepared_statement_update(
        &self,
        command: CommandPreparedStatementUpdate,
        request: Request<PeekableFlightDataStream>,
    ) -> Result<i64, Status> {
        let session = session_of(&request)?;
        let _use = session.enter()?;
        let statement = session.prepared.get(&command.prepared_statement_handle)?;
        session.counted(update_prepared(&session, statement, request.into_inner())).await
    }

    async fn do_action_create_prepared_statement(
        &self,
        query: ActionCreatePreparedStatementRequest,
        request: Request<Action>,
    ) -> Result<ActionCreatePreparedStatementResult, Status> {
        let session = session_of(&request)?;
        let _use = session.enter()?;
        let transaction = transaction(query.transaction_id.as_deref())?;
        prepare(&session, query.query, transaction).await
    }

    async fn do_action_close_prepared_statement(
        &self,
        query: ActionClosePreparedStatementRequest,
        request: Request<Action>,
    ) -> Result<(), Status> {
        session_of(&request)?.prepared.remove(&query.prepared_statement_handle);
        Ok(())
    }

    async fn do_action_begin_transaction(
        &self,
        _: ActionBeginTransactionRequest,
        request: Request<Action>,
    ) -> Result<ActionBeginTransactionResult, Status> {
        let session = session_of(&request)?;
        let _use = session.enter()?;
        let id = session.begin_transaction().await?;
        Ok(ActionBeginTransactionResult { transaction_id: id.bytes().into() })
    }

    async fn do_action_end_transaction(
        &self,
        query: ActionEndTransactionRequest,
        request: Request<Action>,
    ) -> Result<(), Status> {
        let session = session_of(&request)?;
        let _use = session.enter()?;
        let id = transaction(Some(&query.transaction_id))?;
        let id = id.ok_or_else(no_transaction)?;
        match query.action() {
            EndTransaction::Commit => session.end_transaction(id, true).await,
            EndTransaction::Rollback => session.end_transaction(id, false).await,
            EndTransaction::Unspecified => {
                Err(status::bad("a transaction is committed or rolled back"))
            }
        }
    }

    async fn do_action_cancel_query(
        &self,
        query: ActionCancelQueryRequest,
        request: Request<Action>,
    ) -> Result<ActionCancelQueryResult, Status> {
        let session = session_of(&request)?;
        let info = FlightInfo::decode(&*query.info).map_err(|error| {
            status::bad(format!("the statement to cancel cannot be read: {error}"))
        })?;
        // Its results have the numbers of those of Flight's own call.
        let result = actions::cancel(&session, &info)?.into();
        Ok(ActionCancelQueryResult { result })
    }

    async fn do_action_fallback(
        &self,
        request: Request<Action>,
    ) -> Result<Response<<Self as FlightService>::DoActionStream>, Status> {
        let session = session_of(&request)?;
        let body = actions::act(self, &session, request.into_inner()).await?;
        let answer = arrow_flight::Result { body: body.into() };
        Ok(Response::new(Box::pin(stream::iter([Ok(answer)]))))
    }

    async fn list_custom_actions(&self) -> Option<Vec<Result<ActionType, Status>>> {
        Some(
            actions::LIST
                .iter()
                .map(|(name, description)| {
                    Ok(ActionType {
                        r#type: (*name).to_owned(),
                        description: (*description).to_owned(),
                    })
                })
                .collect(),
        )
    }

    async fn register_sql_info(&self, _: i32, _: &SqlInfo) {}

    async fn get_flight_info_fallback(
        &self,
        command: arrow_flight::sql::Command,
        _: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        Err(unknown(command.type_url()))
    }

    async fn do_get_fallback(
        &self,
        _: Request<Ticket>,
        message: Any,
    ) -> Result<Response<Data>, Status> {
        Err(unknown(&message.type_url))
    }
}
