//! COPY … FROM.

use super::{Outcome, Session};
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
            entry.as_table()?;
            let request = SourceRequest {
                path: session.base.join(path),
                options: options.to_vec(),
                schema: entry.schema.clone(),
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
}
