//! COPY … FROM.

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use datafusion::logical_expr::{LogicalPlanBuilder, lit};
use datafusion::scalar::ScalarValue;

use super::{Outcome, Session};
use crate::catalog::{Entries, Entry};
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
                defaults: session.defaults(&entries, entry)?,
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
    fn defaults(&self, entries: &Entries, entry: &Entry) -> Result<RecordBatch> {
        let defaults = entry.as_table()?.defaults.iter().zip(entry.schema.fields());
        let values = defaults.map(|(default, field)| {
            let value = match default {
                Some(default) => default.clone(),
                None => lit(ScalarValue::try_new_null(field.data_type())?),
            };
            Ok(value.alias(field.name()))
        });
        let values = values.collect::<Result<Vec<_>>>()?;
        let plan = LogicalPlanBuilder::empty(true).project(values)?.build()?;
        let answer = self.instance().evaluate(plan, self.reading(entries))?;
        Ok(concat_batches(&answer.schema, &answer.batches)?)
    }
}
