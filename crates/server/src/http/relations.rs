//! `GET /v1/relations`, and the rows of one.

use std::sync::Arc;

use alluvium::{Session, Value};
use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::Response;

use super::answer::{Begun, begin, respond};
use super::connection::Connection;
use super::encoder::Format;
use super::problem::Problem;
use super::relation::{Path, quoted};
use super::service::Http;
use crate::identity::Identity;

/// The relations that the client may see.
const RELATIONS: &str =
    "SELECT name, kind, state FROM alluvium.relations WHERE kind <> 'index' ORDER BY name";

/// The parameter that is no column.
const LIMIT: &str = "limit";

/// Lists relations.
pub(super) async fn relations(
    State(http): State<Arc<Http>>,
    Extension(connection): Extension<Arc<Connection>>,
    Extension(identity): Extension<Identity>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let format = Format::wanted(&headers)?;
    let mut caller = http.caller(&identity, &connection)?;
    let begun = caller.call(move |session| select(session, RELATIONS, &[], format)).await?;
    Ok(respond(caller, begun))
}

/// The rows of a relation, all or those whose columns have these values.
pub(super) async fn rows(
    State(http): State<Arc<Http>>,
    Extension(connection): Extension<Arc<Connection>>,
    Extension(identity): Extension<Identity>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let format = Format::wanted(&headers)?;
    let (sql, values) = query(&Path::of(&uri)?.relation.sql, uri.query().unwrap_or_default())?;
    let mut caller = http.caller(&identity, &connection)?;
    let begun = caller.call(move |session| select(session, &sql, &values, format)).await;
    Ok(respond(caller, begun.map_err(Problem::of_path)?))
}

/// The query of a relation with these parameters: the columns and the values that they have, and `limit`.
fn query(relation: &str, parameters: &str) -> Result<(String, Vec<Value>), Problem> {
    let (mut conditions, mut values, mut limit) = (Vec::new(), Vec::new(), None);
    for (name, value) in form_urlencoded::parse(parameters.as_bytes()) {
        if name == LIMIT {
            let rows: u64 = value.parse().map_err(|_| {
                Problem::bad(format!("\"limit\" is a number of rows, and not \"{value}\""))
            })?;
            if limit.replace(rows).is_some() {
                return Err(Problem::bad("\"limit\" is given twice"));
            }
            continue;
        }
        values.push(Value::from(&*value));
        conditions.push(format!("{} = ${}", quoted(&name), values.len()));
    }
    let mut sql = format!("SELECT * FROM {relation}");
    if !conditions.is_empty() {
        sql += " WHERE ";
        sql += &conditions.join(" AND ");
    }
    if let Some(limit) = limit {
        sql += &format!(" LIMIT {limit}");
    }
    Ok((sql, values))
}

fn select(
    session: &mut Session,
    sql: &str,
    values: &[Value],
    format: Format,
) -> Result<Begun, Problem> {
    let outcome = session.execute_with(sql, values).map_err(|error| Problem::of(&error))?;
    begin(outcome, "SELECT", format)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_columns_and_their_values() {
        let sql = |parameters: &str| query("t", parameters).map(|(sql, _)| sql).ok();
        assert_eq!(sql("").as_deref(), Some("SELECT * FROM t"));
        let expected = "SELECT * FROM t WHERE \"a\" = $1 AND \"b\"\"; --\" = $2 LIMIT 3";
        assert_eq!(sql("a=1&b%22;+--=x&limit=3").as_deref(), Some(expected));
        assert_eq!((sql("limit=-1"), sql("limit=1&limit=2"), sql("limit=")), (None, None, None));
    }
}
