//! What there is, as clients list it.

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{DataType, Schema};
use arrow::ipc::convert::try_schema_from_ipc_buffer;
use arrow_flight::sql::{
    CommandGetDbSchemas, CommandGetImportedKeys, CommandGetPrimaryKeys, CommandGetTables,
    CommandGetXdbcTypeInfo, SqlInfo,
};

use super::client::{Door, fetch};

const SQL: &str = "CREATE SCHEMA s; CREATE TABLE s.item (id BIGINT, line INTEGER, name VARCHAR NOT NULL, PRIMARY KEY (line, id));
    CREATE MATERIALIZED VIEW names AS SELECT name FROM s.item; CREATE TABLE other (a BIGINT)";

fn texts(batches: &[RecordBatch], column: &str) -> Vec<String> {
    let columns = batches.iter().filter_map(|batch| batch.column_by_name(column));
    let texts = columns.flat_map(|column| column.as_string::<i32>().iter().flatten());
    texts.map(str::to_owned).collect()
}

fn door() -> Door {
    let door = Door::open();
    door.engine.execute(SQL).expect("tables");
    door
}

#[test]
fn tables_are_listed_with_their_columns() {
    let door = door();
    door.with_client(async |client| {
        let info = client.get_catalogs().await.expect("an answer");
        let found = fetch(client, info).await.expect("catalogs");
        assert_eq!(texts(&found, "catalog_name"), ["alluvium"]);
        let request = CommandGetDbSchemas { catalog: None, db_schema_filter_pattern: None };
        let info = client.get_db_schemas(request).await.expect("an answer");
        let schemas = texts(&fetch(client, info).await.expect("schemas"), "db_schema_name");
        assert!(
            ["public", "s"].iter().all(|name| schemas.contains(&(*name).to_owned())),
            "{schemas:?}"
        );
        let request = CommandGetTables { include_schema: true, ..Default::default() };
        let info = client.get_tables(request).await.expect("an answer");
        let told = info.clone().try_decode_schema().expect("columns");
        let found = fetch(client, info).await.expect("tables");
        assert_eq!(found[0].schema().as_ref(), &told);
        assert_eq!(texts(&found, "table_name"), ["names", "other", "item"]);
        assert_eq!(texts(&found, "table_type"), ["MATERIALIZED VIEW", "TABLE", "TABLE"]);
        let columns = found[0].column_by_name("table_schema").expect("columns").as_binary::<i32>();
        let of_item: Schema = try_schema_from_ipc_buffer(columns.value(2)).expect("columns");
        assert_eq!(of_item.field(1).data_type(), &DataType::Int32);
        assert!(!of_item.field(2).is_nullable());
        let request = CommandGetTables {
            table_name_filter_pattern: Some("n%".to_owned()),
            table_types: vec!["MATERIALIZED VIEW".to_owned()],
            ..Default::default()
        };
        let info = client.get_tables(request).await.expect("an answer");
        assert_eq!(texts(&fetch(client, info).await.expect("tables"), "table_name"), ["names"]);
        let info = client.get_table_types().await.expect("an answer");
        assert_eq!(texts(&fetch(client, info).await.expect("types"), "table_type").len(), 4);
    });
}

#[test]
fn keys_are_listed_in_their_order() {
    let door = door();
    door.with_client(async |client| {
        let request = CommandGetPrimaryKeys {
            catalog: None,
            db_schema: Some("s".to_owned()),
            table: "item".to_owned(),
        };
        let info = client.get_primary_keys(request).await.expect("an answer");
        let found = fetch(client, info).await.expect("keys");
        assert_eq!(texts(&found, "column_name"), ["line", "id"]);
        let request =
            CommandGetImportedKeys { catalog: None, db_schema: None, table: "item".to_owned() };
        let info = client.get_imported_keys(request).await.expect("an answer");
        let found = fetch(client, info).await.expect("keys");
        assert_eq!(found.iter().map(RecordBatch::num_rows).sum::<usize>(), 0);
    });
}

#[test]
fn the_server_says_what_it_can() {
    let door = door();
    door.with_client(async |client| {
        let info =
            client.get_sql_info(vec![SqlInfo::FlightSqlServerName]).await.expect("an answer");
        assert_eq!(fetch(client, info).await.expect("facts")[0].num_rows(), 1);
        let info = client.get_sql_info(Vec::new()).await.expect("an answer");
        assert!(fetch(client, info).await.expect("facts")[0].num_rows() > 20);
        let request = CommandGetXdbcTypeInfo { data_type: None };
        let info = client.get_xdbc_type_info(request).await.expect("an answer");
        let types = texts(&fetch(client, info).await.expect("types"), "type_name");
        assert!(types.contains(&"DECIMAL".to_owned()), "{types:?}");
    });
}
