//! The values of columns that a write leaves out. Here alone they are filled in.

use std::sync::{Arc, OnceLock};

use alluvium_sql::functions::sequence::{Sequences, calls_sequence};
use alluvium_sql::planner::at;
use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch, UInt32Array, new_null_array};
use arrow::compute::kernels::zip::zip;
use arrow::compute::{concat_batches, take};
use arrow::datatypes::{Field, FieldRef, SchemaRef};
use datafusion::datasource::{MemTable, provider_as_source};
use datafusion::logical_expr::{Expr, LogicalPlanBuilder, lit};
use datafusion::scalar::ScalarValue;

use super::Writer;
use crate::catalog::Entry;
use crate::clock::Moment;
use crate::error::{Error, Result};
use crate::sequences::BoundSequences;
use crate::source::Absent;

/// The DEFAULTs of a table as of one time.
pub(crate) struct Defaults<'a> {
    table: &'a Entry,
    time: Moment,
    writer: &'a Writer,
    /// Those that are the same in all rows, evaluated when one is first needed. Others are NULL.
    row: OnceLock<RecordBatch>,
}

impl Writer {
    /// The DEFAULTs of a table for a transaction at `time`.
    pub(crate) fn defaults<'a>(&'a self, table: &'a Entry, time: Moment) -> Defaults<'a> {
        Defaults { table, time, writer: self, row: OnceLock::new() }
    }
}

impl Defaults<'_> {
    /// One row with the value that each column takes if a write leaves it out: its DEFAULT, or NULL, also if the values of rows
    /// differ.
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
        let row = self.row()?.columns().iter().enumerate();
        row.map(|(column, value)| Ok(value.is_valid(0) || self.differing(column)?.is_some()))
            .collect()
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
        fill(schema, named, rows, absent, |column, rows| match self.differing(column)? {
            Some(default) => self.values(default, rows),
            None => repeated(self.row()?.column(column), rows),
        })
    }

    /// The DEFAULT of a column if it has a value of its own in each row.
    fn differing(&self, column: usize) -> Result<Option<&Expr>> {
        let default = self.table.as_table()?.defaults[column].as_ref();
        Ok(default.filter(|default| calls_sequence(default)))
    }

    fn evaluate(&self) -> Result<RecordBatch> {
        let defaults = self.table.as_table()?.defaults.iter().zip(self.table.schema.fields());
        let values = defaults.map(|(default, field)| {
            let value = match default {
                Some(default) if !calls_sequence(default) => default.clone(),
                _ => lit(ScalarValue::try_new_null(field.data_type())?),
            };
            Ok(value.alias(field.name()))
        });
        let values = values.collect::<Result<Vec<_>>>()?;
        self.run(LogicalPlanBuilder::empty(true), values)
    }

    /// The values of a DEFAULT for so many rows.
    fn values(&self, default: &Expr, rows: usize) -> Result<ArrayRef> {
        let number: ArrayRef = Arc::new(BooleanArray::from(vec![true; rows]));
        let numbers = RecordBatch::try_from_iter([("row", number)])?;
        let table = MemTable::try_new(numbers.schema(), vec![vec![numbers]])?;
        let scan = LogicalPlanBuilder::scan("rows", provider_as_source(Arc::new(table)), None)?;
        Ok(self.run(scan, vec![default.clone().alias("value")])?.column(0).clone())
    }

    fn run(&self, input: LogicalPlanBuilder, values: Vec<Expr>) -> Result<RecordBatch> {
        let Writer { catalog, sequencer, query, .. } = self.writer;
        let bind = || -> Arc<dyn Sequences> {
            let mut entries = catalog.entries();
            // Others do not see it yet.
            if self.table.is_staged {
                let table = Arc::new(self.table.clone());
                Arc::make_mut(&mut entries).insert(table.name.clone(), table);
            }
            Arc::new(BoundSequences::of_tables(entries, sequencer.clone()))
        };
        let plan = at(input.project(values)?.build()?, Some(self.time), Some(&bind))?;
        let answer = query.run_all(plan.into())?;
        Ok(concat_batches(&answer.schema, &answer.batches)?)
    }
}

/// All columns of `schema` of rows of some of them; the others are NULL, and so are values that are absent.
pub(crate) fn complete_with_nulls(
    schema: &SchemaRef,
    rows: &RecordBatch,
    absent: &[Absent],
) -> Result<Vec<ArrayRef>> {
    let names = column_names(rows);
    fill(schema, &names, rows, absent, |column, rows| {
        Ok(new_null_array(schema.field(column).data_type(), rows))
    })
}

/// The names of a batch's columns.
pub(crate) fn column_names(rows: &RecordBatch) -> Vec<&str> {
    rows.schema_ref().fields().iter().map(|field| field.name().as_str()).collect()
}

/// All columns of `schema`, of which `rows` has those that are `named`. `defaults` has so many values of a column.
fn fill(
    schema: &SchemaRef,
    named: &[&str],
    rows: &RecordBatch,
    absent: &[Absent],
    defaults: impl Fn(usize, usize) -> Result<ArrayRef>,
) -> Result<Vec<ArrayRef>> {
    let column = |(number, field): (usize, &FieldRef)| -> Result<ArrayRef> {
        let Some(given) = named.iter().position(|name| name == field.name()) else {
            return defaults(number, rows.num_rows());
        };
        let mut values = rows.column(given).clone();
        for Absent { rows, .. } in absent.iter().filter(|absent| absent.column == given) {
            let missing = defaults(number, rows.true_count())?;
            values = zip(rows, &spread(&missing, rows)?, &values)?;
        }
        Ok(values)
    };
    schema.fields().iter().enumerate().map(column).collect()
}

/// A value, so many times.
fn repeated(value: &ArrayRef, times: usize) -> Result<ArrayRef> {
    Ok(take(value, &UInt32Array::from(vec![0; times]), None)?)
}

/// Values in the rows that are marked, one after the other, and NULL in the others.
fn spread(values: &ArrayRef, marked: &BooleanArray) -> Result<ArrayRef> {
    let mut next = 0..;
    let places = (0..marked.len()).map(|row| match marked.is_valid(row) && marked.value(row) {
        true => next.next(),
        false => None,
    });
    Ok(take(values, &places.collect::<UInt32Array>(), None)?)
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
