//! A connection to a server.

use arrow::array::RecordBatch;
use tokio_postgres::Statement;

use crate::address::Address;
use crate::batches::Batches;
use crate::connection::Connection;
use crate::copy::CopyIn;
use crate::error::{Result, RowError};
use crate::lookup::Lookup;
use crate::running::CancelToken;
use crate::session::{Parameters, Session};
use crate::subscription::{SubscribeOptions, Subscription};
use crate::transaction::Transaction;
use crate::values::Parameter;

/// A connection to a server. Statements run one after the other, in the order of the calls.
///
/// It works inside of a tokio runtime, with its drivers of time and input. A task there moves the bytes, and ends with the connection.
/// A call whose future is dropped cancels its statement.
pub struct Client {
    connection: Connection,
    address: Address,
}

impl Client {
    /// Connects to a server; [`Address`] says how addresses look.
    ///
    /// # Errors
    ///
    /// If the address is none, the server cannot be reached, its certificate is not the expected one, or the login fails.
    pub async fn connect(address: &str) -> Result<Self> {
        Self::connect_to(&address.parse()?).await
    }

    /// Connects to a server.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    pub async fn connect_to(address: &Address) -> Result<Self> {
        let connection = Connection::open(address).await?;
        Ok(Self { connection, address: address.clone() })
    }

    /// Runs a statement, and returns its rows as they come.
    ///
    /// # Errors
    ///
    /// If the server refuses it, or a parameter cannot be sent as what the statement takes.
    pub async fn query(&self, sql: &str, parameters: Parameters<'_>) -> Result<Batches> {
        self.session().query(sql, parameters).await
    }

    /// Runs a statement to its end, and returns how many rows it has changed.
    ///
    /// # Errors
    ///
    /// As [`query`](Self::query).
    pub async fn execute(&self, sql: &str, parameters: Parameters<'_>) -> Result<u64> {
        self.session().execute(sql, parameters).await
    }

    /// Runs statements that are separated by semicolons, up to the first that fails. They are one transaction, unless some of them
    /// begin and end one.
    ///
    /// # Errors
    ///
    /// If one fails.
    pub async fn execute_batch(&self, sql: &str) -> Result<()> {
        self.session().execute_batch(sql).await
    }

    /// Prepares a statement, which then has its columns and parameters.
    ///
    /// # Errors
    ///
    /// As [`query`](Self::query).
    pub async fn prepare(&self, sql: &str) -> Result<Statement> {
        self.session().prepare(sql).await
    }

    /// Runs a statement with values that have types of their own, and returns its rows as they come. Rows have the types that they have in the
    /// engine, also those of structs and maps.
    ///
    /// # Errors
    ///
    /// As [`query`](Self::query).
    pub async fn query_typed(&self, sql: &str, parameters: &[Parameter]) -> Result<Batches> {
        self.session().query_typed(sql, parameters).await
    }

    /// Runs a statement that returns no rows once for each row of values, in their order, and returns how many rows it has changed. Many rows are
    /// sent together, and before those before them are done. Outside of a transaction each is one of its own.
    ///
    /// # Errors
    ///
    /// If the statement fails for a row. Outside of a transaction rows after it may have been run.
    pub async fn execute_each(&self, sql: &str, rows: &[Vec<Parameter>]) -> Result<u64, RowError> {
        self.session().execute_each(sql, rows).await
    }

    /// As [`execute_each`](Self::execute_each), with a parameter for each column of a batch.
    ///
    /// # Errors
    ///
    /// As there.
    pub async fn execute_rows(&self, sql: &str, rows: &RecordBatch) -> Result<u64, RowError> {
        self.session().execute_rows(sql, rows).await
    }

    /// Runs a statement that this client has prepared.
    ///
    /// # Errors
    ///
    /// As [`query`](Self::query).
    pub async fn run(&self, statement: &Statement, parameters: Parameters<'_>) -> Result<Batches> {
        self.session().run(statement, parameters).await
    }

    /// Begins a COPY of batches into these columns of a table; no columns are all of them. The table is named as SQL writes it.
    ///
    /// # Errors
    ///
    /// If there is no such table, or no right to write to it and to read it.
    pub async fn copy_in(&self, relation: &str, columns: &[&str]) -> Result<CopyIn> {
        self.session().copy_in(relation, columns).await
    }

    /// Begins a transaction.
    ///
    /// # Errors
    ///
    /// If the connection is lost.
    pub async fn transaction(&mut self) -> Result<Transaction<'_>> {
        self.connection.transaction().await
    }

    /// Prepares to find rows of a relation by the values of these columns. The relation is named as SQL writes it.
    ///
    /// # Errors
    ///
    /// If there is no such relation, or it has no such columns.
    pub async fn by_key(&self, relation: &str, key: &[&str]) -> Result<Lookup> {
        self.session().by_key(relation, key).await
    }

    /// Subscribes to the changes of a relation, which is named as SQL writes it. The subscription has a connection of its own.
    ///
    /// # Errors
    ///
    /// If there is no such relation, or no right to read it, or the server has no room for another connection.
    pub async fn subscribe(
        &self,
        relation: &str,
        options: SubscribeOptions,
    ) -> Result<Subscription> {
        Subscription::connect(&self.address, relation, options).await
    }

    /// The rows with these values in the columns of a key: at most one row, if the columns are a key. The lookup is one that this client
    /// has [prepared](Self::by_key).
    ///
    /// # Errors
    ///
    /// If a value cannot be sent as one of the column's type, or the query fails.
    pub async fn get(&self, lookup: &Lookup, key: Parameters<'_>) -> Result<RecordBatch> {
        self.session().run(lookup.statement(), key).await?.collect().await
    }

    /// A handle by which another task ends the statement that runs.
    pub fn cancel_token(&self) -> CancelToken {
        self.session().cancel_token()
    }

    /// Whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.connection.is_closed()
    }

    fn session(&self) -> Session<'_> {
        self.connection.session()
    }
}
