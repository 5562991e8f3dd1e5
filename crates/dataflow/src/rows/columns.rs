//! Columns of a stream.

use std::sync::Arc;

use alluvium_trace::PageTime;
use arrow::datatypes::{Field, Schema, SchemaRef};

use crate::movement::delta::{Delta, DeltaStream, each_delta};
use crate::rows::layout::assemble;

/// Columns of a schema, as a schema of their own.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Columns {
    columns: Vec<usize>,
    schema: SchemaRef,
}

impl Columns {
    /// The columns `columns` of `schema`.
    pub(crate) fn new(schema: &SchemaRef, columns: Vec<usize>) -> Self {
        let fields: Vec<Field> =
            columns.iter().map(|&column| schema.field(column).clone()).collect();
        Self { columns, schema: Arc::new(Schema::new(fields)) }
    }

    /// The same columns with the names and the nullability of `schema`.
    pub(crate) fn named(columns: Vec<usize>, schema: SchemaRef) -> Self {
        Self { columns, schema }
    }

    /// The fields of the columns.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// These columns of a stream; nothing is copied.
    pub(crate) fn of<'scope, T: PageTime>(
        &self,
        stream: &DeltaStream<'scope, T>,
    ) -> DeltaStream<'scope, T> {
        let columns = self.clone();
        each_delta(stream.clone(), "Columns", move |delta| columns.pick(delta))
    }

    /// Leaves these columns of a delta; nothing is copied.
    pub(crate) fn pick<T>(&self, delta: &mut Delta<T>) {
        let Self { columns, schema } = self;
        let picked = columns.iter().map(|&column| delta.rows.column(column).clone()).collect();
        delta.rows = assemble(schema.clone(), picked, delta.rows.num_rows());
    }
}
