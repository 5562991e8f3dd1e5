//! `POST /v1/relations/{table}`: rows, one request a transaction.

use std::fs::File;
use std::io::{BufReader, Seek};
use std::sync::Arc;

use alluvium::unstable::SessionParts;
use alluvium::{Action, Error, Outcome, Refusal, Session, parse};
use arrow::array::{Array, RecordBatch};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::SchemaRef;
use arrow::ipc::reader::StreamReader;
use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use serde_json::{Value, json};

use super::answer::whole;
use super::arrow_stream::check_lengths;
use super::connection::Connection;
use super::keys::Key;
use super::problem::Problem;
use super::relation::{Path, Relation, quoted};
use super::service::Http;
use super::spool::{BODY, Spool};
use crate::identity::Identity;

/// How often a transaction is begun that others stand in the way of.
const TRIES: usize = 4;

/// Inserts the rows of a request into a table.
pub(super) async fn insert(
    State(http): State<Arc<Http>>,
    Extension(connection): Extension<Arc<Connection>>,
    Extension(identity): Extension<Identity>,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let table = Path::of(&uri)?.relation;
    http.check_right(&identity, &[Action::Insert], &table.name)?;
    let key = http.keys.take(&headers, identity.role().map(|role| &**role), &table.sql)?;
    let limit = http.shared.registry.limits().message_bytes;
    let spool = Spool::receive(&headers, body, limit).await?;
    let mut caller = http.caller(&identity, &connection)?;
    let engine = http.clone();
    let inserted = caller.call(move |session| run(&engine, session, &table, spool, key)).await;
    Ok(whole(StatusCode::OK, &inserted.map_err(Problem::of_path)?))
}

/// Inserts rows, unless a request with this key has done so before.
fn run(
    http: &Http,
    session: &mut Session,
    table: &Relation,
    mut spool: Spool,
    key: Option<Key>,
) -> Result<Value, Problem> {
    let before = || match &key {
        Some(key) => http.shared.committed(key.text()).map_err(|error| Problem::of(&error)),
        None => Ok(None),
    };
    let again = |epoch: u64| json!({ "rows": null, "epoch": epoch, "replayed": true });
    if let Some(epoch) = before()? {
        return Ok(again(epoch));
    }
    spool.decompress()?;
    session.set_base(spool.folder());
    session.set_private_files(spool.access());
    let mut tries = TRIES;
    loop {
        tries -= 1;
        if let Some(key) = &key {
            session.set_key(key.text());
        }
        match in_transaction(session, table, &spool) {
            Ok((rows, epoch)) => {
                return Ok(json!({ "rows": rows, "epoch": epoch, "replayed": false }));
            }
            Err(Unmade::Of(Error::Conflict { .. })) if tries > 0 => (),
            Err(unmade) => {
                // It may have been committed although its end is not known.
                return match before()? {
                    Some(epoch) => Ok(again(epoch)),
                    None => Err(unmade.into()),
                };
            }
        }
    }
}

/// Why rows were not inserted.
enum Unmade {
    Of(Error),
    Other(Problem),
}

impl From<Error> for Unmade {
    fn from(error: Error) -> Self {
        Self::Of(error)
    }
}

impl From<Unmade> for Problem {
    fn from(unmade: Unmade) -> Self {
        match unmade {
            Unmade::Of(error) => Self::of(&error),
            Unmade::Other(problem) => problem,
        }
    }
}

/// Inserts all rows, or none; returns how many, and the epoch.
fn in_transaction(
    session: &mut Session,
    table: &Relation,
    spool: &Spool,
) -> Result<(u64, Option<u64>), Unmade> {
    session.execute("BEGIN")?;
    let done = copy(session, table, spool).and_then(|rows| {
        session.execute("COMMIT")?;
        Ok((rows, session.committed()))
    });
    if done.is_err() && session.in_transaction() {
        session.execute("ROLLBACK")?;
    }
    done
}

fn copy(session: &mut Session, table: &Relation, spool: &Spool) -> Result<u64, Unmade> {
    let Some(options) = spool.kind.options() else { return copy_arrow(session, table, spool) };
    let sql = format!("COPY {} FROM '{BODY}' ({options})", table.sql);
    match session.execute_with(&sql, &[])? {
        Outcome::Copied { rows, refused: 0, .. } => Ok(rows),
        Outcome::Copied { refused, messages, .. } => {
            Err(Unmade::Other(refusal(refused, &messages)))
        }
        _ => Err(Unmade::Other(Problem::bad("rows can be inserted into tables only"))),
    }
}

/// The problem of rows that are none of the table.
fn refusal(refused: u64, messages: &[Refusal]) -> Problem {
    let each = |refusal: &Refusal| json!({ "line": refusal.line, "message": refusal.message });
    let errors: Vec<Value> = messages.iter().map(each).collect();
    let detail = format!("{refused} rows are not rows of the table, and nothing was inserted");
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
        .with("sqlstate", "22000".into())
        .with("refused", refused.into())
        .with("errors", errors.into())
}

/// Inserts the rows of a stream of Arrow's IPC, whose columns are those of the table by name.
fn copy_arrow(session: &mut Session, table: &Relation, spool: &Spool) -> Result<u64, Unmade> {
    let unread = |error: &dyn std::fmt::Display| {
        Unmade::Other(Problem::bad(format!("the body is no stream of Arrow: {error}")))
    };
    let mut file = File::open(spool.folder().join(BODY)).map_err(|error| unread(&error))?;
    check_lengths(&file).map_err(|error| unread(&error))?;
    file.rewind().map_err(|error| unread(&error))?;
    let reader =
        StreamReader::try_new(BufReader::new(file), None).map_err(|error| unread(&error))?;
    let sent = reader.schema();
    let names: Vec<String> = sent.fields().iter().map(|field| quoted(field.name())).collect();
    if names.is_empty() {
        return Err(unread(&"it has no columns"));
    }
    let sql = format!("COPY {} ({}) FROM STDIN", table.sql, names.join(", "));
    let statement = parse(&sql).next().transpose()?;
    let statement = statement.ok_or_else(|| unread(&"it has no statement"))?;
    let schema = session.columns_from_client(&statement)?;
    let mut batches = reader;
    let mut next = || match batches.next() {
        None => Ok(None),
        Some(batch) => {
            let batch = batch
                .map_err(|error| Error::data(format!("the body is no stream of Arrow: {error}")))?;
            fitting(&batch, &schema).map(Some)
        }
    };
    Ok(session.copy_from_client(&statement, &mut next)?)
}

/// The rows with the types of these columns.
pub(crate) fn fitting(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, Error> {
    let columns = schema.fields().iter().zip(batch.columns()).map(|(field, column)| {
        let safe = CastOptions { safe: false, ..Default::default() };
        let cast = match column.data_type() == field.data_type() {
            true => Ok(column.clone()),
            false => cast_with_options(column, field.data_type(), &safe),
        };
        let column = cast.map_err(|error| {
            Error::data(format!("the column \"{}\" does not fit: {error}", field.name()))
        })?;
        match column.null_count() > 0 && !field.is_nullable() {
            true => Err(Error::data(format!("the column \"{}\" is NOT NULL", field.name()))),
            false => Ok(column),
        }
    });
    Ok(RecordBatch::try_new(schema.clone(), columns.collect::<Result<Vec<_>, _>>()?)?)
}
