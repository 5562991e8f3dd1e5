//! Rows as entries: bytes that sort in a given order.
//!
//! ```text
//! entry   prefix | order key | value | length of the order key (4, little-endian)
//! ```

use std::sync::Arc;

use alluvium_trace::memory::StateContext;
use alluvium_trace::{BoundColumn, PageTime, RowBuffer};
use arrow::array::{ArrayRef, BinaryArray, RecordBatch};
use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use crate::movement::delta::{Delta, DeltaStream, each_delta};
use crate::rows::codec::{CodecError, Encoded};
use crate::rows::key_columns::KeyColumns;
use crate::rows::layout::Layout;

/// Turns rows into entries under their groups.
#[derive(Clone, Debug)]
pub(crate) struct EntryEncoder {
    /// The first bytes of every entry.
    prefix: Vec<u8>,
    layout: Layout,
    order: KeyColumns,
}

impl EntryEncoder {
    /// For rows that `layout` groups by its key, in `order`, and within that in the order of the bytes of their value.
    pub(crate) fn compile(
        layout: Layout,
        order: &[(usize, SortOptions)],
        prefix: Vec<u8>,
    ) -> Result<Self, CodecError> {
        let order = KeyColumns::ordered(layout.schema(), order)?;
        Ok(Self { prefix, layout, order })
    }

    /// The layout of the rows.
    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Where the first column of the order lies in the bytes of every entry without a prefix, if it is an integer, a date or a
    /// time.
    pub(crate) fn bound_of_order(&self, descending: bool) -> Option<BoundColumn> {
        self.order.codec().order_column(descending)
    }

    /// Encodes `rows`, for [`push_entries`].
    pub(crate) fn encode<'scope, T: PageTime>(
        self,
        rows: DeltaStream<'scope, T>,
        context: &StateContext,
    ) -> DeltaStream<'scope, T> {
        let layout = self.layout.clone();
        self.encode_under(rows, context, move |rows, groups| layout.encode_keys(rows, groups))
    }

    /// As [`encode`](Self::encode), under groups that `encode_groups` encodes instead of those of the layout.
    pub(crate) fn encode_under<'scope, T: PageTime>(
        self,
        rows: DeltaStream<'scope, T>,
        context: &StateContext,
        mut encode_groups: impl FnMut(&RecordBatch, &mut Encoded) + 'static,
    ) -> DeltaStream<'scope, T> {
        let schema: SchemaRef = Arc::new(Schema::new(vec![
            Field::new("group", DataType::Binary, false),
            Field::new("entry", DataType::Binary, false),
        ]));
        let mut groups = Encoded::counted(context);
        let mut orders = Encoded::counted(context);
        let mut outputs = Encoded::counted(context);
        each_delta(rows, "Entries", move |delta| {
            let count = delta.len();
            groups.clear();
            orders.clear();
            outputs.clear();
            encode_groups(&delta.rows, &mut groups);
            self.layout.encode_values_of(&delta.rows, &mut outputs);
            self.order.encode(&delta.rows, &mut orders);
            let mut entry = Vec::new();
            let around = self.prefix.len() + size_of::<u32>();
            let mut entries = arrow::array::BinaryBuilder::with_capacity(
                count,
                orders.bytes().len() + outputs.bytes().len() + around * count,
            );
            for row in 0..count {
                let order = orders.get(row);
                entry.clear();
                entry.extend_from_slice(&self.prefix);
                entry.extend_from_slice(order);
                entry.extend_from_slice(outputs.get(row));
                entry.extend_from_slice(&length(order));
                entries.append_value(&entry);
            }
            let groups = BinaryArray::from_iter_values(groups.iter());
            let columns: Vec<ArrayRef> = vec![Arc::new(groups), Arc::new(entries.finish())];
            *delta = Delta::new(
                RecordBatch::try_new(schema.clone(), columns)
                    .expect("a group and an entry for each row"),
                delta.times.clone(),
                delta.weights.clone(),
            );
        })
    }
}

/// The column of encoded rows that has their entries.
pub(crate) const ENTRY: usize = 1;

/// Adds encoded entries to a buffer.
pub(crate) fn push_entries<T: PageTime>(delta: &Delta<T>, buffer: &mut RowBuffer<T>) {
    let column = |index: usize| {
        delta
            .rows
            .column(index)
            .as_any()
            .downcast_ref::<BinaryArray>()
            .expect("encoded rows are bytes")
    };
    let (keys, values) = (column(0), column(ENTRY));
    for row in 0..delta.len() {
        buffer.push(keys.value(row), values.value(row), delta.time(row), delta.weight(row));
    }
}

/// The order key and the value of an entry with a prefix of `prefix` bytes.
pub(crate) fn split(entry: &[u8], prefix: usize) -> (&[u8], &[u8]) {
    let (row, order) = entry[prefix..].split_at(entry.len() - prefix - size_of::<u32>());
    row.split_at(read_length(order))
}

/// The length of `bytes`, as four bytes.
pub(crate) fn length(bytes: &[u8]) -> [u8; 4] {
    u32::try_from(bytes.len()).expect("a row is shorter than 4 GiB").to_le_bytes()
}

/// Reads the output of [`length`].
pub(crate) fn read_length(bytes: &[u8]) -> usize {
    u32::from_le_bytes(bytes.try_into().expect("a length has four bytes")) as usize
}
