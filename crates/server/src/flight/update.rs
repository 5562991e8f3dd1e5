//! Statements that are run for their effect, with one row of values or with many.

use alluvium::{Error, Prepared, Session as EngineSession, Value};
use arrow_flight::sql::server::PeekableFlightDataStream;
use tonic::Status;

use super::answer::records;
use super::id::Id;
use super::incoming::{Incoming, Received, feed};
use super::parameters::{self, Values};
use super::prepared::Statement;
use super::query::{check, count};
use super::session::Session;
use super::status;

/// Runs a statement, and returns how many rows it has changed; -1 of a command that changes none.
pub(super) async fn update(
    session: &Session,
    sql: String,
    transaction: Option<Id>,
) -> Result<i64, Status> {
    let changed = session.call(transaction, move |session| {
        count(session.execute_with(&sql, &[]).map_err(|error| status::of(&error))?)
    });
    Ok(changed.await??.map_or(-1, records))
}

/// Runs a prepared statement for each row of values that the client sends or, if it sends none, of those that it has bound. Several rows
/// are one transaction.
pub(super) async fn update_prepared(
    session: &Session,
    statement: Statement,
    data: PeekableFlightDataStream,
) -> Result<i64, Status> {
    check(&statement.prepared)?;
    let limit = session.shared.registry.limits().message_bytes;
    let mut incoming = Incoming::new(data, limit);
    let Statement { prepared, transaction, values } = statement;
    let changed = match incoming.columns().await? {
        None => {
            let values = values.unwrap_or_else(Values::none);
            session
                .call(transaction, move |session| each(session, &prepared, &values.rows))
                .await??
        }
        Some(_) => {
            let run = async |received| {
                let run = move |session: &mut EngineSession| sent(session, &prepared, received);
                session.call(transaction, run).await?
            };
            feed(incoming, run).await?
        }
    };
    Ok(changed.map_or(-1, records))
}

/// Runs a statement for each row of values that the client sends.
fn sent(
    session: &mut EngineSession,
    prepared: &Prepared,
    mut received: Received,
) -> Result<Option<u64>, Status> {
    let wanted = prepared.description().parameters.len();
    let mut next = || received.next()?.map(|rows| parameters::rows(&rows, wanted)).transpose();
    let Some(first) = next()? else { return Ok(Some(0)) };
    let Some(second) = next()? else { return each(session, prepared, &first) };
    in_transaction(session, |session| {
        let mut changed = run_each(session, prepared, &first)?;
        let mut values = Some(second);
        while let Some(rows) = values {
            changed = sum(changed, run_each(session, prepared, &rows)?);
            values = next()?;
        }
        Ok(changed)
    })
}

/// Runs a statement for each row of values: several are one transaction.
fn each(
    session: &mut EngineSession,
    prepared: &Prepared,
    values: &[Vec<Value>],
) -> Result<Option<u64>, Status> {
    match values.len() {
        // The engine repeats one that others stand in the way of.
        1 => run_each(session, prepared, values),
        _ => in_transaction(session, |session| run_each(session, prepared, values)),
    }
}

fn run_each(
    session: &mut EngineSession,
    prepared: &Prepared,
    values: &[Vec<Value>],
) -> Result<Option<u64>, Status> {
    let mut changed = None;
    for row in values {
        let outcome = session.execute_prepared(prepared, row);
        changed = sum(changed, count(outcome.map_err(|error| status::of(&error))?)?);
    }
    Ok(changed)
}

fn sum(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one + other),
        (one, other) => one.or(other),
    }
}

/// Runs calls in the open transaction, or in one of their own, which is rolled back if they fail.
pub(super) fn in_transaction<R>(
    session: &mut EngineSession,
    act: impl FnOnce(&mut EngineSession) -> Result<R, Status>,
) -> Result<R, Status> {
    if session.in_transaction() {
        return act(session);
    }
    let failed = |error: Error| status::of(&error);
    session.execute("BEGIN").map_err(failed)?;
    let done = act(session).and_then(|done| {
        session.execute("COMMIT").map_err(failed)?;
        Ok(done)
    });
    if done.is_err() && session.in_transaction() {
        session.execute("ROLLBACK").map_err(failed)?;
    }
    done
}
