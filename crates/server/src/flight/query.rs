//! Statements that return rows, and their rows, pulled as the client reads.

use std::iter;
use std::sync::Arc;
use std::time::Instant;

use alluvium::unstable::{StatementKind, prepared_tree};
use alluvium::{Outcome, Prepared};
use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Schema, SchemaRef};
use tonic::{Code, Status};

use super::id::Id;
use super::parameters::Values;
use super::session::Session;
use super::status;
use crate::lines::lines;
use crate::traffic::{Outcome as Ended, Protocol};

/// Batches of rows.
pub(super) type Batches = Box<dyn Iterator<Item = alluvium::Result<RecordBatch>> + Send>;

/// The rows of a statement, which runs once for each row of values, when the rows before are at their end.
pub(super) struct Query {
    /// The columns of all rows.
    pub(super) columns: SchemaRef,
    /// Rows that come first: the statement has run already.
    begun: Option<Batches>,
    /// The statement that has not run, and the values that it runs with.
    later: Option<(Arc<Prepared>, Values)>,
    /// The next row of values.
    next: usize,
    /// The transaction that it is part of.
    transaction: Option<Id>,
}

/// What a statement has come to that was asked for its rows.
pub(super) enum Begun {
    /// It returns rows.
    Rows(Query),
    /// It was run, and has changed so many rows; `None` of a command that changes none.
    Done(Option<u64>),
}

impl Query {
    /// The rows of a statement with columns, for each row of values.
    pub(super) fn later(
        prepared: Arc<Prepared>,
        columns: SchemaRef,
        values: Values,
        transaction: Option<Id>,
    ) -> Self {
        Self { columns, begun: None, later: Some((prepared, values)), next: 0, transaction }
    }

    /// Rows that are there.
    pub(super) fn whole(rows: RecordBatch) -> Self {
        let columns = rows.schema();
        Self::of(columns, Box::new(iter::once(Ok(rows))), None)
    }

    fn of(columns: SchemaRef, batches: Batches, transaction: Option<Id>) -> Self {
        Self { columns, begun: Some(batches), later: None, next: 0, transaction }
    }

    /// About how many bytes it takes while it waits.
    pub(super) fn bytes(&self) -> usize {
        self.later.as_ref().map_or(0, |(prepared, values)| prepared.text().len() + values.bytes)
    }

    /// Whether its rows are of an open transaction.
    pub(super) fn is_in_transaction(&self) -> bool {
        self.transaction.is_some()
    }

    /// The next batches; `None` after the last. A statement runs in a turn of the session, its rows are pulled outside of it.
    pub(super) async fn next(&mut self, session: &Session) -> Result<Option<Batches>, Status> {
        if let Some(batches) = self.begun.take() {
            return Ok(Some(batches));
        }
        let row = self.next;
        let later = self.later.clone().filter(|(_, values)| row < values.rows.len());
        let Some((prepared, values)) = later else { return Ok(None) };
        self.next += 1;
        let columns = self.columns.clone();
        let ran = session.call(self.transaction, move |session| {
            let outcome = session.execute_prepared(&prepared, &values.rows[row]);
            batches(outcome.map_err(|error| status::of(&error))?, &columns)
        });
        ran.await?.map(Some)
    }
}

/// Begins a statement whose rows a client asks for. A query waits until they are read; what else it may be runs at once, so that its
/// effect is there when the client has the answer.
pub(super) async fn begin(
    session: &Session,
    sql: String,
    transaction: Option<Id>,
) -> Result<Begun, Status> {
    let begun = session.call(transaction, move |session| {
        let prepared = session.prepare(&sql).map_err(|error| status::of(&error))?;
        begin_prepared(session, Arc::new(prepared), Values::none(), transaction)
    });
    begun.await?
}

