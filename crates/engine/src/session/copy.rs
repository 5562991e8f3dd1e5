//! COPY … FROM.

use arrow::array::RecordBatch;

use super::{Outcome, Session};
use crate::catalog::Entry;
use crate::error::{Error, Result};
use crate::source::SourceRequest;
use crate::transaction::Write;

/// How many refused rows are told of.
const TOLD: usize = 10;

impl Session {
    /// Reads all of a file into a table, in one transaction.
    pub(super) fn copy(
        &mut self,
        table: &str,
        path: &str,
        options: &[(String, String)],
    ) -> Result<Outcome> {
        let mut messages = Vec::new();
        let mut refused = 0;
        let (rows, epoch) = self.in_one_transaction(|session| {
            let entries = session.instance().catalog.entries();
            let entry = entries
                .get(table)
                .ok_or_else(|| Error::sql(format!("there is no table \"{table}\"")))?;
            let request = SourceRequest {
                path: session.base.join(path),
                options: options.to_vec(),
                schema: entry.schema.clone(),
                defaults: session.defaults(entry)?,
            };
            let mut writes = Vec::new();
            let mut reader = session.instance().sources.open(&request)?;
            while let Some(portion) = reader.next()? {
                writes.push(Write::enter(portion.rows));
                refused += portion.refused_count;
                let room = TOLD - messages.len();
                messages.extend(portion.refused.into_iter().take(room));
            }
            drop(reader);
            session.stage(&entries, table, writes)
        })?;
        Ok(Outcome::Copied { rows, refused, messages, epoch })
    }

    /// A row of what a table's columns get that a file does not have.
    fn defaults(&self, entry: &Entry) -> Result<RecordBatch> {
        let transaction = self.transaction.as_ref();
        let time = transaction.map_or_else(|| self.instance().clock.now(), |open| Ok(open.time()));
        self.instance().defaults(entry, time?)
    }
}
