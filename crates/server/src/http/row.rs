//! `PUT` and `DELETE` of `/v1/relations/{table}/{key…}`: one row of a table with a primary key.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium::{Action, Outcome, Session, Value};
use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use serde_json::{Value as Json, json};

use super::answer::whole;
use super::body::Incoming;
use super::connection::Connection;
use super::media;
use super::problem::Problem;
use super::relation::{Path, quoted};
use super::request::value;
use super::service::Http;
use crate::identity::Identity;

/// A key: columns and their values, as texts.
type Key = Vec<(String, String)>;

/// Puts a row in the place of the one with its key, if there is one.
pub(super) async fn put(
    State(http): State<Arc<Http>>,
    Extension(connection): Extension<Arc<Connection>>,
    Extension(identity): Extension<Identity>,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    media::check_json(&headers)?;
    let path = Path::of(&uri)?;
    http.check_right(&identity, &[Action::Insert, Action::Update], &path.relation.name)?;
    let limit = http.shared.registry.limits().message_bytes;
    let body = Incoming::new(&headers, body, limit)?.collect().await?;
    let mut caller = http.caller(&identity, &connection)?;
    let engine = http.clone();
    let put = move |session: &mut Session| {
        let key = key_of(&engine, &path)?;
        let row: Json = serde_json::from_slice(&body)
            .map_err(|error| Problem::bad(format!("the body is no JSON: {error}")))?;
        let (columns, values) = columns(key, row)?;
        let places: Vec<_> = (1..=values.len()).map(|place| format!("${place}")).collect();
        let sql = format!(
            "INSERT OR REPLACE INTO {} ({}) VALUES ({})",
            path.relation.sql,
            columns.join(", "),
            places.join(", ")
        );
        change(session, &sql, &values)
    };
    let changed = caller.call(put).await.map_err(Problem::of_path)?;
    Ok(whole(StatusCode::OK, &changed))
}

/// Deletes the row with a key, if there is one.
pub(super) async fn delete(
    State(http): State<Arc<Http>>,
    Extension(connection): Extension<Arc<Connection>>,
    Extension(identity): Extension<Identity>,
    uri: Uri,
) -> Result<Response, Problem> {
    let path = Path::of(&uri)?;
    http.check_right(&identity, &[Action::Delete], &path.relation.name)?;
    let mut caller = http.caller(&identity, &connection)?;
    let engine = http.clone();
    let delete = move |session: &mut Session| {
        let key = key_of(&engine, &path)?;
        let conditions = key.iter().enumerate();
        let conditions: Vec<_> = conditions
            .map(|(place, (column, _))| format!("{} = ${}", quoted(column), place + 1))
            .collect();
        let sql = format!("DELETE FROM {} WHERE {}", path.relation.sql, conditions.join(" AND "));
        let values: Vec<Value> = key.iter().map(|(_, value)| value.as_str().into()).collect();
        change(session, &sql, &values)
    };
    let changed = caller.call(delete).await.map_err(Problem::of_path)?;
    Ok(whole(StatusCode::OK, &changed))
}

fn change(session: &mut Session, sql: &str, values: &[Value]) -> Result<Json, Problem> {
    match session.execute_with(sql, values).map_err(|error| Problem::of(&error))? {
        Outcome::Changed { rows, epoch, .. } => Ok(json!({ "rows": rows, "epoch": epoch })),
        _ => Ok(json!({})),
    }
}

/// The columns of the key of a table, with the values that a path has.
fn key_of(http: &Http, path: &Path) -> Result<Key, Problem> {
    let table = http.shared.relation(&path.relation.name).map_err(|error| Problem::of(&error))?;
    let (wanted, given) = (table.primary_key.len(), path.parts.len());
    if wanted == 0 {
        let detail = format!("\"{}\" has no primary key: use SQL to change its rows", table.name);
        return Err(Problem::bad(detail).with("sqlstate", "42P10".into()));
    }
    let column = |column: &usize| table.schema.field(*column).name().clone();
    let names: Vec<String> = table.primary_key.iter().map(column).collect();
    if wanted != given {
        let detail = format!("the path has {given} values of a key that is ({})", names.join(", "));
        return Err(Problem::bad(detail));
    }
    Ok(names.into_iter().zip(path.parts.iter().cloned()).collect())
}

/// The columns of a row, as SQL names them, and their values: those of the key, and the members of an object.
fn columns(key: Key, row: Json) -> Result<(Vec<String>, Vec<Value>), Problem> {
    let Json::Object(members) = row else {
        return Err(Problem::bad("the body is to be an object, with a member for each column"));
    };
    let mut columns: BTreeMap<String, Value> = BTreeMap::new();
    for (name, member) in &members {
        columns.insert(name.clone(), value(member)?);
    }
    for (name, text) in key {
        let is_other = match members.get(&name) {
            None => false,
            Some(Json::String(other)) => *other != text,
            Some(other) => {
                let other = other.to_string();
                other != text
            }
        };
        if is_other {
            let detail = format!("the column \"{name}\" of the body is not that of the path");
            return Err(Problem::bad(detail));
        }
        columns.insert(name, text.into());
    }
    let names = columns.keys().map(|name| quoted(name)).collect();
    Ok((names, columns.into_values().collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_the_key_of_its_path() {
        let key = || vec![("k".to_owned(), "1".to_owned())];
        let read = |row: Json| columns(key(), row).map(|(names, _)| names).ok();
        let names = |names: &[&str]| Some(names.iter().map(|name| quoted(name)).collect());
        assert_eq!(read(json!({})), names(&["k"]));
        assert_eq!(read(json!({ "v": 2, "k": 1 })), names(&["k", "v"]));
        assert_eq!(read(json!({ "k": "1", "a\"b": null })), names(&["a\"b", "k"]));
        assert_eq!(
            (read(json!({ "k": 2 })), read(json!([1])), read(json!(null))),
            (None, None, None)
        );
    }
}
