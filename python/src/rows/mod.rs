//! Rows that Python gives: to be inserted, upserted or deleted.
//!
//! A [`Target`] takes [Arrow data](arrow) and [objects of Python](python). Arrow data keeps its chunks. Columns are found by their names, or by their places in tuples, and become those of the table. Buffers are
//! copied: a frame may be changed as soon as a call has returned, and the engine encodes rows later.

mod arrow;
mod python;

use alluvium::arrow::array::{
    Array, ArrayRef, RecordBatch, RecordBatchOptions, make_array, new_null_array,
};
use alluvium::arrow::datatypes::{FieldRef, Schema, SchemaRef};
use alluvium::arrow::error::ArrowError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

pub(crate) use self::arrow::{arrow_reader, arrow_reader_is, take_rows};
use crate::error;

/// How many rows are converted at once.
const ROWS: usize = 1 << 16;

/// A table that takes rows.
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) schema: SchemaRef,
    /// Whether rows are deleted by key: other columns may be left out.
    pub(crate) key: Option<Vec<usize>>,
    /// Whether rows take the place of others.
    pub(crate) replaces: bool,
}

/// Rows with some columns of a table.
pub(crate) struct Columns {
    /// The names of the columns.
    pub(crate) names: Vec<String>,
    pub(crate) rows: RecordBatch,
}

impl Target {
    /// Calls `take` with all rows, some at a time.
    pub(crate) fn each(
        &self,
        rows: &Bound<'_, PyAny>,
        take: &mut dyn FnMut(Columns) -> PyResult<()>,
    ) -> PyResult<()> {
        if let Some(reader) = arrow_reader(rows)? {
            take_rows(rows)?;
            return self.each_batch(rows.py(), reader, take);
        }
        if let Ok(columns) = rows.cast::<PyDict>() {
            return self.columns_of(columns, take);
        }
        if rows.is_instance_of::<PyString>() {
            return Err(self.unknown(rows));
        }
        let Ok(iterator) = rows.try_iter() else { return Err(self.unknown(rows)) };
        self.each_item(&iterator, take)
    }

    /// The columns of a table that have these names.
    fn places<'a>(
        &self,
        py: Python<'_>,
        names: impl Iterator<Item = &'a String>,
    ) -> PyResult<Vec<usize>> {
        let fields = self.schema.fields();
        let mut places: Vec<usize> = Vec::new();
        for name in names {
            let exact = fields.iter().position(|field| field.name() == name);
            let folded = || fields.iter().position(|field| field.name().eq_ignore_ascii_case(name));
            let Some(place) = exact.or_else(folded) else {
                let known: Vec<&str> = fields.iter().map(|field| &**field.name()).collect();
                let message = format!(
                    "table \"{}\" has no column \"{name}\"; its columns are {}",
                    self.name,
                    known.join(", ")
                );
                return Err(error::data(py, &message));
            };
            if places.contains(&place) {
                let message =
                    format!("column \"{name}\" of table \"{}\" is given twice", self.name);
                return Err(error::data(py, &message));
            }
            places.push(place);
        }
        Ok(places)
    }

    /// Rows of these columns; of all columns, in the order of the table, if rows are deleted.
    fn complete(
        &self,
        py: Python<'_>,
        places: &[usize],
        columns: Vec<ArrayRef>,
        count: usize,
    ) -> PyResult<Columns> {
        let fields = self.schema.fields();
        let mut given: Vec<(FieldRef, ArrayRef)> =
            places.iter().map(|place| fields[*place].clone()).zip(columns).collect();
        if let Some(key) = &self.key {
            let needed: Vec<usize> = match key.is_empty() {
                true => (0..fields.len()).collect(),
                false => key.clone(),
            };
            if let Some(missing) = needed.iter().find(|column| !places.contains(column)) {
                let message = format!(
                    "rows to delete from table \"{}\" need its column \"{}\"",
                    self.name,
                    fields[*missing].name()
                );
                return Err(error::data(py, &message));
            }
            let all = fields.iter().enumerate().map(|(number, field)| {
                let place = places.iter().position(|place| *place == number);
                let given = place.map(|place| given[place].1.clone());
                let column = given.map_or_else(|| blank(field, count), Ok);
                Ok((field.clone(), column.map_err(|error| error::arrow(py, &error))?))
            });
            given = all.collect::<PyResult<_>>()?;
        }
        let names = given.iter().map(|(field, _)| field.name().clone()).collect();
        // The engine, and not Arrow, says that a column takes no NULL.
        let nullable = given.iter().map(|(field, _)| field.as_ref().clone().with_nullable(true));
        let schema = Schema::new(nullable.collect::<Vec<_>>());
        let columns = given.into_iter().map(|(_, column)| column).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        let rows = RecordBatch::try_new_with_options(schema.into(), columns, &options);
        Ok(Columns { names, rows: rows.map_err(|error| error::arrow(py, &error))? })
    }

    fn unknown(&self, rows: &Bound<'_, PyAny>) -> PyErr {
        let kind = rows.get_type().name().map_or_else(|_| String::new(), |name| name.to_string());
        let message = format!(
            "rows for table \"{}\" are a frame, Arrow data, a dict of columns, or dicts or tuples, one for each row; this is of type {kind}",
            self.name
        );
        error::interface(rows.py(), &message)
    }
}

/// Values that do not matter: those of columns that are no part of the key of rows to delete. They are NULL only where that is allowed.
fn blank(field: &FieldRef, count: usize) -> Result<ArrayRef, ArrowError> {
    let nulls = new_null_array(field.data_type(), count);
    match field.is_nullable() {
        true => Ok(nulls),
        // What stands there is zero, or empty.
        false => Ok(make_array(nulls.to_data().into_builder().nulls(None).build()?)),
    }
}
