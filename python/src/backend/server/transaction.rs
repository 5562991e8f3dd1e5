//! Transactions of batches over a connection.

use alluvium::name::{spelled, written};
use alluvium_client::arrow::array::RecordBatch;
use alluvium_client::arrow::datatypes::DataType;
use alluvium_client::{Client, Error};

use super::pool::{Server, committed};
use super::wait::Stopped;
use crate::backend::{TableColumns, Transaction, Write};
use crate::failure::{Failure, Fallible};

/// A transaction that a server has begun, which it rolls back when the connection ends.
pub(super) struct RemoteTransaction {
    server: Server,
    client: Client,
    is_aborted: bool,
}

impl RemoteTransaction {
    /// Begins a transaction.
    pub(super) fn begin(server: &Server) -> Fallible<Self> {
        let client = server.begin()?;
        Ok(Self { server: server.clone(), client, is_aborted: false })
    }

    /// Waits for a call, without which the transaction is aborted.
    fn wait<T>(&mut self, call: impl AsyncFnOnce(&Client) -> Result<T, Error>) -> Fallible<T> {
        let done = self.server.wait(call(&self.client));
        self.is_aborted |= done.is_err();
        done.map_err(|stopped: Stopped| stopped.into())
    }

    fn run_for(&mut self, sql: &str, rows: &RecordBatch) -> Fallible<()> {
        self.wait(async |client| {
            let ran = client.execute_rows(sql, rows).await;
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
            Write::Insert if !names.iter().all(|name| is_copied(table, name)) => {
                self.run_for(&insert("INSERT", &into, names), &rows)
            }
            Write::Insert => {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                self.wait(async |client| {
                    let mut copy = client.copy_in(&into, &names).await?;
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
                self.run_for(&insert("INSERT OR REPLACE", &into, names), &rows)
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
        let Self { server, client, .. } = *self;
        let epoch = server.wait(async {
            client.execute_batch("COMMIT").await?;
            committed(&client).await
        })?;
        server.give_back(client);
        Ok(epoch.unwrap_or(0))
    }
}

/// The statement that inserts a row of values for these columns.
fn insert(insert: &str, into: &str, names: &[String]) -> String {
    let columns: Vec<String> = names.iter().map(|name| spelled(name)).collect();
    let values: Vec<String> = (1..=names.len()).map(|number| format!("${number}")).collect();
    format!("{insert} INTO {into} ({}) VALUES ({})", columns.join(", "), values.join(", "))
}

/// Whether COPY has the values of a column as they are: those of single values, and lists of these.
fn is_copied(table: &TableColumns, name: &str) -> bool {
    let Ok(field) = table.schema.field_with_name(name) else { return true };
    match field.data_type() {
        DataType::List(item) => !item.data_type().is_nested(),
        of => !of.is_nested(),
    }
}
