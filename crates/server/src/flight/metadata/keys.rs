//! Primary keys. There are no foreign ones.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int32Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow_flight::sql::CommandGetPrimaryKeys;
use tonic::Status;

use super::CATALOG;
use super::relations::{rows, texts};
use crate::flight::session::Session;
use crate::flight::status::unwritten;

/// The columns of an answer about primary keys.
pub(in crate::flight) fn primary_columns() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("catalog_name", DataType::Utf8, true),
        Field::new("db_schema_name", DataType::Utf8, true),
        Field::new("table_name", DataType::Utf8, false),
        Field::new("column_name", DataType::Utf8, false),
        Field::new("key_sequence", DataType::Int32, false),
        Field::new("key_name", DataType::Utf8, true),
    ]))
}

/// The columns of an answer about foreign keys.
pub(in crate::flight) fn foreign_columns() -> SchemaRef {
    let text = |name, is_nullable| Field::new(name, DataType::Utf8, is_nullable);
    Arc::new(Schema::new(vec![
        text("pk_catalog_name", true),
        text("pk_db_schema_name", true),
        text("pk_table_name", false),
        text("pk_column_name", false),
        text("fk_catalog_name", true),
        text("fk_db_schema_name", true),
        text("fk_table_name", false),
        text("fk_column_name", false),
        Field::new("key_sequence", DataType::Int32, false),
        text("fk_key_name", true),
        text("pk_key_name", true),
        Field::new("update_rule", DataType::UInt8, false),
        Field::new("delete_rule", DataType::UInt8, false),
    ]))
}

/// The foreign keys: none.
pub(in crate::flight) fn foreign() -> RecordBatch {
    RecordBatch::new_empty(foreign_columns())
}

/// A column of a primary key.
struct Key {
    schema: String,
    column: String,
    place: i32,
    name: String,
}

/// The primary key of a table.
pub(in crate::flight) async fn primary(
    session: &Session,
    command: CommandGetPrimaryKeys,
) -> Result<RecordBatch, Status> {
    let is_here = command.catalog.as_deref().is_none_or(|catalog| catalog == CATALOG);
    let found = session.call(None, |session| {
        rows(session, "SELECT schema, relation, name, columns FROM alluvium.constraints WHERE kind = 'primary key'")
    });
    let mut keys: Vec<Key> = Vec::new();
    for batch in found.await?? {
        let (schemas, relations, names) = (texts(&batch, 0)?, texts(&batch, 1)?, texts(&batch, 2)?);
        let Some(columns) = batch.column(3).as_list_opt::<i32>() else { continue };
        for row in 0..batch.num_rows() {
            let is_of_schema =
                command.db_schema.as_deref().is_none_or(|schema| schema == schemas.value(row));
            if !is_here || !is_of_schema || relations.value(row) != command.table {
                continue;
            }
            let of_key = columns.value(row);
            let of_key = of_key.as_string_opt::<i32>().into_iter().flatten().flatten();
            keys.extend(of_key.zip(1..).map(|(column, place)| Key {
                schema: schemas.value(row).to_owned(),
                column: column.to_owned(),
                place,
                name: names.value(row).to_owned(),
            }));
        }
    }
    let text = |of: for<'a> fn(&'a Key) -> &'a str| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(keys.iter().map(of)))
    };
    let columns: Vec<ArrayRef> = vec![
        text(|_| CATALOG),
        text(|key| &key.schema),
        Arc::new(StringArray::from(vec![command.table; keys.len()])),
        text(|key| &key.column),
        Arc::new(Int32Array::from_iter_values(keys.iter().map(|key| key.place))),
        text(|key| &key.name),
    ];
    RecordBatch::try_new(primary_columns(), columns).map_err(unwritten)
}
