//! Types that columns of the catalog have on the wire, and no columns of users.

use tokio_postgres::types::Type;
use tokio_postgres::{Client, SimpleQueryMessage};

use super::served::served;

/// The text of the first value of an answer.
async fn text(client: &Client, sql: &str) -> String {
    let messages = client.simple_query(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    let row = messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or("NULL").to_owned()),
        _ => None,
    });
    row.unwrap_or_else(|| panic!("{sql} has no rows"))
}

#[test]
fn columns_of_the_catalog_are_oids() {
    served().with_client(async |client| {
        client.batch_execute("CREATE TABLE t (k INTEGER PRIMARY KEY)").await.expect("a table");
        let query = client.prepare("SELECT oid, relname FROM pg_class WHERE oid = $1").await;
        let query = query.expect("a query");
        assert_eq!(query.params(), [Type::OID]);
        assert_eq!(*query.columns()[0].type_(), Type::OID);
        let row = client.query_one("SELECT 't'::regclass::oid", &[]).await.expect("an OID");
        let oid = row.get::<_, u32>(0);
        let row = client.query_one(&query, &[&oid]).await.expect("a row");
        assert_eq!((row.get::<_, u32>(0), row.get::<_, &str>(1)), (oid, "t"));
        let query = client
            .prepare(
                "SELECT array_agg(c.oid) FROM pg_catalog.pg_class c WHERE c.oid = ANY($1::oid[])",
            )
            .await
            .expect("a query");
        assert_eq!(query.params(), [Type::OID_ARRAY]);
        let row = client.query_one(&query, &[&vec![oid, 1]]).await.expect("a row");
        assert_eq!(*row.columns()[0].type_(), Type::OID_ARRAY);
        assert_eq!(row.get::<_, Vec<u32>>(0), [oid]);
    });
}

#[test]
fn columns_of_users_are_numbers() {
    served().with_client(async |client| {
        client.batch_execute("CREATE TABLE t (k UINTEGER PRIMARY KEY)").await.expect("a table");
        client.execute("INSERT INTO t VALUES ($1)", &[&4_000_000_000_i64]).await.expect("a row");
        let row = client.query_one("SELECT k FROM t WHERE k = $1", &[&4_000_000_000_i64]).await;
        assert_eq!(row.expect("a row").get::<_, i64>(0), 4_000_000_000);
    });
}

#[test]
fn keys_of_indexes_are_vectors() {
    served().with_client(async |client| {
        client
            .batch_execute("CREATE TABLE t (a INTEGER, b INTEGER, c INTEGER, PRIMARY KEY (c, a))")
            .await
            .expect("a table");
        let sql = "SELECT indkey, indclass, indkey[0], conkey FROM pg_index, pg_constraint WHERE contype = 'p'";
        let query = client.prepare(sql).await.expect("a query");
        let types: Vec<&Type> = query.columns().iter().map(|column| column.type_()).collect();
        assert_eq!(types[..2], [&Type::INT2_VECTOR, &Type::OID_VECTOR]);
        assert_eq!(*types[3], Type::INT2_ARRAY);
        assert_eq!(text(client, "SELECT indkey FROM pg_index").await, "3 1");
        assert_eq!(text(client, "SELECT indclass FROM pg_index i").await, "0 0");
        assert_eq!(text(client, "SELECT conkey FROM pg_constraint").await, "{3,1}");
    });
}

#[test]
fn copies_of_the_catalog_have_oids() {
    use futures::TryStreamExt;
    served().with_client(async |client| {
        let sql = "COPY (SELECT oid FROM pg_type WHERE typname = 'int4') TO STDOUT (FORMAT binary)";
        let data = client.copy_out(sql).await.expect("a copy");
        let data: Vec<bytes::Bytes> = data.try_collect().await.expect("data");
        let data = data.concat();
        assert!(data.windows(8).any(|part| part == [0, 0, 0, 4, 0, 0, 0, 23]), "{data:?}");
    });
}
