//! Tables: changes in, contents out.
//!
//! A table without a key is a multiset: rows are added and taken away, and what is not there is not
//! taken away but counted as refused. A table with a key holds one row per key: a row that enters
//! replaces the one of its key, and within an epoch the last write wins, by the number it was given.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use alluvium_trace::memory::{StateContext, context};
use alluvium_trace::{Epoch, NullTrace, PageTime, RowBuffer, Spine};
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, UInt64Array};
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt64Type};
use timely::dataflow::Scope;

use crate::arrangement::{Arrangement, Kept, arrange_encoded};
use crate::codec::{CodecError, Encoded, KeyCodec, has_maps};
use crate::delta::{Delta, DeltaStream, Times};
use crate::exchange::exchange;
use crate::fault::{self, Fault};
use crate::fold::{Answer, Before, Changes, Logic, add, fold, weight_of};
use crate::input::{Input, input};
use crate::layout::{Layout, types_of};

/// The worker's end of a table's input.
///
/// Dropping it closes the table: its dataflow, and all that reads from it, finishes what is on its
/// way and ends.
pub struct TableInput {
    input: Input<Epoch>,
    numbered: SchemaRef,
}

/// Builds a table of `schema` that keeps its contents; `primary_key` is empty for one without a key.
///
/// `refused` counts the copies of absent rows that were to be taken away.
pub fn table<'scope>(
    scope: Scope<'scope, Epoch>,
    name: &str,
    schema: SchemaRef,
    primary_key: &[usize],
    refused: Arc<AtomicU64>,
) -> Result<(TableInput, Kept<'scope, Epoch>), CodecError> {
    let fields = schema.fields().iter().cloned();
    let number = Arc::new(Field::new("write", DataType::UInt64, false));
    let numbered = Arc::new(Schema::new(fields.chain([number]).collect::<Vec<_>>()));
    let (input, changes) = input(scope, name);
    let contents = if primary_key.is_empty() {
        unkeyed(changes, schema, refused)?
    } else {
        keyed(changes, schema, primary_key)?
    };
    Ok((TableInput { input, numbered }, contents))
}

impl TableInput {
    /// Rows that enter (weight one, or above for copies) or leave (weight below zero) at `epoch`,
    /// which must not be before the last [`TableInput::advance_to`]. Without weights, all enter. They are asked
    /// for when the dataflow takes them.
    ///
    /// For a keyed table a row that enters replaces the row of its key, and of a row that leaves only
    /// the key counts; `sequence` numbers the first row, the others follow, and within an epoch the
    /// highest number wins over all workers.
    pub fn send(
        &mut self,
        epoch: Epoch,
        sequence: u64,
        rows: impl FnOnce() -> (RecordBatch, Option<ScalarBuffer<i64>>) + 'static,
    ) {
        let numbered = self.numbered.clone();
        self.input.send(epoch, move || {
            let (rows, weights) = rows();
            let last = sequence + rows.num_rows() as u64;
            let numbers: ArrayRef = Arc::new(UInt64Array::from_iter_values(sequence..last));
            let mut columns = rows.columns().to_vec();
            columns.push(numbers);
            let rows = crate::layout::assemble(numbered, columns, rows.num_rows());
            Delta::new(rows, Times::Same(epoch), weights)
        });
    }

    /// Promises to send nothing before `epoch`.
    pub fn advance_to(&mut self, epoch: Epoch) {
        self.input.advance_to(epoch);
    }
}

fn unkeyed<'scope>(
    changes: DeltaStream<'scope, Epoch>,
    schema: SchemaRef,
    refused: Arc<AtomicU64>,
) -> Result<Kept<'scope, Epoch>, CodecError> {
    let layout = Layout::rows(schema.clone())?;
    let columns: Vec<usize> = (0..schema.fields().len()).collect();
    // Equal rows meet on one worker, by whatever of them can be a key.
    let is_key = |column: &usize| !has_maps(schema.field(*column).data_type());
    let spread: Vec<usize> = columns.iter().copied().filter(is_key).collect();
    let rows = exchange(changes, &spread, KeyCodec::new(&types_of(&schema, &spread))?);
    let context = context::current();
    let mut keys = Encoded::counted(&context);
    let mut values = Encoded::counted(&context);
    let encoding = layout.clone();
    let arranged = arrange_encoded::<_, NullTrace<Epoch>>(
        rows,
        &context,
        "TableChanges",
        layout.key_names(),
        move |delta, buffer| {
            keys.clear();
            values.clear();
            let rows = delta.rows.project(&columns).expect("the table's columns come first");
            encoding.encode(&rows, &mut keys, &mut values).expect("rows have the table's types");
            for row in 0..delta.len() {
                buffer.push(keys.get(row), &[], delta.time(row), delta.weight(row));
            }
        },
    );
    let arranged = fold::<Epoch, _, Spine<Epoch>, _>(
        arranged,
        0,
        &context,
        "Multiset",
        layout.key_names(),
        Multiset { refused },
    );
    Ok(Arrangement { arranged, layout, as_of: 0 })
}

