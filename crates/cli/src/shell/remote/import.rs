//! Files of this machine into tables of a server.
//!
//! An engine of this process reads the file into a table with the columns of the server's, as COPY does; or it finds the columns out, and
//! the server makes a table with them. Then COPY sends the rows.

use alluvium::arrow::datatypes::Schema;
use alluvium::name::{spelled, split};
use alluvium::unstable::type_name;
use alluvium::{Engine, Outcome};
use alluvium_client::Client;

use super::super::backend::{Answer, Failure, is_meant};
use super::catalog::{columns, quoted, read};
use super::wait::Waiting;

/// The table of the engine that reads the file.
const ROWS: &str = "\"import\"";

/// Reads a file into a table of a server, which is created if there is none.
pub(super) fn import<'a>(
    client: &Client,
    waiting: &Waiting,
    path: &str,
    table: &str,
) -> Result<Answer<'a>, Failure> {
    let known = waiting.wait(async {
        let names =
            read(client, "SELECT name FROM alluvium.relations WHERE kind = 'table'").await?;
        let [names] = columns(&names);
        match names.iter().find(|name| is_meant(table, name)) {
            Some(name) => definition(client, name).await.map(Some),
            None => Ok(None),
        }
    })?;
    let engine = alluvium_connect::formats(Engine::builder().workers(1)).open_in_memory()?;
    let path = quoted(path);
    let sql = match &known {
        Some(columns) => format!("CREATE TABLE {ROWS} ({columns}); COPY {ROWS} FROM {path}"),
        None => format!("CREATE TABLE {ROWS} FROM {path}"),
    };
    let outcomes = waiting.engine.watch(|| engine.execute(&sql))?;
    if known.is_none() {
        let create = format!("CREATE TABLE {table} ({})", listed(&engine)?);
        waiting.wait(client.execute_batch(&create))?;
    }
    let rows = waiting.engine.watch(|| engine.query(&format!("SELECT * FROM {ROWS}")))?;
    let sent = waiting.wait(async {
        let mut copy = client.copy_in(table, &[]).await?;
        for batch in &rows {
            copy.send(batch).await?;
        }
        copy.finish().await
    })?;
    let (refused, messages) = match outcomes.into_iter().next_back() {
        Some(Outcome::Copied { refused, messages, .. }) => (refused, messages),
        _ => (0, Vec::new()),
    };
    Ok(Answer::Copied { rows: sent, refused, messages })
}

/// The columns of a table of the server, with their types and defaults.
async fn definition(client: &Client, name: &str) -> alluvium_client::Result<String> {
    let (schema, relation) = split(name);
    let sql = "SELECT name, type, CASE WHEN sequence IS NULL THEN \"default\" END FROM alluvium.columns WHERE schema = $1 AND relation = $2 ORDER BY position";
    let rows = client.query(sql, &[&schema, &relation]).await?.collect().await?;
    let [names, types, defaults] = columns(&rows);
    let defined = names.iter().zip(types).zip(defaults).map(|((name, of), default)| {
        let default = if default.is_empty() { default } else { format!(" DEFAULT {default}") };
        format!("{} {of}{default}", spelled(name))
    });
    Ok(defined.collect::<Vec<_>>().join(", "))
}

/// The columns that the engine has found, with their types.
fn listed(engine: &Engine) -> Result<String, Failure> {
    let relations = engine.relations()?;
    let schema = relations.first().map(|relation| relation.schema.clone());
    let schema = schema.unwrap_or_else(|| Schema::empty().into());
    let defined = schema
        .fields()
        .iter()
        .map(|field| format!("{} {}", spelled(field.name()), type_name(field.data_type())));
    Ok(defined.collect::<Vec<_>>().join(", "))
}
