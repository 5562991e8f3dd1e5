//! Transactions.

use crate::batches::Batches;
use crate::copy::CopyIn;
use crate::error::Result;
use crate::link::Link;
use crate::session::{Parameters, Session};
use crate::values::Parameter;

/// A transaction over a connection. It is rolled back if it is dropped before [`commit`](Transaction::commit).
///
/// A statement that fails aborts it. One that conflicts with what others have committed fails with the SQLSTATE 40001, and the
/// whole transaction is to be run again.
pub struct Transaction<'a> {
    inner: tokio_postgres::Transaction<'a>,
    link: &'a Link,
}

impl<'a> Transaction<'a> {
    pub(crate) fn new(inner: tokio_postgres::Transaction<'a>, link: &'a Link) -> Self {
        Self { inner, link }
    }

    /// As [`Client::query`](crate::Client::query).
    ///
    /// # Errors
    ///
    /// As there.
    pub async fn query(&self, sql: &str, parameters: Parameters<'_>) -> Result<Batches> {
        self.session().query(sql, parameters).await
    }

    /// As [`Client::query_typed`](crate::Client::query_typed).
    ///
    /// # Errors
    ///
    /// As there.
    pub async fn query_typed(&self, sql: &str, parameters: &[Parameter]) -> Result<Batches> {
        self.session().query_typed(sql, parameters).await
    }

    /// As [`Client::execute`](crate::Client::execute).
    ///
    /// # Errors
    ///
    /// As there.
    pub async fn execute(&self, sql: &str, parameters: Parameters<'_>) -> Result<u64> {
        self.session().execute(sql, parameters).await
    }

    /// As [`Client::execute_batch`](crate::Client::execute_batch).
    ///
    /// # Errors
    ///
    /// As there.
    pub async fn execute_batch(&self, sql: &str) -> Result<()> {
        self.session().execute_batch(sql).await
    }

    /// As [`Client::copy_in`](crate::Client::copy_in).
    ///
    /// # Errors
    ///
    /// As there.
    pub async fn copy_in(&self, relation: &str, columns: &[&str]) -> Result<CopyIn> {
        self.session().copy_in(relation, columns).await
    }

    /// Commits it.
    ///
    /// # Errors
    ///
    /// If it conflicts with others, or the connection is lost: then it may have been committed.
    pub async fn commit(self) -> Result<()> {
        self.inner.commit().await.map_err(|error| self.link.explain(error))
    }

    /// Rolls it back.
    ///
    /// # Errors
    ///
    /// If the connection is lost, which rolls it back as well.
    pub async fn rollback(self) -> Result<()> {
        self.inner.rollback().await.map_err(|error| self.link.explain(error))
    }

    fn session(&self) -> Session<'_> {
        Session { client: self.inner.client(), link: self.link }
    }
}
