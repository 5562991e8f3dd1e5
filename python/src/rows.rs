//! Rows that Python gives: to be inserted, upserted or deleted.
//!
//! Arrow data keeps its chunks. Columns are found by their names, or by their places in tuples, and become those of the table. Buffers are
//! copied: a frame may be changed as soon as a call has returned, and the engine encodes rows later.

use alluvium::arrow::array::{
    Array, ArrayRef, MutableArrayData, RecordBatch, RecordBatchOptions, RecordBatchReader,
    make_array, new_null_array,
};
use alluvium::arrow::compute::{CastOptions, can_cast_types, cast_with_options};
use alluvium::arrow::datatypes::{FieldRef, Schema, SchemaRef};
use alluvium::arrow::error::ArrowError;
use alluvium::arrow::util::display::FormatOptions;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator, PyList, PyString, PyTuple};
use pyo3_arrow::input::AnyRecordBatch;

use crate::convert;
use crate::error;

/// How many rows are converted at once.
const ROWS: usize = 1 << 16;

/// A table that takes rows.
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) schema: SchemaRef,
    /// Whether rows are deleted by key: other columns may be left out.
    pub(crate) key: Option<Vec<usize>>,
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

    /// Items are rows, or more rows each.
    fn each_item(
        &self,
        items: &Bound<'_, PyIterator>,
        take: &mut dyn FnMut(Columns) -> PyResult<()>,
    ) -> PyResult<()> {
        let mut rows = Vec::new();
        let mut first = 0;
        for item in items {
            let item = item?;
            let is_row = self.is_row(&item);
            if !rows.is_empty() && (!is_row || rows.len() == ROWS) {
                take(self.of_rows(&rows, first)?)?;
                first += rows.len();
                rows.clear();
            }
            if is_row {
                rows.push(item);
                continue;
            }
            let is_rows = item.is_instance_of::<PyList>() || item.is_instance_of::<PyDict>();
            match is_rows || arrow_reader_is(&item)? {
                true => self.each(&item, take)?,
                false => return Err(self.unknown(&item)),
            }
        }
        match rows.is_empty() {
            true => Ok(()),
            false => take(self.of_rows(&rows, first)?),
        }
    }

    fn each_batch(
        &self,
        py: Python<'_>,
        mut reader: Box<dyn RecordBatchReader + Send>,
        take: &mut dyn FnMut(Columns) -> PyResult<()>,
    ) -> PyResult<()> {
        loop {
            let batch = match py.detach(|| reader.next()) {
                None => return Ok(()),
                Some(Ok(batch)) => batch,
                Some(Err(error)) => return Err(error::arrow(py, &error)),
            };
            let places =
                self.places(py, batch.schema().fields().iter().map(|field| field.name()))?;
            for start in (0..batch.num_rows()).step_by(ROWS) {
                let part = batch.slice(start, ROWS.min(batch.num_rows() - start));
                let columns = py.detach(|| self.fit(&places, part.columns()));
                let columns = columns.map_err(|message| error::data(py, &message))?;
                take(self.complete(py, &places, columns, part.num_rows())?)?;
            }
        }
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

    /// Copies of columns, with the types of the table.
    fn fit(&self, places: &[usize], columns: &[ArrayRef]) -> Result<Vec<ArrayRef>, String> {
        let fields = places.iter().map(|place| &self.schema.fields()[*place]);
        fields.zip(columns).map(|(field, column)| fitted(field, column)).collect()
    }

    /// A dict of columns.
    fn columns_of(
        &self,
        columns: &Bound<'_, PyDict>,
        take: &mut dyn FnMut(Columns) -> PyResult<()>,
    ) -> PyResult<()> {
        let py = columns.py();
        let mut names: Vec<String> = Vec::with_capacity(columns.len());
        let mut lists: Vec<Vec<Bound<'_, PyAny>>> = Vec::with_capacity(columns.len());
        for (name, values) in columns {
            let Ok(name) = name.extract::<String>() else {
                return Err(error::interface(py, "the keys of a dict of columns are their names"));
            };
            let values = match values.is_instance_of::<PyString>() {
                true => None,
                false => values.try_iter().ok(),
            };
            let Some(values) = values else {
                let message = format!(
                    "column \"{name}\" is no sequence of values: give a dict of columns, or a list of dicts, one for each row"
                );
                return Err(error::interface(py, &message));
            };
            names.push(name);
            lists.push(values.collect::<PyResult<_>>()?);
        }
        let places = self.places(py, names.iter())?;
        let count = lists.first().map_or(0, Vec::len);
        if let Some(other) = lists.iter().position(|list| list.len() != count) {
            let message = format!(
                "column \"{}\" has {count} values, and column \"{}\" has {}",
                names[0],
                names[other],
                lists[other].len()
            );
            return Err(error::data(py, &message));
        }
        for start in (0..count).step_by(ROWS) {
            let end = count.min(start + ROWS);
            let part = places.iter().zip(&lists);
            let part = part.map(|(place, list)| {
                convert::array(&list[start..end], &self.schema.fields()[*place], start)
            });
            let part = part.collect::<PyResult<_>>()?;
            take(self.complete(py, &places, part, end - start)?)?;
        }
        Ok(())
    }

    /// Rows that are dicts or sequences; the number of the first is `first`.
    fn of_rows(&self, rows: &[Bound<'_, PyAny>], first: usize) -> PyResult<Columns> {
        let py = rows[0].py();
        match rows[0].cast::<PyDict>() {
            Ok(_) => self.of_dicts(py, rows, first),
            Err(_) => self.of_sequences(py, rows, first),
        }
    }

    fn of_dicts(
        &self,
        py: Python<'_>,
        rows: &[Bound<'_, PyAny>],
        first: usize,
    ) -> PyResult<Columns> {
        let mut names: Vec<String> = Vec::new();
        let mut columns: Vec<Vec<Bound<'_, PyAny>>> = Vec::new();
        let none = py.None().into_bound(py);
        for (number, row) in rows.iter().enumerate() {
            let Ok(row) = row.cast::<PyDict>() else { return Err(self.mixed(py, first + number)) };
            for (name, value) in row {
                let Ok(name) = name.extract::<String>() else {
                    return Err(error::interface(py, "the keys of a row are names of columns"));
                };
                let column = names.iter().position(|known| *known == name).unwrap_or_else(|| {
                    names.push(name);
                    columns.push(Vec::with_capacity(rows.len()));
                    columns.len() - 1
                });
                // A row that has no value here is NULL.
                columns[column].resize(number, none.clone());
                columns[column].push(value);
            }
        }
        columns.iter_mut().for_each(|column| column.resize(rows.len(), none.clone()));
        let places = self.places(py, names.iter())?;
        let arrays = places.iter().zip(&columns);
        let arrays = arrays
            .map(|(place, column)| convert::array(column, &self.schema.fields()[*place], first));
        let arrays = arrays.collect::<PyResult<_>>()?;
        self.complete(py, &places, arrays, rows.len())
    }

    fn of_sequences(
        &self,
        py: Python<'_>,
        rows: &[Bound<'_, PyAny>],
        first: usize,
    ) -> PyResult<Columns> {
        let fields = self.schema.fields();
        let mut columns: Vec<Vec<Bound<'_, PyAny>>> =
            fields.iter().map(|_| Vec::with_capacity(rows.len())).collect();
        for (number, row) in rows.iter().enumerate() {
            let mut count = 0;
            let mut add = |value| {
                if let Some(column) = columns.get_mut(count) {
                    column.push(value);
                }
                count += 1;
            };
            if let Ok(row) = row.cast::<PyTuple>() {
                row.iter().for_each(&mut add);
            } else if let Ok(row) = row.cast::<PyList>() {
                row.iter().for_each(&mut add);
            } else {
                return Err(self.mixed(py, first + number));
            }
            if count != fields.len() {
                let number = first + number;
                let message = format!(
                    "row {number} has {count} values, and table \"{}\" has {} columns; give dicts to leave some out",
                    self.name,
                    fields.len()
                );
                return Err(error::data(py, &message));
            }
        }
        let arrays = fields.iter().zip(&columns);
        let arrays = arrays.map(|(field, column)| convert::array(column, field, first));
        let places: Vec<usize> = (0..fields.len()).collect();
        self.complete(py, &places, arrays.collect::<PyResult<_>>()?, rows.len())
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

    /// Whether an item of an iterator is one row, and not several.
    fn is_row(&self, item: &Bound<'_, PyAny>) -> bool {
        if item.is_instance_of::<PyTuple>() {
            return true;
        }
        if let Ok(list) = item.cast::<PyList>() {
            let is_of_rows = list.get_item(0).is_ok_and(|first| {
                first.is_instance_of::<PyTuple>() || first.is_instance_of::<PyDict>()
            });
            return !is_of_rows && !list.is_empty();
        }
        let Ok(row) = item.cast::<PyDict>() else { return false };
        let is_value = |(name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            !value.is_instance_of::<PyList>()
                || name.extract::<String>().is_ok_and(|name| self.takes_lists(&name))
        };
        // A dict of columns has lists, also for columns of numbers.
        row.is_empty() || row.iter().any(is_value)
    }

    fn takes_lists(&self, column: &str) -> bool {
        let field = self.schema.fields().iter().find(|field| field.name() == column);
        field.is_some_and(|field| field.data_type().is_list())
    }

    fn mixed(&self, py: Python<'_>, number: usize) -> PyErr {
        error::interface(
            py,
            &format!("row {number} is no row of the kind that the rows before it are"),
        )
    }

    fn unknown(&self, rows: &Bound<'_, PyAny>) -> PyErr {
        let kind = rows.get_type().name().map_or_else(|_| String::new(), |name| name.to_string());
        let message = format!(
            "a {kind} is no rows for table \"{}\": give a frame, Arrow data, a dict of columns, or dicts or tuples, one for each row",
            self.name
        );
        error::interface(rows.py(), &message)
    }
}

/// Whether an object has Arrow data.
pub(crate) fn arrow_reader_is(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(object.hasattr("__arrow_c_stream__")? || object.hasattr("__arrow_c_array__")?)
}

/// The record batches of an object that has Arrow data; `None` if it has none.
pub(crate) fn arrow_reader(
    object: &Bound<'_, PyAny>,
) -> PyResult<Option<Box<dyn RecordBatchReader + Send>>> {
    match arrow_reader_is(object)? {
        false => Ok(None),
        true => object.extract::<AnyRecordBatch>()?.into_reader().map(Some),
    }
}

/// A copy of a column, as one of this type.
fn fitted(field: &FieldRef, column: &ArrayRef) -> Result<ArrayRef, String> {
    let wanted = field.data_type();
    let named = |error: ArrowError| format!("column \"{}\": {error}", field.name());
    if column.data_type() == wanted {
        return copied(column).map_err(named);
    }
    if !can_cast_types(column.data_type(), wanted) {
        return Err(format!(
            "column \"{}\" takes {}, and is given {}",
            field.name(),
            convert::sql_type(wanted),
            convert::sql_type(column.data_type())
        ));
    }
    let options = CastOptions { safe: false, format_options: FormatOptions::default() };
    let cast = cast_with_options(column, wanted, &options).map_err(named)?;
    // A cast may share buffers.
    copied(&cast).map_err(named)
}

/// The same values in buffers of their own.
fn copied(column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let data = column.to_data();
    let mut copy = MutableArrayData::new(vec![&data], false, data.len());
    copy.try_extend(0, 0, data.len())?;
    Ok(make_array(copy.freeze()))
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