/// Adds rows and takes them away, but never more than there are.
struct Multiset {
    refused: Arc<AtomicU64>,
}

impl<T: PageTime> Logic<T> for Multiset {
    fn fold(
        &mut self,
        changes: &Changes<T>,
        key: usize,
        before: &mut Before<'_, T>,
        answer: &mut Answer<T>,
    ) {
        // Only a row that leaves makes it matter how many there were.
        let leaves = changes.rows_of(key).any(|row| changes.change(row).weight < 0);
        let mut there = 0;
        if leaves && let Some(rows) = before.output(changes.key(key)) {
            there = weight_of(rows);
        }
        for moment in changes.moments(key) {
            let time = changes.change(moment.start).time;
            let mut weight = moment.fold(0, |sum, row| add(sum, changes.change(row).weight));
            let missing = -add(there, weight);
            if leaves && missing > 0 {
                self.refused.fetch_add(missing.unsigned_abs(), Ordering::Relaxed);
                weight = add(weight, missing);
            }
            there = add(there, weight);
            if weight != 0 {
                answer.push(&[], time, weight);
            }
        }
    }
}

fn keyed<'scope>(
    changes: DeltaStream<'scope, Epoch>,
    schema: SchemaRef,
    primary_key: &[usize],
) -> Result<Kept<'scope, Epoch>, CodecError> {
    let layout = Layout::keyed(schema.clone(), primary_key)?;
    let columns: Vec<usize> = (0..schema.fields().len()).collect();
    let rows = exchange(changes, primary_key, KeyCodec::new(&types_of(&schema, primary_key))?);
    let encoding = layout.clone();
    let context = context::current();
    let mut writes = Writes::new(&context);
    let arranged = arrange_encoded::<_, NullTrace<Epoch>>(
        rows,
        &context,
        "TableWrites",
        layout.key_names(),
        move |delta, buffer| {
            writes.encode(&encoding, &columns, delta, buffer);
        },
    );
    let arranged = fold::<Epoch, _, Spine<Epoch>, _>(
        arranged,
        0,
        &context,
        "LastWrite",
        layout.key_names(),
        LastWrite { row: Vec::new() },
    );
    Ok(Arrangement { arranged, layout, as_of: 0 })
}

/// Writes as values: the number (8 bytes, big-endian), one byte for "enters", the row's value.
struct Writes {
    keys: Encoded,
    values: Encoded,
    write: Vec<u8>,
}

impl Writes {
    fn new(context: &StateContext) -> Self {
        let (keys, values) = (Encoded::counted(context), Encoded::counted(context));
        Self { keys, values, write: Vec::new() }
    }

    fn encode(
        &mut self,
        layout: &Layout,
        columns: &[usize],
        delta: &Delta<Epoch>,
        buffer: &mut RowBuffer<Epoch>,
    ) {
        self.keys.clear();
        self.values.clear();
        let rows = delta.rows.project(columns).expect("the table's columns come first");
        layout
            .encode(&rows, &mut self.keys, &mut self.values)
            .expect("rows have the table's types");
        let numbers = delta.rows.column(columns.len()).as_primitive::<UInt64Type>();
        debug_assert_eq!(numbers.null_count(), 0);
        for row in 0..delta.len() {
            let enters = delta.weight(row) > 0;
            self.write.clear();
            self.write.extend_from_slice(&numbers.value(row).to_be_bytes());
            self.write.push(enters.into());
            if enters {
                self.write.extend_from_slice(self.values.get(row));
            }
            buffer.push(self.keys.get(row), &self.write, delta.time(row), 1);
        }
    }
}

/// Keeps the last row written under each key.
struct LastWrite {
    row: Vec<u8>,
}

impl<T: PageTime> Logic<T> for LastWrite {
    fn fold(
        &mut self,
        changes: &Changes<T>,
        key: usize,
        before: &mut Before<'_, T>,
        answer: &mut Answer<T>,
    ) {
        let mut there = before.only_output(changes.key(key), &mut self.row);
        for moment in changes.moments(key) {
            // Numbers sort first in a value, so the last write is the last row of its time.
            let last = match fault::armed(Fault::FirstWriteWins) {
                true => moment.start,
                false => moment.end - 1,
            };
            let time = changes.change(last).time;
            let (enters, row) = (changes.value(last)[8] != 0, &changes.value(last)[9..]);
            if there && enters && self.row == row {
                continue;
            }
            if there {
                answer.push(&self.row, time, -1);
            }
            if enters {
                answer.push(row, time, 1);
            }
            there = enters;
            self.row.clear();
            self.row.extend_from_slice(row);
        }
    }
}
