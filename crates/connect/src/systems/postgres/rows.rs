//! Rows under construction: texts go in, and a portion of a table's columns comes out.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use alluvium::{Portion, Refusal};
use arrow::array::{Array as _, ArrayRef, AsArray as _, BooleanArray, StringArray, StringBuilder};
use arrow::compute::filter;
use arrow::datatypes::{FieldRef, SchemaRef};
use arrow::error::ArrowError;

use super::pgoutput::Value;
use super::position::Lsn;
use super::spelling::usual;
use crate::fit::Fit;

/// The columns of a table that are read, filled by rows.
pub struct Rows {
    columns: Vec<Column>,
    /// The columns of the primary key, among these.
    key: Vec<usize>,
    /// For each row where its transaction is, and whether it is deleted.
    rows: Vec<(Lsn, bool)>,
    /// The keys of all rows from the first on that keeps a value.
    touched: Option<HashSet<Vec<u8>>>,
    refused: Vec<Refusal>,
    truncates: bool,
    bytes: u64,
}

struct Column {
    definition: FieldRef,
    is_of_key: bool,
    values: StringBuilder,
    /// The rows that keep the value which is there.
    kept: Vec<usize>,
}

impl Rows {
    /// Rows of these columns of a table, some of which are its key.
    pub fn new(schema: &SchemaRef, columns: &[usize], key: &[usize]) -> Self {
        let column = |&column: &usize| Column {
            definition: schema.fields()[column].clone(),
            is_of_key: key.contains(&column),
            values: StringBuilder::new(),
            kept: Vec::new(),
        };
        let place = |column: &usize| columns.iter().position(|other| other == column);
        Self {
            columns: columns.iter().map(column).collect(),
            key: key.iter().filter_map(place).collect(),
            rows: Vec::new(),
            touched: None,
            refused: Vec::new(),
            truncates: false,
            bytes: 0,
        }
    }

    /// The columns of the primary key.
    pub fn key(&self) -> &[usize] {
        &self.key
    }

