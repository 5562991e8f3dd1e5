//! Statements over one connection, inside of a transaction or not.

use std::pin::pin;

use arrow::array::RecordBatch;
use futures::{StreamExt, TryStreamExt, stream};
use tokio_postgres::types::ToSql;
use tokio_postgres::{RowStream, Statement};

use crate::batches::{Batches, Form};
use crate::copy::CopyIn;
use crate::error::{Error, Result, RowError};
use crate::link::Link;
use crate::lookup::Lookup;
use crate::name::quoted;
use crate::running::{CancelToken, Running};
use crate::values::{
    Encoded, Kind, Parameter, Rows, Writer, parameters_type, write_stream, write_values,
};

/// The values of a statement's parameters, `$1` and so on.
pub type Parameters<'a> = &'a [&'a (dyn ToSql + Sync)];

/// How many rows of values are sent together at most, and about how many bytes of them.
const ROWS: usize = 1_024;
const BYTES: usize = 1 << 20;
/// How many such parts are on the way at the same time.
const PIPELINED: usize = 16;

/// A connection, or a transaction over it.
#[derive(Clone, Copy)]
pub(crate) struct Session<'a> {
    pub(crate) client: &'a tokio_postgres::Client,
    pub(crate) link: &'a Link,
}

impl Session<'_> {
    /// Waits until what was given up cannot be mistaken for the next statement.
    pub(crate) async fn settle(self) {
        self.link.given_up.settle().await;
    }

    /// Prepares a statement.
    pub(crate) async fn prepare(self, sql: &str) -> Result<Statement> {
        self.settle().await;
        self.client.prepare(sql).await.map_err(|error| self.link.explain(error))
    }

    /// Runs a statement that was prepared.
    pub(crate) async fn run(
        self,
        statement: &Statement,
        parameters: Parameters<'_>,
    ) -> Result<Batches> {
        self.settle().await;
        let rows = Rows::new(columns(statement)?);
        let mut running = self.running();
        let values = parameters.iter().map(|value| *value as &dyn ToSql);
        match self.client.query_raw(statement, values).await {
            Ok(stream) => {
                Batches::begin(stream, Form::Fields(rows), running, self.link.clone()).await
            }
            Err(error) => {
                running.done();
                Err(self.link.explain(error))
            }
        }
    }

    pub(crate) async fn query(self, sql: &str, parameters: Parameters<'_>) -> Result<Batches> {
        let statement = self.prepare(sql).await?;
        self.run(&statement, parameters).await
    }

    pub(crate) async fn query_typed(self, sql: &str, parameters: &[Parameter]) -> Result<Batches> {
        let values = write_values(parameters)?;
        self.settle().await;
        let mut running = self.running();
        match self.stream(sql, values).await {
            Ok(stream) => Batches::begin(stream, Form::Arrow, running, self.link.clone()).await,
            Err(error) => {
                running.done();
                Err(error)
            }
        }
    }

    /// Begins a statement whose rows come as streams of Arrow.
    pub(crate) async fn stream(self, sql: &str, values: Encoded) -> Result<RowStream> {
        let ran = self.client.query_typed_raw(sql, [(values, parameters_type())]).await;
        ran.map_err(|error| self.link.explain(error))
    }

    /// Runs a statement for each of many rows of values, which the server gets many at a time.
    pub(crate) async fn execute_each(
        self,
        sql: &str,
        rows: &[Vec<Parameter>],
    ) -> Result<u64, RowError> {
        let mut rest = rows;
        let mut parts = Vec::new();
        while !rest.is_empty() {
            let first = rows.len() - rest.len();
            let taken = Parameter::take_batch(rest, ROWS);
            let (part, after) = taken.map_err(|error| RowError { row: first, error })?;
            parts.push((first, part));
            rest = after;
        }
        self.execute_parts(sql, parts).await
    }

    /// As [`execute_each`](Self::execute_each), of the rows of a batch.
    pub(crate) async fn execute_rows(self, sql: &str, rows: &RecordBatch) -> Result<u64, RowError> {
        let bytes = rows.get_array_memory_size().max(1);
        let step = (rows.num_rows().saturating_mul(BYTES) / bytes).clamp(1, ROWS);
        let starts = (0..rows.num_rows()).step_by(step);
        let part = |first: usize| (first, rows.slice(first, step.min(rows.num_rows() - first)));
        self.execute_parts(sql, starts.map(part).collect()).await
    }

    /// Runs a statement for each of the rows of batches, whose first rows have these numbers.
    async fn execute_parts(
        self,
        sql: &str,
        parts: Vec<(usize, RecordBatch)>,
    ) -> Result<u64, RowError> {
        self.settle().await;
        let at = |row| move |error| RowError { row, error };
        let statement = self.client.prepare_typed(sql, &[parameters_type()]).await;
        let statement = statement.map_err(|error| at(0)(self.link.explain(error)))?;
        let mut running = self.running();
        let ran = stream::iter(&parts).map(async |(first, part)| {
            let values = write_stream(part).map_err(at(*first))?;
            let ran = self.run_part(&statement, values).await;
            ran.map_err(|error| {
                let row = error.refusal().and_then(|refusal| refusal.row).unwrap_or(0);
                at(first + row)(error)
            })
        });
        let ran = ran.buffered(PIPELINED).try_fold(0, async |all, one| Ok(all + one)).await;
        running.done();
        ran
    }

    /// Runs a statement for the rows of a stream, and returns how many rows it has changed.
    async fn run_part(self, statement: &Statement, values: Encoded) -> Result<u64> {
        let explain = |error| match self.link.explain(error) {
            // The server says which row fails of a statement that could be run.
            Error::Server(refusal) if refusal.row.is_none() && refusal.sqlstate == "0A000" => {
                Error::ReturnsRows
            }
            error => error,
        };
        let rows = self.client.query_raw(statement, [values]).await.map_err(explain)?;
        let mut rows = pin!(rows);
        let mut returns_rows = false;
        while rows.try_next().await.map_err(explain)?.is_some() {
            returns_rows = true;
        }
        match returns_rows {
            true => Err(Error::ReturnsRows),
            false => Ok(rows.rows_affected().unwrap_or(0)),
        }
    }

    pub(crate) async fn execute(self, sql: &str, parameters: Parameters<'_>) -> Result<u64> {
        let mut batches = self.query(sql, parameters).await?;
        while batches.try_next().await?.is_some() {}
        Ok(batches.rows_affected().unwrap_or(0))
    }

    pub(crate) async fn execute_batch(self, sql: &str) -> Result<()> {
        self.settle().await;
        let mut running = self.running();
        let done = self.client.batch_execute(sql).await;
        running.done();
        done.map_err(|error| self.link.explain(error))
    }

    pub(crate) async fn copy_in(self, relation: &str, columns_of: &[&str]) -> Result<CopyIn> {
        let names = match columns_of.is_empty() {
            true => "*".to_owned(),
            false => columns_of.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", "),
        };
        // How the columns are called, and of which types they are.
        let described = self.prepare(&format!("SELECT {names} FROM {relation} LIMIT 0")).await?;
        let columns = columns(&described)?;
        let listed: Vec<_> = columns.iter().map(|(name, _)| quoted(name)).collect();
        let sql = format!("COPY {relation} ({}) FROM STDIN (FORMAT binary)", listed.join(", "));
        let sink = self.client.copy_in(&sql).await.map_err(|error| self.link.explain(error))?;
        Ok(CopyIn::new(sink, Writer::new(columns), self.link.clone()))
    }

    pub(crate) async fn by_key(self, relation: &str, key: &[&str]) -> Result<Lookup> {
        let conditions = key.iter().zip(1..);
        let conditions: Vec<_> =
            conditions.map(|(column, number)| format!("{} = ${number}", quoted(column))).collect();
        let sql = format!("SELECT * FROM {relation} WHERE {}", conditions.join(" AND "));
        Ok(Lookup::new(self.prepare(&sql).await?))
    }

    pub(crate) fn cancel_token(self) -> CancelToken {
        let Link { tls, endpoint, .. } = self.link;
        CancelToken::new(self.client.cancel_token(), tls.clone(), endpoint.clone())
    }

    fn running(self) -> Running {
        Running::new(self.cancel_token(), self.link.given_up.clone(), self.link.runtime.clone())
    }
}

/// The names and the kinds of a statement's columns.
pub(crate) fn columns(statement: &Statement) -> Result<Vec<(String, Kind)>> {
    let columns = statement.columns().iter().map(|column| {
        // The number of a column that is none of a table tells its type.
        let number = column.column_id().filter(|_| column.table_oid().is_none());
        let kind = Kind::of(column.type_(), column.type_modifier(), number);
        let kind =
            kind.map_err(|error| Error::Value(format!("column \"{}\": {error}", column.name())))?;
        Ok((column.name().to_owned(), kind))
    });
    columns.collect()
}
