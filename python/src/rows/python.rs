//! Rows that are objects of Python: dicts of columns, and dicts, tuples and lists, one for each row.

use alluvium::arrow::array::{ArrayRef, UInt64Array};
use alluvium::arrow::compute;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyIterator, PyList, PyString, PyTuple};

use super::arrow::arrow_reader_is;
use super::{Columns, ROWS, Target};
use crate::convert;
use crate::error;

impl Target {
    /// Items are rows, or more rows each.
    pub(super) fn each_item(
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
                self.take_rows(&rows, first, take)?;
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
            false => self.take_rows(&rows, first, take),
        }
    }

    /// Takes rows that are dicts or sequences; the number of the first is `first`.
    fn take_rows(
        &self,
        rows: &[Bound<'_, PyAny>],
        first: usize,
        take: &mut dyn FnMut(Columns) -> PyResult<()>,
    ) -> PyResult<()> {
        let py = rows[0].py();
        match rows[0].is_instance_of::<PyDict>() {
            true => self.take_dicts(py, rows, first, take),
            false => take(self.of_sequences(py, rows, first)?),
        }
    }

    /// A dict of columns.
    pub(super) fn columns_of(
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

    /// Takes rows that have the same columns together: others get their DEFAULT.
    fn take_dicts(
        &self,
        py: Python<'_>,
        rows: &[Bound<'_, PyAny>],
        first: usize,
        take: &mut dyn FnMut(Columns) -> PyResult<()>,
    ) -> PyResult<()> {
        let mut names: Vec<String> = Vec::new();
        let mut columns: Vec<Vec<Bound<'_, PyAny>>> = Vec::new();
        let mut groups: Vec<Group> = Vec::new();
        let none = py.None().into_bound(py);
        for (number, row) in rows.iter().enumerate() {
            let Ok(row) = row.cast::<PyDict>() else { return Err(self.mixed(py, first + number)) };
            let mut own = Vec::with_capacity(row.len());
            for (name, value) in row {
                let Ok(name) = name.extract::<String>() else {
                    return Err(error::interface(py, "the keys of a row are names of columns"));
                };
                let column = names.iter().position(|known| *known == name).unwrap_or_else(|| {
                    names.push(name);
                    columns.push(Vec::with_capacity(rows.len()));
                    columns.len() - 1
                });
                columns[column].resize(number, none.clone());
                columns[column].push(value);
                own.push(column);
            }
            own.sort_unstable();
            // Of rows with one key the last one counts, and they stay in order.
            let known = match self.replaces {
                true => groups.last_mut().filter(|group| group.columns == own),
                false => groups.iter_mut().find(|group| group.columns == own),
            };
            match known {
                Some(group) => group.rows.push(number as u64),
                None => groups.push(Group { columns: own, rows: vec![number as u64] }),
            }
        }
        columns.iter_mut().for_each(|column| column.resize(rows.len(), none.clone()));
        let places = self.places(py, names.iter())?;
        let arrays = places.iter().zip(&columns);
        let arrays = arrays
            .map(|(place, column)| convert::array(column, &self.schema.fields()[*place], first));
        let arrays = arrays.collect::<PyResult<Vec<ArrayRef>>>()?;
        if groups.len() == 1 {
            return take(self.complete(py, &places, arrays, rows.len())?);
        }
        for Group { columns, rows } in groups {
            let places: Vec<usize> = columns.iter().map(|column| places[*column]).collect();
            let count = rows.len();
            let rows = UInt64Array::from(rows);
            let arrays = columns.iter().map(|column| compute::take(&arrays[*column], &rows, None));
            let arrays = arrays.collect::<Result<_, _>>();
            let arrays = arrays.map_err(|error| error::arrow(py, &error))?;
            take(self.complete(py, &places, arrays, count)?)?;
        }
        Ok(())
    }

    fn of_sequences(
        &self,
        py: Python<'_>,
        rows: &[Bound<'_, PyAny>],
        first: usize,
    ) -> PyResult<Columns> {
        let fields = self.schema.fields();
        let places = self.places_of_sequence(&rows[0]);
        let mut columns: Vec<Vec<Bound<'_, PyAny>>> =
            places.iter().map(|_| Vec::with_capacity(rows.len())).collect();
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
            if count != places.len() {
                let names = places.iter().map(|place| fields[*place].name().as_str());
                let message = format!(
                    "row {} has {count} value{} for the columns {} of table \"{}\"; give dicts to leave some out",
                    first + number,
                    if count == 1 { "" } else { "s" },
                    names.collect::<Vec<_>>().join(", "),
                    self.name
                );
                return Err(error::data(py, &message));
            }
        }
        let arrays = places.iter().zip(&columns);
        let arrays = arrays.map(|(place, column)| convert::array(column, &fields[*place], first));
        let arrays = arrays.collect::<PyResult<_>>()?;
        self.complete(py, &places, arrays, rows.len())
    }

    /// The columns of the values of a sequence: all, or, of a row to delete, those of the key.
    fn places_of_sequence(&self, row: &Bound<'_, PyAny>) -> Vec<usize> {
        let count = row.len().ok();
        match &self.key {
            Some(key) if !key.is_empty() && count == Some(key.len()) => key.clone(),
            _ => (0..self.schema.fields().len()).collect(),
        }
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
}

/// Rows that have the same columns.
struct Group {
    columns: Vec<usize>,
    rows: Vec<u64>,
}
