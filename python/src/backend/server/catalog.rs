//! What a server has, by SQL.

use std::collections::BTreeMap;

use alluvium::name::{split, written};
use alluvium_client::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use alluvium_client::arrow::compute::cast;
use alluvium_client::arrow::datatypes::{DataType, Int64Type, SchemaRef};
use alluvium_client::{Client, Error};

use super::pool::Server;
use crate::backend::TableColumns;
use crate::failure::{Failure, Fallible};
use crate::info::RelationInfo;

/// The columns of a table, and those of its primary key.
pub(super) fn table(server: &Server, name: &str) -> Fallible<TableColumns> {
    let (schema, primary_key, kind) = server.with(async |client| {
        let schema = columns(client, name).await?;
        let sql = "SELECT kind FROM alluvium.relations WHERE schema = $1 AND relation = $2";
        let kind = first_text(&of_relation(client, sql, name).await?);
        Ok((schema, primary_key(client, name).await?, kind))
    })?;
    match kind.as_deref() {
        Some("table") => Ok(TableColumns { name: name.to_owned(), schema, primary_key }),
        _ => {
            let message = format!("\"{name}\" is no table, and takes no rows");
            Err(Failure {
                sqlstate: Some("42809".to_owned()),
                ..Failure::new("ProgrammingError", message)
            })
        }
    }
}

/// The columns of a relation.
pub(super) async fn columns(client: &Client, name: &str) -> Result<SchemaRef, Error> {
    // To its end: who drops a result before cancels the statement.
    let sql = format!("SELECT * FROM {} LIMIT 0", written(name));
    let rows = client.query_typed(&sql, &[]).await?;
    Ok(rows.collect().await?.schema())
}

/// The columns of the primary key of a table, from zero on; none of another relation.
pub(super) async fn primary_key(client: &Client, name: &str) -> Result<Vec<usize>, Error> {
    let sql = "SELECT positions FROM alluvium.constraints
        WHERE kind = 'primary key' AND enforced AND schema = $1 AND relation = $2";
    let rows = of_relation(client, sql, name).await?;
    if rows.num_rows() == 0 {
        return Ok(Vec::new());
    }
    let positions = cast(rows.column(0), &DataType::new_list(DataType::Int64, true))?;
    let positions = positions.as_list::<i32>().value(0);
    let positions = positions.as_primitive::<Int64Type>().values();
    Ok(positions.iter().filter_map(|place| usize::try_from(place - 1).ok()).collect())
}

/// The columns by which a relation that is no table with a primary key finds rows, by their names with commas between them; `None` if it keeps no rows.
pub(super) async fn key_of_view(client: &Client, name: &str) -> Result<Option<String>, Error> {
    let sql = "SELECT CASE r.kind WHEN 'table' THEN '' WHEN 'materialized view' THEN coalesce(a.key, '') END AS key
        FROM alluvium.relations r LEFT JOIN alluvium.arrangements a ON a.view = r.name AND a.operator = 'Contents'
        WHERE r.schema = $1 AND r.relation = $2 AND r.kind <> 'index'";
    let rows = of_relation(client, sql, name).await?;
    Ok(first_text(&rows))
}

/// The rows of a query of the schema and the name of a relation.
async fn of_relation(client: &Client, sql: &str, name: &str) -> Result<RecordBatch, Error> {
    let (schema, relation) = split(name);
    client.query(sql, &[&schema, &relation]).await?.collect().await
}

/// The text of the first row.
pub(super) fn first_text(rows: &RecordBatch) -> Option<String> {
    texts(rows.columns().first()?).into_iter().next().flatten()
}

/// All tables and views.
pub(super) fn relations(server: &Server) -> Fallible<Vec<RelationInfo>> {
    server.with(async |client| {
        let sql = "SELECT schema, relation, name, kind, definition, CASE WHEN state = 'failed' THEN reason END AS failed
            FROM alluvium.relations WHERE kind <> 'index' ORDER BY name";
        let rows = read(client, sql).await?;
        let [schemas, relations, names, kinds, definitions, failed] = all_texts(&rows);
        let sql = "SELECT schema, relation, name, type FROM alluvium.columns ORDER BY schema, relation, position";
        let mut columns = pairs(&read(client, sql).await?);
        let sql = "SELECT schema, relation, unnest(columns) AS name FROM alluvium.constraints WHERE kind = 'primary key' AND enforced";
        let mut keys = pairs(&read(client, sql).await?);
        let described = (0..rows.num_rows()).map(|row| {
            let place = (schemas[row].clone(), relations[row].clone());
            let (columns, types) =
                columns.remove(&place).unwrap_or_default().into_iter().unzip();
            let primary_key = keys.remove(&place).unwrap_or_default();
            RelationInfo {
                name: names[row].clone().unwrap_or_default(),
                kind: kinds[row].clone().unwrap_or_default(),
                columns,
                types,
                primary_key: primary_key.into_iter().map(|(name, _)| name).collect(),
                sql: definitions[row].clone().unwrap_or_default(),
                failed: failed[row].clone(),
            }
        });
        Ok(described.collect())
    })
}

/// The names of the materialized views that rows can be read of.
pub(super) fn views(server: &Server) -> Fallible<Vec<String>> {
    server.with(async |client| {
        let sql = "SELECT name FROM alluvium.relations WHERE kind = 'materialized view' AND state <> 'failed' ORDER BY name";
        let rows = read(client, sql).await?;
        Ok(texts(rows.column(0)).into_iter().flatten().collect())
    })
}

/// The schema and the name of a relation.
type Place = (Option<String>, Option<String>);

/// The texts after the first two columns, by the relation that these name.
fn pairs(rows: &RecordBatch) -> BTreeMap<Place, Vec<(String, String)>> {
    let columns: Vec<_> = rows.columns().iter().map(texts).collect();
    let mut all: BTreeMap<Place, Vec<(String, String)>> = BTreeMap::new();
    for row in 0..rows.num_rows() {
        let text = |column: usize| columns.get(column).and_then(|texts| texts[row].clone());
        let pair = (text(2).unwrap_or_default(), text(3).unwrap_or_default());
        all.entry((text(0), text(1))).or_default().push(pair);
    }
    all
}

async fn read(client: &Client, sql: &str) -> Result<RecordBatch, Error> {
    client.query(sql, &[]).await?.collect().await
}

fn all_texts<const N: usize>(rows: &RecordBatch) -> [Vec<Option<String>>; N] {
    std::array::from_fn(|column| texts(rows.column(column)))
}

fn texts(column: &ArrayRef) -> Vec<Option<String>> {
    match column.as_string_opt::<i32>() {
        Some(texts) => texts.iter().map(|text| text.map(str::to_owned)).collect(),
        None => vec![None; column.len()],
    }
}
