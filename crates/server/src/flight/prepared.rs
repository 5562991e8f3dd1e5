//! Prepared statements of a session, and the values that are bound to them.

use std::collections::HashMap;
use std::sync::Arc;

use alluvium::Prepared;
use arrow::datatypes::{DataType, Field, Schema};
use arrow_flight::sql::ActionCreatePreparedStatementResult;
use parking_lot::Mutex;
use tonic::{Code, Status};

use super::answer::ipc;
use super::id::Id;
use super::parameters::{Values, too_much};
use super::query::{check, no_columns};
use super::session::Session;
use super::status;

/// How many a session may have.
const MOST: usize = 1_000;

/// The prepared statements of a session, by the names that it was given for them.
#[derive(Default)]
pub(super) struct PreparedStatements {
    by_id: Mutex<HashMap<Id, Statement>>,
}

/// A prepared statement.
#[derive(Clone)]
pub(super) struct Statement {
    pub(super) prepared: Arc<Prepared>,
    /// The transaction that it was prepared in, and runs in.
    pub(super) transaction: Option<Id>,
    /// The rows of values that were bound last; `None` if none were.
    pub(super) values: Option<Values>,
}

impl PreparedStatements {
    /// The statement of this name.
    pub(super) fn get(&self, handle: &[u8]) -> Result<Statement, Status> {
        let found = Id::read(handle).and_then(|id| self.by_id.lock().get(&id).cloned());
        found.ok_or_else(|| {
            status::status(
                Code::NotFound,
                "26000",
                "there is no such prepared statement in this session",
            )
        })
    }

    /// Binds rows of values to a statement, in place of those before. All statements and values have at most `limit` bytes.
    pub(super) fn bind(&self, handle: &[u8], values: Values, limit: usize) -> Result<(), Status> {
        let mut statements = self.by_id.lock();
        if bytes(&statements).saturating_add(values.bytes) > limit {
            return Err(too_much(limit));
        }
        if let Some(statement) = Id::read(handle).and_then(|id| statements.get_mut(&id)) {
            statement.values = Some(values);
        }
        Ok(())
    }

    /// Removes a statement, if it is there.
    pub(super) fn remove(&self, handle: &[u8]) {
        if let Some(id) = Id::read(handle) {
            self.by_id.lock().remove(&id);
        }
    }

    /// Removes all of them.
    pub(super) fn clear(&self) {
        self.by_id.lock().clear();
    }

    fn add(&self, statement: Statement, limit: usize) -> Result<Id, Status> {
        let id = Id::random()?;
        let mut statements = self.by_id.lock();
        if statements.len() >= MOST {
            let message =
                format!("a session has at most {MOST} prepared statements: close some of them");
            return Err(status::status(Code::ResourceExhausted, "54000", message));
        }
        if bytes(&statements).saturating_add(statement.bytes()) > limit {
            return Err(too_much(limit));
        }
        statements.insert(id, statement);
        Ok(id)
    }
}

impl Statement {
    /// About how many bytes it takes.
    fn bytes(&self) -> usize {
        self.prepared.text().len() + self.values.as_ref().map_or(0, |values| values.bytes)
    }
}

fn bytes(statements: &HashMap<Id, Statement>) -> usize {
    statements.values().map(Statement::bytes).sum()
}

/// Prepares a statement, and describes its columns and its parameters.
pub(super) async fn prepare(
    session: &Session,
    sql: String,
    transaction: Option<Id>,
) -> Result<ActionCreatePreparedStatementResult, Status> {
    let prepared = session.call(transaction, move |session| {
        let prepared = session.prepare(&sql).map_err(|error| status::of(&error))?;
        check(&prepared).map(|()| prepared)
    });
    let prepared = Arc::new(prepared.await??);
    let description = prepared.description();
    let columns = description.columns.clone();
    let parameters = parameters(&description.parameters);
    // Clients run a statement without columns for its effect.
    let dataset_schema = ipc(&columns.unwrap_or_else(no_columns))?;
    let parameter_schema = ipc(&parameters)?;
    let limit = session.shared.registry.limits().message_bytes;
    let id = session.prepared.add(Statement { prepared, transaction, values: None }, limit)?;
    Ok(ActionCreatePreparedStatementResult {
        prepared_statement_handle: id.bytes().into(),
        dataset_schema,
        parameter_schema,
    })
}

/// The columns by which a client sends values. A parameter of any type is a text.
fn parameters(types: &[Option<DataType>]) -> Schema {
    let fields = types.iter().enumerate().map(|(place, found)| {
        let found = found.clone().unwrap_or(DataType::Utf8);
        Field::new(format!("${}", place + 1), found, true)
    });
    Schema::new(fields.collect::<Vec<_>>())
}
