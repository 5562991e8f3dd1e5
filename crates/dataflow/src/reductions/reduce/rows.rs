//! The output of a reduction with two inputs.

use std::sync::Arc;

use alluvium_trace::Epoch;
use alluvium_trace::memory::StateContext;
use arrow::array::{ArrayRef, BooleanArray, new_null_array};
use arrow::datatypes::{DataType, SchemaRef};

use super::cogroup::PairOutput;
use crate::fault::{self, Fault};
use crate::movement::delta::{DELTA_ROWS, Delta, DeltaBuilder, delta_bytes};
use crate::rows::codec::Encoded;
use crate::rows::layout::{Layout, all_columns, assemble};

/// How rows of the left input become rows of the output.
pub(crate) struct Shape {
    /// The columns of the output.
    pub(crate) schema: SchemaRef,
    /// The types of NULL columns that come first.
    pub(crate) nulls_before: Vec<DataType>,
    /// The columns of the left rows.
    pub(crate) columns: Vec<usize>,
    /// The types of NULL columns that come next.
    pub(crate) nulls_after: Vec<DataType>,
    /// Whether a boolean, the mark of the row, is the last column.
    pub(crate) marked: bool,
}

impl Shape {
    /// Whole rows of `schema`.
    pub(crate) fn of_rows(schema: SchemaRef) -> Self {
        Self {
            columns: all_columns(&schema),
            schema,
            nulls_before: Vec::new(),
            nulls_after: Vec::new(),
            marked: false,
        }
    }
}

/// Collects changes of the output into deltas.
pub(crate) struct OutputRows {
    layout: Layout,
    shape: Shape,
    keys: Encoded,
    values: Encoded,
    marks: Vec<bool>,
    updates: DeltaBuilder<Epoch>,
    /// Deltas to be emitted.
    full: Vec<Delta<Epoch>>,
    /// The bytes of keys and values that make a delta full.
    most: usize,
}

impl OutputRows {
    /// For rows that `layout` encodes.
    pub(crate) fn new(layout: Layout, shape: Shape, context: &StateContext) -> Self {
        Self {
            layout,
            shape,
            keys: Encoded::counted(context),
            values: Encoded::counted(context),
            marks: Vec::new(),
            updates: DeltaBuilder::default(),
            full: Vec::new(),
            most: delta_bytes(context),
        }
    }

    /// Adds a change of a row.
    pub(crate) fn push(&mut self, key: &[u8], value: &[u8], mark: bool, time: Epoch, weight: i64) {
        if weight == 0 || weight < 0 && fault::armed(Fault::KeepOldAnswer) {
            return;
        }
        self.keys.push(key);
        self.values.push(value);
        if self.shape.marked {
            self.marks.push(mark);
        }
        self.updates.push(time, weight);
        if self.updates.len() >= DELTA_ROWS
            || self.keys.bytes().len() + self.values.bytes().len() >= self.most
        {
            self.flush();
        }
    }

    /// Whether a delta should be emitted before more is added.
    pub(crate) fn is_full(&self) -> bool {
        !self.full.is_empty()
    }
}

impl PairOutput for OutputRows {
    fn drain(&mut self) -> impl Iterator<Item = Delta<Epoch>> + '_ {
        self.full.drain(..)
    }

    fn flush(&mut self) {
        let rows = self.updates.len();
        if rows == 0 {
            return;
        }
        let nulls = |types: &[DataType]| -> Vec<ArrayRef> {
            types.iter().map(|data_type| new_null_array(data_type, rows)).collect()
        };
        let shape = &self.shape;
        let mut columns = nulls(&shape.nulls_before);
        columns.extend(self.layout.decode(self.keys.iter(), self.values.iter(), &shape.columns));
        columns.extend(nulls(&shape.nulls_after));
        if shape.marked {
            columns.push(Arc::new(BooleanArray::from(std::mem::take(&mut self.marks))));
        }
        self.keys.clear();
        self.values.clear();
        self.full.push(self.updates.finish(assemble(shape.schema.clone(), columns, rows)));
    }
}
