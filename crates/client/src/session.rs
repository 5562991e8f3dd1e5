//! Statements over one connection, inside of a transaction or not.

use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use tokio::time::sleep;
use tokio_postgres::Statement;
use tokio_postgres::types::ToSql;

use crate::batches::Batches;
use crate::copy::CopyIn;
use crate::error::{Error, Result, RowError};
use crate::link::Link;
use crate::lookup::Lookup;
use crate::name::quoted;
use crate::running::{CancelToken, Running};
use crate::values::{Kind, Parameter, Rows, Writer};

/// The values of a statement's parameters, `$1` and so on.
pub type Parameters<'a> = &'a [&'a (dyn ToSql + Sync)];

/// How many rows of values are on the way at the same time.
const PIPELINED: usize = 64;

/// How long a server may take to read a request to end a statement.
const CANCELLATION: Duration = Duration::from_millis(20);

/// A connection, or a transaction over it.
#[derive(Clone, Copy)]
pub(crate) struct Session<'a> {
    pub(crate) client: &'a tokio_postgres::Client,
    pub(crate) link: &'a Link,
}

impl Session<'_> {
    /// Waits until what was given up cannot be mistaken for the next statement.
    pub(crate) async fn settle(self) {
        if self.link.given_up.settle().await {
            // The server may read a request after the statement has ended by itself. It gets a moment for that, and this one takes what comes
            // then. If the connection is lost, the next statement tells.
            sleep(CANCELLATION).await;
            let _ = self.client.batch_execute("").await;
        }
    }

    /// Prepares a statement.
    pub(crate) async fn prepare(self, sql: &str) -> Result<Statement> {
        self.settle().await;
        self.client.prepare(sql).await.map_err(|error| self.link.explain(error))
    }

    /// Prepares a statement whose parameters have the types of these.
    pub(crate) async fn prepare_typed(
        self,
        sql: &str,
        parameters: &[Parameter],
    ) -> Result<Statement> {
        self.settle().await;
        let types: Vec<_> = parameters.iter().map(|it| it.of_postgres().clone()).collect();
        let prepared = self.client.prepare_typed(sql, &types).await;
        prepared.map_err(|error| self.link.explain(error))
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
            Ok(stream) => Batches::begin(stream, rows, running, self.link.clone()).await,
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
        let statement = self.prepare_typed(sql, parameters).await?;
        let values: Vec<&(dyn ToSql + Sync)> = parameters.iter().map(|it| it as _).collect();
        self.run(&statement, &values).await
    }

    /// Runs a statement for each of many rows of values, some at the same time on the way.
    pub(crate) async fn execute_each(
        self,
        sql: &str,
        rows: &[Vec<Parameter>],
    ) -> Result<u64, RowError> {
        let (mut first, mut changed) = (0, 0);
        while first < rows.len() {
            let (types, count) = Parameter::types_of(&rows[first..]);
            let at = |row| move |error| RowError { row, error };
            self.settle().await;
            let statement = self.client.prepare_typed(sql, &types).await;
            let statement = statement.map_err(|error| at(first)(self.link.explain(error)))?;
            let mut running = self.running();
            let part = rows[first..first + count].iter().enumerate();
            let ran = stream::iter(part).map(async |(row, values)| {
                let changed = self.client.execute_raw(&statement, values).await;
                changed.map_err(|error| at(first + row)(self.link.explain(error)))
            });
            let ran = ran.buffered(PIPELINED).try_fold(0, async |all, one| Ok(all + one)).await;
            running.done();
            changed += ran?;
            first += count;
        }
        Ok(changed)
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
        CancelToken::new(self.client.cancel_token(), self.link.tls.clone())
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
