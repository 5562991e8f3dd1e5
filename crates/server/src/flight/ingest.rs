//! Bulk ingestion: rows that a client sends into a table, which may be created for them.

use alluvium::unstable::SessionParts;
use alluvium::{Error, Session as EngineSession, parse};
use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use arrow_flight::sql::server::PeekableFlightDataStream;
use arrow_flight::sql::{CommandStatementIngest, TableExistsOption, TableNotExistOption};
use tonic::Status;

use super::answer::records;
use super::columns::{definition, exact};
use super::id::Id;
use super::incoming::{Incoming, Received, feed};
use super::metadata::CATALOG;
use super::session::Session;
use super::status;
use super::update::in_transaction;
use crate::http::{fitting, quoted};

/// What is done before rows are inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    /// Nothing: the table is there.
    Nothing,
    Create,
    CreateIfAbsent,
    /// The table is there, and is dropped.
    Replace,
    DropAndCreate,
}

/// An ingestion as a client asks for it.
struct Ingestion {
    /// The table as SQL names it.
    table: String,
    before: Before,
    is_temporary: bool,
}

impl Ingestion {
    fn of(command: &CommandStatementIngest) -> Result<Self, Status> {
        if command.table.is_empty() {
            return Err(status::bad("an ingestion names its table"));
        }
        if let Some(catalog) = &command.catalog
            && !catalog.is_empty()
            && catalog != CATALOG
        {
            return Err(status::status(
                tonic::Code::NotFound,
                "3D000",
                format!("there is no catalog \"{catalog}\": there is one, \"{CATALOG}\""),
            ));
        }
        let schema = command.schema.as_deref().filter(|schema| !schema.is_empty());
        if command.temporary && schema.is_some() {
            return Err(status::bad("a temporary table has no schema: leave it out"));
        }
        let table = match schema {
            Some(schema) => format!("{}.{}", quoted(schema), quoted(&command.table)),
            None => quoted(&command.table),
        };
        Ok(Self { table, before: before(command)?, is_temporary: command.temporary })
    }

    /// The statements that run before rows of these columns are inserted.
    fn statements(&self, columns: &Schema) -> Result<Vec<String>, Status> {
        let kind = if self.is_temporary { "TEMPORARY TABLE" } else { "TABLE" };
        let table = &self.table;
        let create = |absent: &str| {
            let definitions = columns.fields().iter().map(|field| {
                let of = definition(field.data_type()).map_err(|reason| {
                    status::unsupported(format!("the column \"{}\": {reason}", field.name()))
                })?;
                Ok::<_, Status>(format!("{} {of}", quoted(field.name())))
            });
            let definitions = definitions.collect::<Result<Vec<_>, _>>()?.join(", ");
            Ok::<_, Status>(format!("CREATE {kind} {absent}{table} ({definitions})"))
        };
        Ok(match self.before {
            Before::Nothing => Vec::new(),
            Before::Create => vec![create("")?],
            Before::CreateIfAbsent => vec![create("IF NOT EXISTS ")?],
            Before::Replace => vec![format!("DROP TABLE {table}"), create("")?],
            Before::DropAndCreate => vec![format!("DROP TABLE IF EXISTS {table}"), create("")?],
        })
    }
}

/// What a client wants of a table that is there, or is not.
fn before(command: &CommandStatementIngest) -> Result<Before, Status> {
    let Some(options) = &command.table_definition_options else { return Ok(Before::Nothing) };
    match (options.if_not_exist(), options.if_exists()) {
        (TableNotExistOption::Fail, TableExistsOption::Append) => Ok(Before::Nothing),
        (TableNotExistOption::Create, TableExistsOption::Fail) => Ok(Before::Create),
        (TableNotExistOption::Create, TableExistsOption::Append) => Ok(Before::CreateIfAbsent),
        (TableNotExistOption::Fail, TableExistsOption::Replace) => Ok(Before::Replace),
        (TableNotExistOption::Create, TableExistsOption::Replace) => Ok(Before::DropAndCreate),
        _ => Err(status::bad(
            "an ingestion says whether its table is created, and whether rows are appended to one that is there or replace it",
        )),
    }
}

/// Inserts the rows that a client sends, in the named transaction or in one of their own, and returns how many they were.
pub(super) async fn ingest(
    session: &Session,
    transaction: Option<Id>,
    command: &CommandStatementIngest,
    data: PeekableFlightDataStream,
) -> Result<i64, Status> {
    let ingestion = Ingestion::of(command)?;
    let limit = session.shared.registry.limits().message_bytes;
    let mut incoming = Incoming::new(data, limit);
    let columns = incoming.columns().await?;
    let columns = columns.ok_or_else(|| status::bad("an ingestion begins with its columns"))?;
    let statements = ingestion.statements(&columns)?;
    let table = ingestion.table;
    let run = async |received| {
        let run = move |session: &mut EngineSession| {
            in_transaction(session, |session| {
                for sql in &statements {
                    session.execute_with(sql, &[]).map_err(|error| status::of(&error))?;
                }
                copy(session, &table, &columns, received)
            })
        };
        session.call(transaction, run).await?
    };
    feed(incoming, run).await.map(records)
}

/// Inserts the rows that come, whose columns are those of the table by name; the error is in the words of who refused them.
fn copy(
    session: &mut EngineSession,
    table: &str,
    columns: &SchemaRef,
    mut received: Received,
) -> Result<u64, Status> {
    let names: Vec<_> = columns.fields().iter().map(|field| quoted(field.name())).collect();
    if names.is_empty() {
        return Err(status::bad("the rows that were sent have no columns"));
    }
    let sql = format!("COPY {table} ({}) FROM STDIN", names.join(", "));
    let failed = |error: Error| status::of(&error);
    let statement = parse(&sql).next().transpose().map_err(failed)?;
    let statement = statement.ok_or_else(|| status::bad("the rows have no statement"))?;
    let wanted = session.columns_from_client(&statement).map_err(failed)?;
    let mut refused = None;
    let copied = session.copy_from_client(&statement, &mut || {
        let rows = received.next().map_err(|status| {
            let error = Error::data(status.message());
            refused = Some(status);
            error
        })?;
        rows.map(|rows: RecordBatch| {
            exact(&rows)?;
            fitting(&rows, &wanted)
        })
        .transpose()
    });
    copied.map_err(|error| refused.unwrap_or_else(|| failed(error)))
}
