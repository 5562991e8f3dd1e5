//! Rows by key.

use tokio_postgres::Statement;

/// A query for the rows that have a key, prepared once: [`Client::get`](crate::Client::get) runs it. It is for the connection that made it.
pub struct Lookup {
    statement: Statement,
}

impl Lookup {
    pub(crate) fn new(statement: Statement) -> Self {
        Self { statement }
    }

    pub(crate) fn statement(&self) -> &Statement {
        &self.statement
    }
}
