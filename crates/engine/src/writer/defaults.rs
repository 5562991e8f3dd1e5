//! The values of columns that a write leaves out.

use alluvium_sql::planner::at;
use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use datafusion::logical_expr::{LogicalPlanBuilder, lit};
use datafusion::scalar::ScalarValue;

use super::Writer;
use crate::catalog::Entry;
use crate::clock::Moment;
use crate::error::Result;

impl Writer {
    /// One row with the value that each column of a table takes at `time` if a write leaves it out: its DEFAULT, or
    /// NULL.
    pub(crate) fn defaults(&self, table: &Entry, time: Moment) -> Result<RecordBatch> {
        let defaults = table.as_table()?.defaults.iter().zip(table.schema.fields());
        let values = defaults.map(|(default, field)| {
            let value = match default {
                Some(default) => default.clone(),
                None => lit(ScalarValue::try_new_null(field.data_type())?),
            };
            Ok(value.alias(field.name()))
        });
        let values = values.collect::<Result<Vec<_>>>()?;
        let plan = LogicalPlanBuilder::empty(true).project(values)?.build()?;
        let answer = self.query.run(at(plan, time)?)?;
        Ok(concat_batches(&answer.schema, &answer.batches)?)
    }
}
