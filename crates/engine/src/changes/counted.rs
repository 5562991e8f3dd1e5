//! Arrays whose memory is counted until the last part of them is dropped, wherever it goes.

use std::sync::Arc;

use alluvium_dataflow::rows::layout::assemble;
use alluvium_trace::memory::{Charge, MemoryBudget};
use arrow::array::{Array, ArrayData, ArrayRef, RecordBatch, make_array};
use arrow::buffer::Buffer;
use bytes::Bytes;

/// Bytes, and their charge.
struct Counted {
    bytes: Buffer,
    _charge: Arc<Charge>,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The same bytes, which hold on to `charge`.
pub(crate) fn buffer(bytes: Buffer, charge: &Arc<Charge>) -> Buffer {
    Buffer::from(Bytes::from_owner(Counted { bytes, _charge: Arc::clone(charge) }))
}

/// The same rows, with each column's memory counted, and how much that is. Other arrays that share the memory are not
/// counted.
pub(crate) fn rows(rows: &RecordBatch, budget: &MemoryBudget) -> (RecordBatch, usize) {
    let mut all = 0;
    let columns = rows.columns().iter().map(|column| {
        let array = column.to_data();
        let bytes = bytes(column, &array);
        all += bytes;
        make_array(data(array, &Arc::new(budget.charge(bytes))))
    });
    let columns = columns.collect();
    (assemble(rows.schema(), columns, rows.num_rows()), all)
}

/// How much memory rows take, without that of larger batches that they are sliced from.
pub(crate) fn bytes_of(rows: &RecordBatch) -> usize {
    rows.columns().iter().map(|column| bytes(column, &column.to_data())).sum()
}

/// How much memory a column takes, without that of a larger one that it is sliced from.
fn bytes(column: &ArrayRef, array: &ArrayData) -> usize {
    array.get_slice_memory_size().unwrap_or_else(|_| column.get_array_memory_size())
}

fn data(array: ArrayData, charge: &Arc<Charge>) -> ArrayData {
    let buffers = array.buffers().iter().map(|bytes| buffer(bytes.clone(), charge)).collect();
    let children = array.child_data().iter().map(|child| data(child.clone(), charge)).collect();
    let array = array.into_builder().buffers(buffers).child_data(children);
    // SAFETY: the buffers are the same bytes at the same places, and all else is as it was in a valid array.
    unsafe { array.build_unchecked() }
}
