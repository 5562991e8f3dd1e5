//! Keys of a table's rows, as its dataflow encodes them.

use alluvium_dataflow::rows::codec::canonical_floats;
use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch};
use arrow::buffer::NullBuffer;
use arrow::compute::filter_record_batch;
use arrow::datatypes::Schema;
use arrow::row::{RowConverter, Rows, SortField};
use arrow::util::display::{ArrayFormatter, FormatOptions};

use crate::error::Result;

/// The columns of a key, and how they are encoded: bytes compare as keys do, and are those of the table's dataflow.
#[derive(Debug)]
pub(crate) struct KeyColumns {
    columns: Vec<usize>,
    converter: RowConverter,
    /// Whether -0.0 and 0.0 are one.
    is_canonical: bool,
}

impl KeyColumns {
    /// These columns of rows of a schema. -0.0 and 0.0 are one.
    pub(crate) fn new(schema: &Schema, columns: &[usize]) -> Result<Self> {
        Ok(Self { is_canonical: true, ..Self::exact(schema, columns)? })
    }

    /// As [`KeyColumns::new`], of values that differ if their bits do.
    pub(super) fn exact(schema: &Schema, columns: &[usize]) -> Result<Self> {
        let fields =
            columns.iter().map(|&column| SortField::new(schema.field(column).data_type().clone()));
        let converter = RowConverter::new(fields.collect())?;
        Ok(Self { columns: columns.to_vec(), converter, is_canonical: false })
    }

    /// The columns, by their numbers.
    pub(crate) fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// The keys of rows of which these are all columns.
    pub(crate) fn of(&self, columns: &[ArrayRef]) -> Result<Rows> {
        self.of_parts(self.columns.iter().map(|&column| &columns[column]))
    }

    /// The keys of which these are the columns.
    pub(crate) fn of_parts<'a>(&self, parts: impl Iterator<Item = &'a ArrayRef>) -> Result<Rows> {
        let key = parts.map(|values| match self.is_canonical {
            true => canonical_floats(values),
            false => Ok(values.clone()),
        });
        let key = key.collect::<std::result::Result<Vec<_>, _>>()?;
        Ok(self.converter.convert_columns(&key)?)
    }

    /// Where the keys of rows, of which these are all columns, have a NULL; `None` if nowhere.
    pub(crate) fn nulls(&self, columns: &[ArrayRef]) -> Option<NullBuffer> {
        let nulls = self.columns.iter().map(|&column| columns[column].logical_nulls());
        nulls.fold(None, |all, of| NullBuffer::union(all.as_ref(), of.as_ref()))
    }

    /// Those of rows that have no NULL in their keys.
    pub(crate) fn without_nulls(&self, rows: &RecordBatch) -> Result<RecordBatch> {
        match self.nulls(rows.columns()) {
            Some(nulls) if nulls.null_count() > 0 => {
                Ok(filter_record_batch(rows, &BooleanArray::new(nulls.into_inner(), None))?)
            }
            _ => Ok(rows.clone()),
        }
    }

    /// A key that these columns of a schema have been encoded to, in a message.
    pub(crate) fn decoded(&self, schema: &Schema, key: &[u8]) -> Result<String> {
        let parser = self.converter.parser();
        let columns = self.converter.convert_rows([parser.parse(key)])?;
        let fields = self.columns.iter().map(|&column| schema.field(column).clone());
        let schema = Schema::new(fields.collect::<Vec<_>>());
        Ok(written(&RecordBatch::try_new(schema.into(), columns)?, 0, 0..self.columns.len()))
    }

    /// The key of a row, in a message: `(a, b) = (1, x)`.
    pub(crate) fn written(&self, rows: &RecordBatch, row: usize) -> String {
        written(rows, row, self.columns.iter().copied())
    }
}

/// Some columns of a row, in a message.
fn written(rows: &RecordBatch, row: usize, columns: impl Iterator<Item = usize>) -> String {
    let (mut names, mut values) = (Vec::new(), Vec::new());
    for column in columns {
        names.push(rows.schema_ref().field(column).name().as_str());
        let value = ArrayFormatter::try_new(rows.column(column), &FormatOptions::default());
        values.push(value.map(|value| value.value(row).to_string()).unwrap_or_default());
    }
    format!("({}) = ({})", names.join(", "), values.join(", "))
}
