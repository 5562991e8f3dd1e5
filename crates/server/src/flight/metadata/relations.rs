//! Catalogs, schemas, tables, and kinds of tables.

use std::sync::Arc;

use alluvium::{Outcome, Session as EngineSession};
use arrow::array::{AsArray, RecordBatch, StringArray};
use arrow::datatypes::{Schema, SchemaRef};
use arrow_flight::sql::metadata::{GetDbSchemasBuilder, GetTablesBuilder};
use arrow_flight::sql::{
    CommandGetCatalogs, CommandGetDbSchemas, CommandGetTableTypes, CommandGetTables,
};
use tonic::Status;

use super::CATALOG;
use crate::flight::session::Session;
use crate::flight::status::{self, unwritten};
use crate::http::quoted;
use crate::shared::Shared;

/// The kinds of relations that have rows.
const KINDS: [&str; 4] = ["LOCAL TEMPORARY", "MATERIALIZED VIEW", "TABLE", "VIEW"];

/// The catalog.
pub(in crate::flight) fn catalogs(command: CommandGetCatalogs) -> Result<RecordBatch, Status> {
    let mut catalogs = command.into_builder();
    catalogs.append(CATALOG);
    catalogs.build().map_err(Status::from)
}

/// The kinds of tables.
pub(in crate::flight) fn table_types() -> Result<RecordBatch, Status> {
    let mut types = CommandGetTableTypes {}.into_builder();
    KINDS.iter().for_each(|kind| types.append(kind));
    types.build().map_err(Status::from)
}

/// The schemas that a client asks for.
pub(in crate::flight) async fn schemas(
    session: &Session,
    command: CommandGetDbSchemas,
) -> Result<RecordBatch, Status> {
    let found = session.call(None, |session| {
        rows(session, "SELECT schema_name FROM information_schema.schemata ORDER BY 1")
    });
    let mut schemas: GetDbSchemasBuilder = command.into_builder();
    for batch in found.await?? {
        for name in texts(&batch, 0)?.iter().flatten() {
            schemas.append(CATALOG, name);
        }
    }
    schemas.build().map_err(Status::from)
}

/// A relation that has rows.
struct Relation {
    schema: String,
    name: String,
    kind: &'static str,
    columns: SchemaRef,
}

/// The tables and views that a client asks for, if need be with their columns.
pub(in crate::flight) async fn tables(
    session: &Session,
    command: CommandGetTables,
) -> Result<RecordBatch, Status> {
    let (with_columns, shared) = (command.include_schema, session.shared.clone());
    let found = session.call(None, move |session| relations(session, &shared, with_columns));
    let mut tables: GetTablesBuilder = command.into_builder();
    for Relation { schema, name, kind, columns } in found.await?? {
        tables.append(CATALOG, schema, name, kind, &columns).map_err(Status::from)?;
    }
    tables.build().map_err(Status::from)
}

fn relations(
    session: &mut EngineSession,
    shared: &Shared,
    with_columns: bool,
) -> Result<Vec<Relation>, Status> {
    let sql =
        "SELECT schema, relation, CASE WHEN temporary THEN 'temporary table' ELSE kind END, name
        FROM alluvium.relations WHERE kind <> 'index' ORDER BY 1, 2";
    let mut found = Vec::new();
    for batch in rows(session, sql)? {
        let [schemas, names, kinds, full] = [0, 1, 2, 3].map(|place| texts(&batch, place).cloned());
        let (schemas, names, kinds, full) = (schemas?, names?, kinds?, full?);
        for row in 0..batch.num_rows() {
            let kind = match kinds.value(row) {
                "temporary table" => KINDS[0],
                "materialized view" => KINDS[1],
                "table" => KINDS[2],
                _ => KINDS[3],
            };
            let (schema, name) = (schemas.value(row).to_owned(), names.value(row).to_owned());
            let columns = match with_columns {
                true => columns(session, shared, full.value(row), (&schema, &name)),
                false => Arc::new(Schema::empty()),
            };
            found.push(Relation { schema, name, kind, columns });
        }
    }
    Ok(found)
}

/// The columns of a relation; none of one that has gone meanwhile.
fn columns(
    session: &mut EngineSession,
    shared: &Shared,
    full: &str,
    (schema, name): (&str, &str),
) -> SchemaRef {
    if let Ok(relation) = shared.relation(full) {
        return relation.schema;
    }
    // A temporary one is known to its session alone.
    let sql = format!("SELECT * FROM {}.{}", quoted(schema), quoted(name));
    let described = session.describe(&sql).ok().and_then(|described| described.columns);
    described.unwrap_or_else(|| Arc::new(Schema::empty()))
}

/// The rows of a query of the server's own.
pub(in crate::flight) fn rows(
    session: &mut EngineSession,
    sql: &str,
) -> Result<Vec<RecordBatch>, Status> {
    let failed = |error: alluvium::Error| status::of(&error);
    match session.execute_with(sql, &[]).map_err(failed)? {
        Outcome::Rows(rows) => rows.collect::<Result<_, _>>().map_err(failed),
        _ => Ok(Vec::new()),
    }
}

/// A column of texts.
pub(in crate::flight) fn texts(batch: &RecordBatch, place: usize) -> Result<&StringArray, Status> {
    let column = batch.columns().get(place).and_then(|column| column.as_string_opt::<i32>());
    column.ok_or_else(|| {
        unwritten(arrow::error::ArrowError::SchemaError("a column is none of texts".to_owned()))
    })
}