/// As [`begin`], of a prepared statement with values, in a call of the session.
pub(super) fn begin_prepared(
    session: &mut alluvium::Session,
    prepared: Arc<Prepared>,
    values: Values,
    transaction: Option<Id>,
) -> Result<Begun, Status> {
    check(&prepared)?;
    let wanted = prepared.description().parameters.len();
    if let Some(row) = values.rows.iter().find(|row| row.len() != wanted) {
        return Err(status::bad(format!(
            "the statement has {wanted} parameters, and {} values were given",
            row.len()
        )));
    }
    match prepared.description().columns.clone() {
        Some(columns) if is_query(&prepared) => {
            Ok(Begun::Rows(Query::later(prepared, columns, values, transaction)))
        }
        Some(columns) => {
            let mut all: Vec<Batches> = Vec::with_capacity(values.rows.len());
            for row in values.rows.iter() {
                let outcome = session.execute_prepared(&prepared, row);
                all.push(batches(outcome.map_err(|error| status::of(&error))?, &columns)?);
            }
            let all = Box::new(all.into_iter().flatten());
            Ok(Begun::Rows(Query::of(columns, all, transaction)))
        }
        None => {
            let mut changed = None;
            for row in values.rows.iter() {
                let outcome = session.execute_prepared(&prepared, row);
                let rows = count(outcome.map_err(|error| status::of(&error))?)?;
                changed = rows.map(|rows| changed.unwrap_or(0) + rows);
            }
            Ok(Begun::Done(changed))
        }
    }
}

/// Counts a statement that ends when it has begun; those with rows count when these are sent.
pub(super) async fn counted(
    session: &Session,
    begin: impl Future<Output = Result<Begun, Status>>,
) -> Result<Begun, Status> {
    let at = Instant::now();
    let begun = begin.await;
    let outcome = match &begun {
        Ok(Begun::Rows(_)) => return begun,
        Ok(Begun::Done(_)) => Ended::Done,
        Err(failed) => status::outcome(failed),
    };
    session.shared.traffic(Protocol::Flight).ran(outcome, at.elapsed());
    begun
}

/// Fails for statements whose answers are none of rows.
pub(super) fn check(prepared: &Prepared) -> Result<(), Status> {
    match prepared_tree(prepared).kind {
        StatementKind::Subscribe { .. } => Err(status::unsupported(
            "SUBSCRIBE has no end, and Flight SQL no answers without end: subscribe over Postgres's protocol or HTTP",
        )),
        StatementKind::Copy { path: None, .. } => Err(status::unsupported(
            "COPY … FROM STDIN takes rows of Postgres's protocol: send them as Arrow, by an ingestion",
        )),
        StatementKind::CopyTo { path: None, .. } => Err(status::unsupported(
            "COPY … TO STDOUT sends rows of Postgres's protocol: run its query, whose rows are sent as Arrow",
        )),
        _ => Ok(()),
    }
}

/// Whether a statement only reads, so that it may run when its rows are read.
fn is_query(prepared: &Prepared) -> bool {
    matches!(prepared_tree(prepared).kind, StatementKind::Query(_))
}

/// The rows of an outcome, with these columns.
fn batches(outcome: Outcome, columns: &SchemaRef) -> Result<Batches, Status> {
    match outcome {
        Outcome::Rows(rows) => {
            let columns = columns.clone();
            Ok(Box::new(rows.map(move |batch| described(&batch?, &columns))))
        }
        Outcome::Text(text) => Ok(Box::new(iter::once(lines(&text, columns.clone())))),
        _ => {
            let message = "the statement has returned no rows, although it was to return some";
            Err(status::status(Code::Internal, "XX000", message))
        }
    }
}

/// The rows, with the columns as the client was told of them.
fn described(batch: &RecordBatch, columns: &SchemaRef) -> alluvium::Result<RecordBatch> {
    if batch.schema_ref() == columns {
        return Ok(batch.clone());
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(columns.clone(), batch.columns().to_vec(), &options)?)
}

/// How many rows an outcome has changed or, if it has rows, returned.
pub(super) fn count(outcome: Outcome) -> Result<Option<u64>, Status> {
    Ok(match outcome {
        Outcome::Changed { rows, .. }
        | Outcome::Moved { rows, .. }
        | Outcome::Copied { rows, .. } => Some(rows),
        Outcome::Rows(rows) => {
            let mut count = 0;
            for batch in rows {
                count += batch.map_err(|error| status::of(&error))?.num_rows() as u64;
            }
            Some(count)
        }
        _ => None,
    })
}

/// The columns of an answer without any.
pub(super) fn no_columns() -> SchemaRef {
    Arc::new(Schema::empty())
}
