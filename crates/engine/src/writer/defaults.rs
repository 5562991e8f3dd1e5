//! The values of columns that a write leaves out. Here alone they are filled in.

use std::sync::{Arc, OnceLock};

use alluvium_sql::planner::at;
use arrow::array::{Array, ArrayRef, RecordBatch, Scalar, UInt32Array, new_null_array};
use arrow::compute::kernels::zip::zip;
use arrow::compute::{concat_batches, take};
use arrow::datatypes::{Field, SchemaRef};
use datafusion::logical_expr::{LogicalPlanBuilder, lit};
use datafusion::scalar::ScalarValue;

use super::Writer;
use crate::catalog::Entry;
use crate::clock::Moment;
use crate::error::{Error, Result};
use crate::query::QueryEngine;
use crate::source::Absent;

/// The DEFAULTs of a table as of one time.
pub(crate) struct Defaults<'a> {
    table: &'a Entry,
    time: Moment,
    query: &'a Arc<QueryEngine>,
    /// Evaluated when it is first needed.
    row: OnceLock<RecordBatch>,
}

impl Writer {
    /// The DEFAULTs of a table for a transaction at `time`.
    pub(crate) fn defaults<'a>(&'a self, table: &'a Entry, time: Moment) -> Defaults<'a> {
        Defaults { table, time, query: &self.query, row: OnceLock::new() }
    }
}

impl Defaults<'_> {
    /// One row with the value that each column takes if a write leaves it out: its DEFAULT, or NULL.
    pub(crate) fn row(&self) -> Result<&RecordBatch> {
        match self.row.get() {
            Some(row) => Ok(row),
            None => {
                let row = self.evaluate()?;
                Ok(self.row.get_or_init(|| row))
            }
        }
    }

    /// A column of the table.
    pub(crate) fn field(&self, column: usize) -> &Field {
        self.table.schema.field(column)
    }

    /// For each column whether it has a DEFAULT other than NULL.
    pub(crate) fn exist(&self) -> Result<Vec<bool>> {
        Ok(self.row()?.columns().iter().map(|value| value.is_valid(0)).collect())
    }

    /// All columns of the table, given rows of the columns `named`, with values missing where they are `absent`.
    pub(crate) fn complete(
        &self,
        named: &[&str],
        rows: &RecordBatch,
        absent: &[Absent],
    ) -> Result<Vec<ArrayRef>> {
        let schema = &self.table.schema;
        check_names(named, rows, schema, &self.table.name)?;
        fill(schema, named, rows, absent, || self.row())
    }

    fn evaluate(&self) -> Result<RecordBatch> {
        let defaults = self.table.as_table()?.defaults.iter().zip(self.table.schema.fields());
        let values = defaults.map(|(default, field)| {
            let value = match default {
                Some(default) => default.clone(),
                None => lit(ScalarValue::try_new_null(field.data_type())?),
            };
            Ok(value.alias(field.name()))
        });
        let values = values.collect::<Result<Vec<_>>>()?;
        let plan = LogicalPlanBuilder::empty(true).project(values)?.build()?;
        let answer = self.query.run_all(at(plan, self.time)?.into())?;
        Ok(concat_batches(&answer.schema, &answer.batches)?)
    }
}

/// All columns of `schema` of rows of some of them; the others are NULL, and so are values that are absent.
pub(crate) fn complete_with_nulls(
    schema: &SchemaRef,
    rows: &RecordBatch,
    absent: &[Absent],
) -> Result<Vec<ArrayRef>> {
    let nulls = schema.fields().iter().map(|field| new_null_array(field.data_type(), 1));
    let nulls = RecordBatch::try_new(schema.clone(), nulls.collect())?;
    let names = column_names(rows);
    fill(schema, &names, rows, absent, || Ok(&nulls))
}

/// The names of a batch's columns.
pub(crate) fn column_names(rows: &RecordBatch) -> Vec<&str> {
    rows.schema_ref().fields().iter().map(|field| field.name().as_str()).collect()
}

fn fill<'a>(
    schema: &SchemaRef,
    named: &[&str],
    rows: &RecordBatch,
    absent: &[Absent],
    defaults: impl Fn() -> Result<&'a RecordBatch>,
) -> Result<Vec<ArrayRef>> {
    let column = |(number, field): (usize, &arrow::datatypes::FieldRef)| -> Result<ArrayRef> {
        let Some(given) = named.iter().position(|name| name == field.name()) else {
            let first = UInt32Array::from(vec![0; rows.num_rows()]);
            return Ok(take(defaults()?.column(number), &first, None)?);
        };
        let mut values = rows.column(given).clone();
        for Absent { rows, .. } in absent.iter().filter(|absent| absent.column == given) {
            let default = Scalar::new(defaults()?.column(number).clone());
            values = zip(rows, &default, &values)?;
        }
        Ok(values)
    };
    schema.fields().iter().enumerate().map(column).collect()
}

/// Fails unless the rows have a column for each of these names, each of which is a column of the table, once.
fn check_names(named: &[&str], rows: &RecordBatch, schema: &SchemaRef, table: &str) -> Result<()> {
    let (given, wanted) = (rows.num_columns(), named.len());
    if given != wanted {
        return Err(Error::data(format!("{given} columns are given for {wanted} that are named")));
    }
    for (place, name) in named.iter().enumerate() {
        if schema.index_of(name).is_err() {
            return Err(Error::data(format!("\"{table}\" has no column \"{name}\"")));
        }
        if named[..place].contains(name) {
            return Err(Error::data(format!("column \"{name}\" is named twice")));
        }
    }
    Ok(())
}
