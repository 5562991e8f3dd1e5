//! Transactions of batches over a connection.

use alluvium::name::{spelled, written};
use alluvium_client::arrow::array::RecordBatch;
use alluvium_client::{Error, Parameter};

use super::pool::{Connection, Server, committed};
use super::refused::failure;
use super::wait::Stopped;
use crate::backend::{TableColumns, Transaction, Write};
use crate::failure::{Failure, Fallible};

/// A transaction that a server has begun, which it rolls back when the connection ends.
pub(super) struct RemoteTransaction {
    server: Server,
    connection: Connection,
    is_aborted: bool,
}

impl RemoteTransaction {
    /// Begins a transaction.
    pub(super) fn begin(server: &Server) -> Fallible<Self> {
        let connection = server.take()?;
        let server = server.clone();
        server.wait(connection.client.execute_batch("BEGIN"))?;
        Ok(Self { server, connection, is_aborted: false })
    }

    /// Waits for a call, without which the transaction is aborted.
    fn wait<T>(&mut self, call: impl AsyncFnOnce(&Connection) -> Result<T, Error>) -> Fallible<T> {
        let done = self.server.wait(call(&self.connection));
        self.is_aborted |= done.is_err();
        done.map_err(|stopped: Stopped| stopped.into())
    }

    fn run_for(&mut self, sql: &str, rows: &RecordBatch) -> Fallible<()> {
        let rows = Parameter::rows(rows).map_err(failure)?;
        self.wait(async |connection| {
            let ran = connection.client.execute_each(sql, &rows).await;
            ran.map(drop).map_err(|row| row.error)
        })
    }
}

impl Transaction for RemoteTransaction {
    fn write(
        &mut self,
        write: Write,
        table: &TableColumns,
        names: &[String],
        rows: RecordBatch,
    ) -> Fallible<()> {
        let into = written(&table.name);
        match write {
            // COPY has a column at least.
            Write::Insert if names.is_empty() => {
                let sql = format!("INSERT INTO {into} DEFAULT VALUES");
                self.run_for(&sql, &rows)
            }
            Write::Insert => {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                self.wait(async |connection| {
                    let mut copy = connection.client.copy_in(&into, &names).await?;
                    copy.send(&rows).await?;
                    copy.finish().await.map(drop)
                })
            }
            Write::Upsert => {
                if table.primary_key.is_empty() {
                    let message =
                        format!("table \"{}\" has no primary key to upsert by", table.name);
                    return Err(Failure::new("ProgrammingError", message));
                }
                let columns: Vec<String> = names.iter().map(|name| spelled(name)).collect();
                let values: Vec<String> =
                    (1..=names.len()).map(|number| format!("${number}")).collect();
                let (columns, values) = (columns.join(", "), values.join(", "));
                let sql = format!("INSERT OR REPLACE INTO {into} ({columns}) VALUES ({values})");
                self.run_for(&sql, &rows)
            }
            Write::Delete => {
                if table.primary_key.is_empty() {
                    return Err(Failure::not_supported(format!(
                        "table \"{}\" has no primary key, and over a connection rows are deleted by key: write DELETE in SQL",
                        table.name
                    )));
                }
                let keys = rows.project(&table.primary_key).map_err(alluvium::Error::from)?;
                let names = table.primary_key.iter().map(|key| table.schema.field(*key).name());
                let conditions = names.zip(1..);
                let conditions: Vec<String> = conditions
                    .map(|(name, number)| format!("{} = ${number}", spelled(name)))
                    .collect();
                let sql = format!("DELETE FROM {into} WHERE {}", conditions.join(" AND "));
                self.run_for(&sql, &keys)
            }
        }
    }

    fn is_aborted(&self) -> bool {
        self.is_aborted
    }

    fn commit(self: Box<Self>) -> Fallible<u64> {
        let Self { server, connection, .. } = *self;
        let epoch = server.wait(async {
            connection.client.execute_batch("COMMIT").await?;
            committed(&connection.client).await
        })?;
        server.give_back(connection);
        Ok(epoch.unwrap_or(0))
    }
}
