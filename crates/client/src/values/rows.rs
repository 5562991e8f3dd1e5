//! Rows that become a batch.

use std::error::Error as StdError;
use std::mem;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, Type};

use super::column::Column;
use super::kind::Kind;
use crate::error::Result;

/// How many rows a batch has at most.
const MOST_ROWS: usize = 8_192;
/// How many bytes of values make a batch full.
const MOST_BYTES: usize = 1 << 20;

/// Rows that were read, and not taken yet.
pub(crate) struct Rows {
    names: Vec<String>,
    kinds: Vec<Kind>,
    columns: Vec<Column>,
    count: usize,
    bytes: usize,
    /// The columns of the batches; `None` while arrays may turn out to have several dimensions.
    schema: Option<SchemaRef>,
}

impl Rows {
    /// No rows, of columns with these names and kinds.
    pub(crate) fn new(columns: Vec<(String, Kind)>) -> Self {
        let (names, kinds): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
        let columns = kinds.iter().map(|kind| Column::new(*kind)).collect();
        let is_known = kinds.iter().all(|kind| !kind.is_list);
        let mut rows = Self { names, kinds, columns, count: 0, bytes: 0, schema: None };
        rows.schema = is_known.then(|| rows.columns());
        rows
    }

    /// The columns; `None` until the first batch, if some are arrays.
    pub(crate) fn schema(&self) -> Option<&SchemaRef> {
        self.schema.as_ref()
    }

    /// The columns, as far as they are known: arrays may turn out to have several dimensions.
    fn columns(&self) -> SchemaRef {
        self.schema.clone().unwrap_or_else(|| {
            let of = self.names.iter().zip(&self.kinds);
            schema(of.map(|(name, kind)| (name, kind.data_type(0))))
        })
    }

    /// Adds a row of the server.
    pub(crate) fn add(&mut self, row: &Row) -> Result<()> {
        for column in 0..self.columns.len() {
            let value: Option<Bytes<'_>> = row.try_get(column)?;
            self.append(column, value.map(|Bytes(bytes)| bytes))?;
        }
        self.end_row();
        Ok(())
    }

    /// Adds a value to a column. The columns of a row are filled one after the other, and [`end_row`](Self::end_row) ends it.
    pub(super) fn append(&mut self, column: usize, value: Option<&[u8]>) -> Result<()> {
        match value {
            None => self.columns[column].append_null(),
            Some(bytes) => {
                self.columns[column].append(bytes)?;
                self.bytes += bytes.len();
            }
        }
        Ok(())
    }

    /// Ends a row.
    pub(super) fn end_row(&mut self) {
        self.count += 1;
    }

    /// The number of rows.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Whether they are enough for a batch.
    pub(crate) fn is_full(&self) -> bool {
        self.count >= MOST_ROWS || self.bytes >= MOST_BYTES
    }

    /// Takes the rows.
    pub(crate) fn take(&mut self) -> Result<RecordBatch> {
        let columns = self.columns.iter_mut().zip(&self.kinds);
        let arrays = columns.map(|(column, kind)| kind.exact(column.finish()?));
        let arrays: Vec<ArrayRef> = arrays.collect::<Result<_>>()?;
        let of = |array: &ArrayRef| array.data_type().clone();
        let schema = self
            .schema
            .get_or_insert_with(|| schema(self.names.iter().zip(arrays.iter().map(of))))
            .clone();
        self.bytes = 0;
        let options = RecordBatchOptions::new().with_row_count(Some(mem::take(&mut self.count)));
        Ok(RecordBatch::try_new_with_options(schema, arrays, &options)?)
    }

    /// Drops the rows, and keeps what is known of the columns.
    pub(crate) fn clear(&mut self) {
        self.columns = self.kinds.iter().map(|kind| Column::new(*kind)).collect();
        (self.count, self.bytes) = (0, 0);
    }
}

/// The bytes of a value, of any type.
struct Bytes<'a>(&'a [u8]);

impl<'a> FromSql<'a> for Bytes<'a> {
    fn from_sql(_: &Type, bytes: &'a [u8]) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(Self(bytes))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

fn schema<'a>(columns: impl Iterator<Item = (&'a String, DataType)>) -> SchemaRef {
    let fields = columns.map(|(name, data_type)| Field::new(name, data_type, true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}