    /// The names of the columns.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|column| column.definition.name().as_str())
    }

    /// Whether there is nothing to hand on.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.refused.is_empty() && !self.truncates
    }

    /// How many rows there are, and how many bytes their texts have.
    pub fn size(&self) -> (usize, usize) {
        (self.rows.len(), usize::try_from(self.bytes).unwrap_or(usize::MAX))
    }

    /// Forgets all rows.
    pub fn clear(&mut self) {
        for column in &mut self.columns {
            column.values = StringBuilder::new();
            column.kept.clear();
        }
        self.rows.clear();
        self.refused.clear();
        (self.touched, self.truncates, self.bytes) = (None, false, 0);
    }

    /// The table is emptied.
    pub fn truncate(&mut self) {
        let bytes = self.bytes;
        self.clear();
        (self.truncates, self.bytes) = (true, bytes);
    }

    /// A row is not taken in, for this reason.
    pub fn refuse(&mut self, place: String, message: String) {
        self.refused.push(Refusal::new(place, 0, message));
    }

    /// Whether a row with these values has to come in another portion than the rows so far: it keeps values that these may have changed.
    pub fn is_apart(&self, values: &[Value<'_>]) -> bool {
        if self.rows.is_empty() && !self.truncates || !values.contains(&Value::Unchanged) {
            return false;
        }
        match &self.touched {
            None => true,
            Some(touched) => touched.contains(&self.key_of(values)),
        }
    }

    /// Takes a row in, with a value for each of the columns.
    pub fn push(&mut self, values: &[Value<'_>], deleted: bool, at: Lsn) {
        if self.touched.is_none() && values.contains(&Value::Unchanged) {
            self.touched = Some(HashSet::new());
        }
        if self.touched.is_some() {
            let key = self.key_of(values);
            self.touched.get_or_insert_default().insert(key);
        }
        for (column, value) in self.columns.iter_mut().zip(values) {
            match value {
                Value::Text(text) => {
                    self.bytes += text.len() as u64;
                    column.values.append_value(usual(text, column.definition.data_type()));
                }
                Value::Null => column.values.append_null(),
                Value::Unchanged => {
                    column.values.append_null();
                    column.kept.push(self.rows.len());
                }
            }
        }
        self.rows.push((at, deleted));
    }

    fn key_of(&self, values: &[Value<'_>]) -> Vec<u8> {
        let mut key = Vec::new();
        for &column in &self.key {
            if let Value::Text(text) = values[column] {
                key.extend_from_slice(&text.len().to_le_bytes());
                key.extend_from_slice(text.as_bytes());
            }
        }
        key
    }

    /// Returns the rows taken in, and is empty again. A row with a text that is no value of its column here is refused.
    pub fn finish(&mut self, table: &str) -> Result<Portion, ArrowError> {
        let count = self.rows.len();
        let line = |row: usize| row as u64;
        let mut fit = Fit::new(Path::new(""), count, &line);
        for column in &mut self.columns {
            column.finish(&self.rows, &mut fit)?;
        }
        let mut portion = fit.finish()?;
        let mut stays = vec![true; count];
        let refusals = std::mem::take(&mut portion.refused).into_iter().map(|refusal| {
            let row = usize::try_from(refusal.line).unwrap_or(usize::MAX);
            stays[row] = false;
            Refusal::new(place(table, self.rows[row].0), 0, refusal.message)
        });
        portion.refused = refusals.collect();
        portion.refused.append(&mut self.refused);
        let deleted: BooleanArray = self.rows.iter().map(|(_, deleted)| Some(*deleted)).collect();
        if deleted.true_count() > 0 {
            let deleted = filter(&deleted, &BooleanArray::from(stays))?;
            portion.deleted = Some(deleted.as_boolean().clone());
        }
        portion.kept = std::mem::take(&mut portion.absent);
        portion.truncates = self.truncates;
        portion.bytes = self.bytes;
        self.clear();
        Ok(portion)
    }
}

impl Column {
    fn finish(&mut self, rows: &[(Lsn, bool)], fit: &mut Fit<'_>) -> Result<(), ArrowError> {
        let texts: StringArray = self.values.finish();
        let kept = match self.kept.is_empty() {
            true => None,
            false => {
                let mut kept = vec![false; rows.len()];
                self.kept.drain(..).for_each(|row| kept[row] = true);
                Some(BooleanArray::from(kept))
            }
        };
        // A row that is deleted by its key has no other values.
        if !self.definition.is_nullable() && texts.null_count() > 0 {
            let is_kept = |row| kept.as_ref().is_some_and(|kept| kept.value(row));
            for (row, (_, deleted)) in rows.iter().enumerate() {
                if texts.is_null(row) && !is_kept(row) && (!deleted || self.is_of_key) {
                    let name = self.definition.name();
                    fit.refuse(row, format!("there is no value (column {name} is NOT NULL)"));
                }
            }
        }
        let field = self.definition.as_ref().clone().with_nullable(true);
        let texts: ArrayRef = Arc::new(texts);
        fit.column(&field, &texts, kept)
    }
}

/// The place of a row, for people.
pub fn place(table: &str, at: Lsn) -> String {
    format!("{table}@{at}")
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, Field, Int64Type, Schema};

    use super::*;

    fn rows() -> Rows {
        let fields = vec![
            Field::new("id", DataType::Int64, false),
            Field::new("name", DataType::Utf8, false),
        ];
        Rows::new(&Arc::new(Schema::new(fields)), &[0, 1], &[0])
    }

    #[test]
    fn rows_that_do_not_fit_are_refused_with_their_places() {
        let mut rows = rows();
        rows.push(&[Value::Text("1"), Value::Text("a")], false, Lsn(1));
        rows.push(&[Value::Text("x"), Value::Text("b")], false, Lsn(2));
        rows.push(&[Value::Text("2"), Value::Null], true, Lsn(3));
        rows.push(&[Value::Text("3"), Value::Null], false, Lsn(4));
        let portion = rows.finish("t").unwrap();
        assert_eq!(portion.rows.column(0).as_primitive::<Int64Type>().values(), &[1, 2]);
        assert_eq!(portion.deleted, Some(BooleanArray::from(vec![false, true])));
        let refused: Vec<_> = portion.refused.iter().map(ToString::to_string).collect();
        assert_eq!(refused.len(), 2);
        assert!(refused[0].starts_with("t@0/2: ") && refused[0].contains("\"x\""), "{refused:?}");
        assert!(
            refused[1].starts_with("t@0/4: ") && refused[1].contains("NOT NULL"),
            "{refused:?}"
        );
        assert!(rows.is_empty());
    }

    #[test]
    fn values_that_are_kept_come_from_portions_before() {
        let mut rows = rows();
        let kept = [Value::Text("1"), Value::Unchanged];
        assert!(!rows.is_apart(&kept));
        rows.push(&[Value::Text("1"), Value::Text("a")], false, Lsn(1));
        assert!(rows.is_apart(&kept));
        rows.finish("t").unwrap();
        rows.push(&kept, false, Lsn(2));
        assert!(rows.is_apart(&kept) && !rows.is_apart(&[Value::Text("2"), Value::Unchanged]));
        let portion = rows.finish("t").unwrap();
        assert_eq!((portion.kept.len(), portion.kept[0].column, portion.absent.len()), (1, 1, 0));
    }

    #[test]
    fn an_emptied_table_forgets_rows_before() {
        let mut rows = rows();
        rows.push(&[Value::Text("1"), Value::Text("a")], false, Lsn(1));
        rows.truncate();
        let portion = rows.finish("t").unwrap();
        assert!(portion.truncates && portion.rows.num_rows() == 0);
    }
}
