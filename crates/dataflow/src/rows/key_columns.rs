//! Columns of a row, encoded as a key.

use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::SortOptions;
use arrow::datatypes::SchemaRef;

use crate::rows::codec::{CodecError, Encoded, KeyCodec};
use crate::rows::layout::types_of;

/// Some columns of a row and the codec that turns them into a key.
#[derive(Clone, Debug)]
pub struct KeyColumns {
    columns: Vec<usize>,
    codec: KeyCodec,
}

impl KeyColumns {
    /// The columns `columns` of `schema`, all ascending, NULLs first.
    ///
    /// Fails if a column has a type that cannot be a key.
    pub fn new(schema: &SchemaRef, columns: &[usize]) -> Result<Self, CodecError> {
        let codec = KeyCodec::new(&types_of(schema, columns))?;
        Ok(Self { columns: columns.to_vec(), codec })
    }

    /// The columns of `order`, each in its own direction.
    ///
    /// Fails if a column has a type that cannot be a key.
    pub fn ordered(schema: &SchemaRef, order: &[(usize, SortOptions)]) -> Result<Self, CodecError> {
        let fields =
            order.iter().map(|&(at, options)| (schema.field(at).data_type().clone(), options));
        let codec = KeyCodec::with_order(fields.collect())?;
        Ok(Self { columns: order.iter().map(|&(column, _)| column).collect(), codec })
    }

    /// The columns, in the order in which they are encoded.
    pub fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// Encodes and decodes the columns.
    pub fn codec(&self) -> &KeyCodec {
        &self.codec
    }

    /// Appends the key of each row.
    ///
    /// Panics if the columns are not of the types this was made for.
    pub fn encode(&self, rows: &RecordBatch, keys: &mut Encoded) {
        let columns: Vec<ArrayRef> =
            self.columns.iter().map(|&column| rows.column(column).clone()).collect();
        self.codec
            .encode(&columns, rows.num_rows(), keys)
            .expect("key columns have the types their codec was made for");
    }
}
