//! Tables: changes in, contents out.
//!
//! A table without a primary key is a multiset: rows are inserted and deleted, and deletions of absent rows are
//! refused and counted. It keeps its rows in the order of a time or a number, if it has one, as they mostly arrive. If rows are only
//! inserted, they are kept in the order in which they arrive: then nothing is sorted, and merges move whole pages. A table with a primary key holds one row per key: an inserted row replaces the row of its
//! key, and within an epoch the write with the highest sequence number wins. A row below a [waterline](crate::time::late) stays
//! as it is.
//!
//! A table [publishes](crate::movement::publication) its changes for the views that read them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use alluvium_trace::memory::StateContext;
use alluvium_trace::{Batch, Epoch, RowBuffer, Spine};
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, UInt64Array};
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt64Type};
use timely::dataflow::Scope;

use crate::fault::{self, Fault};
use crate::movement::delta::{Delta, DeltaStream, Times};
use crate::movement::exchange::exchange_by_key;
use crate::movement::input::{Input, input};
use crate::movement::publication::Publication;
use crate::reductions::reduce::{Changes, Logic, Output, Prior, Unkept, reduce};
use crate::rows::codec::{CodecError, Encoded};
use crate::rows::layout::{Layout, assemble};
use crate::rows::weight::{add, weight_of};
use crate::state::arrangement::{Arrangement, Kept, arrange_encoded};
use crate::time::late::{Late, LateRows};

/// The worker's end of a table's input.
///
/// Dropping it closes the table: its dataflow and all its readers process the changes they have, and end.
pub struct TableInput {
    input: Input<Epoch>,
    numbered: SchemaRef,
}

/// The columns and the primary key of a table.
#[derive(Clone, Debug)]
pub struct Spec {
    /// The columns and the sequence number of each write.
    numbered: SchemaRef,
    layout: Layout,
    order: Order,
}

/// How a table keeps its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// One under each primary key.
    PrimaryKey,
    /// A multiset of whole rows.
    Rows,
    /// As they arrive.
    Arrival,
}

impl Spec {
    /// A table of `schema`; `primary_key` is empty for a table without one. Rows are only inserted if it is `append_only`.
    ///
    /// Fails if a column has a type that cannot be stored, or a key column one that cannot be a key.
    pub fn compile(
        schema: SchemaRef,
        primary_key: &[usize],
        append_only: bool,
    ) -> Result<Self, CodecError> {
        let fields = schema.fields().iter().cloned();
        let number = Arc::new(Field::new("write", DataType::UInt64, false));
        let numbered = Arc::new(Schema::new(fields.chain([number]).collect::<Vec<_>>()));
        let (layout, order) = match (primary_key, append_only) {
            ([], true) => (Layout::keyed(schema, &[])?, Order::Arrival),
            ([], false) => (Layout::rows_by_arrival(schema)?, Order::Rows),
            (key, _) => (Layout::keyed(schema, key)?, Order::PrimaryKey),
        };
        Ok(Self { numbered, layout, order })
    }

    /// The layout of the contents.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }
}

/// Builds a table that keeps its contents.
///
/// `refused` counts the deleted copies of absent rows of a table without a primary key, and `late` the writes to rows of
/// one with a primary key that are too late.
pub fn table<'scope>(
    spec: &Spec,
    scope: Scope<'scope, Epoch>,
    name: &str,
    refused: Arc<AtomicU64>,
    late: Late,
    context: &StateContext,
) -> (TableInput, Kept<'scope>, Publication) {
    let (input, changes) = input(scope, name, context);
    let publication = Publication::new(&spec.layout, context);
    let contents = match spec.order {
        Order::PrimaryKey => keyed(spec, changes, late, &publication, context),
        Order::Rows => unkeyed(spec, changes, refused, &publication, context),
        Order::Arrival => arriving(spec, changes, &publication, context),
    };
    publication.follow(contents.arranged.stream.clone());
    (TableInput { input, numbered: spec.numbered.clone() }, contents, publication)
}

impl TableInput {
    /// Changes rows at `epoch`, which must not be before the last [`TableInput::advance_to`]: a positive weight inserts
    /// copies, a negative one deletes them, and without weights each row is inserted once. `rows` is called when the
    /// dataflow takes the change.
    ///
    /// With a primary key, an inserted row replaces the row of its key, and a deletion reads only the key columns.
    /// `sequence` is the number of the first row, and the others follow; within an epoch the highest number of all workers
    /// wins.
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
            let rows = assemble(numbered, columns, rows.num_rows());
            Delta::new(rows, Times::Same(epoch), weights)
        });
    }

    /// Promises to send nothing before `epoch`.
    pub fn advance_to(&mut self, epoch: Epoch) {
        self.input.advance_to(epoch);
    }
}

fn unkeyed<'scope>(
    spec: &Spec,
    changes: DeltaStream<'scope, Epoch>,
    refused: Arc<AtomicU64>,
    publication: &Publication,
    context: &StateContext,
) -> Kept<'scope> {
    let layout = &spec.layout;
    // Equal rows meet on one worker.
    let rows = exchange_by_key(changes, layout, context);
    let mut encoded = EncodedRows::new(layout, context);
    let publishing = publication.clone();
    let encode = move |delta: &Delta<Epoch>, buffer: &mut RowBuffer<Epoch>| {
        publishing.publish(sent_at(delta), || delta.clone());
        encoded.fill(delta);
        for row in 0..delta.len() {
            buffer.push(encoded.keys.get(row), &[], delta.time(row), delta.weight(row));
        }
    };
    let logic = Multiset { refused, publication: publication.clone() };
    let key = layout.key_names();
    let changes = Unkept { rows, encode };
    let arranged = reduce::<Spine<Epoch>, _>(changes, "Multiset", key, context, logic);
    Arrangement::kept(arranged, layout.clone())
}

fn arriving<'scope>(
    spec: &Spec,
    changes: DeltaStream<'scope, Epoch>,
    publication: &Publication,
    context: &StateContext,
) -> Kept<'scope> {
    let layout = &spec.layout;
    let mut encoded = EncodedRows::new(layout, context);
    let mut arrivals = Arrivals::default();
    let publishing = publication.clone();
    // No row ever goes, so equal ones need not meet.
    let arranged = arrange_encoded::<_, Spine<Epoch>>(
        changes,
        "TableRows",
        layout.key_names(),
        context,
        move |delta, buffer| {
            let epoch = sent_at(delta);
            publishing.publish(epoch, || delta.clone());
            encoded.fill(delta);
            for row in 0..delta.len() {
                let key = arrivals.next(epoch).to_be_bytes();
                buffer.push(&key, encoded.values.get(row), &epoch, delta.weight(row));
            }
        },
    );
    Arrangement::kept(arranged, layout.clone())
}

/// Numbers rows in the order of their arrival: with their epoch, and those of an epoch in turn.
///
/// Nothing depends on it but how quickly rows are merged: two may have the same number.
#[derive(Default)]
struct Arrivals {
    epoch: Epoch,
    rows: u64,
}

impl Arrivals {
    /// The number of the next row of `epoch`.
    fn next(&mut self, epoch: Epoch) -> u64 {
        if epoch != self.epoch {
            *self = Self { epoch, rows: 0 };
        }
        let row = self.rows;
        self.rows += 1;
        (epoch << 24).wrapping_add(row)
    }
}

/// The epoch at which the rows of a delta were sent, which is one.
fn sent_at(delta: &Delta<Epoch>) -> Epoch {
    match delta.times {
        Times::Same(time) => time,
        Times::Each(_) => unreachable!("the changes of a table are sent epoch by epoch"),
    }
}

/// The rows of a change of a table, encoded.
struct EncodedRows {
    layout: Layout,
    keys: Encoded,
    values: Encoded,
}

impl EncodedRows {
    fn new(layout: &Layout, context: &StateContext) -> Self {
        let (keys, values) = (Encoded::counted(context), Encoded::counted(context));
        Self { layout: layout.clone(), keys, values }
    }

    /// Encodes these rows in the place of those before.
    fn fill(&mut self, delta: &Delta<Epoch>) {
        self.keys.clear();
        self.values.clear();
        self.layout.encode(&without_numbers(delta), &mut self.keys, &mut self.values);
    }
}

/// The rows of a table without the sequence numbers of their writes.
fn without_numbers(delta: &Delta<Epoch>) -> RecordBatch {
    let columns: Vec<usize> = (0..delta.rows.num_columns() - 1).collect();
    delta.rows.project(&columns).expect("a projection to columns that exist")
}

/// Inserts and deletes rows, but deletes no more copies than there are.
struct Multiset {
    refused: Arc<AtomicU64>,
    publication: Publication,
}

impl Logic for Multiset {
    fn passes(&self, batch: &Batch<Epoch>) -> bool {
        // Insertions alone need not know the present weights.
        batch.retractions() == 0
    }

    fn reduce(
        &mut self,
        changes: &Changes,
        key: usize,
        prior: &mut Prior<'_>,
        output: &mut Output,
    ) {
        let leaves = changes.rows_of(key).any(|row| changes.change(row).weight < 0);
        let mut there = 0;
        if leaves && let Some(rows) = prior.output(changes.key(key)) {
            there = weight_of(rows);
        }
        for slice in changes.time_slices(key) {
            let time = changes.change(slice.start).time;
            let mut weight = slice.fold(0, |sum, row| add(sum, changes.change(row).weight));
            let missing = -add(there, weight);
            if leaves && missing > 0 {
                self.refused.fetch_add(missing.unsigned_abs(), Ordering::Relaxed);
                self.publication.correct(changes.key(key), &[], time, missing);
                weight = add(weight, missing);
            }
            there = add(there, weight);
            if weight != 0 {
                output.push(&[], time, weight);
            }
        }
    }
}

fn keyed<'scope>(
    spec: &Spec,
    changes: DeltaStream<'scope, Epoch>,
    late: Late,
    publication: &Publication,
    context: &StateContext,
) -> Kept<'scope> {
    let layout = &spec.layout;
    let rows = exchange_by_key(changes, layout, context);
    let publishing = publication.clone();
    let mut writes = Writes::new(layout, context);
    let encode = move |delta: &Delta<Epoch>, buffer: &mut RowBuffer<Epoch>| {
        publishing.publish(sent_at(delta), || insertions(delta));
        writes.encode(delta, buffer);
    };
    let (row, late) = (Vec::new(), late.rows(layout));
    let logic = LastWrite { row, late, publication: publication.clone() };
    let key = layout.key_names();
    let changes = Unkept { rows, encode };
    let arranged = reduce::<Spine<Epoch>, _>(changes, "LastWrite", key, context, logic);
    Arrangement::kept(arranged, layout.clone())
}

/// The writes that insert a row, each of them once.
fn insertions(writes: &Delta<Epoch>) -> Delta<Epoch> {
    let Some(weights) = &writes.weights else { return writes.clone() };
    let inserts = BooleanArray::from_iter(weights.iter().map(|weight| Some(*weight > 0)));
    let Delta { rows, times, .. } = writes.filter(&inserts);
    Delta::new(rows, times, None)
}

/// Encodes writes as values: the sequence number (8 bytes, big-endian), one byte that is 1 for an insertion, and the value
/// of an inserted row.
struct Writes {
    rows: EncodedRows,
    write: Vec<u8>,
}

impl Writes {
    fn new(layout: &Layout, context: &StateContext) -> Self {
        Self { rows: EncodedRows::new(layout, context), write: Vec::new() }
    }

    fn encode(&mut self, delta: &Delta<Epoch>, buffer: &mut RowBuffer<Epoch>) {
        self.rows.fill(delta);
        let last = delta.rows.num_columns() - 1;
        let numbers = delta.rows.column(last).as_primitive::<UInt64Type>();
        debug_assert_eq!(numbers.null_count(), 0);
        for row in 0..delta.len() {
            let inserts = delta.weight(row) > 0;
            self.write.clear();
            self.write.extend_from_slice(&numbers.value(row).to_be_bytes());
            self.write.push(inserts.into());
            if inserts {
                self.write.extend_from_slice(self.rows.values.get(row));
            }
            buffer.push(self.rows.keys.get(row), &self.write, delta.time(row), 1);
        }
    }
}

/// Keeps the row of the last write under each key.
struct LastWrite {
    row: Vec<u8>,
    late: LateRows,
    publication: Publication,
}

impl Logic for LastWrite {
    fn reduce(
        &mut self,
        changes: &Changes,
        key: usize,
        prior: &mut Prior<'_>,
        output: &mut Output,
    ) {
        let mut there = prior.only_output(changes.key(key), &mut self.row);
        for slice in changes.time_slices(key) {
            // Values sort by sequence number, so the last write of an epoch is the last row of its time slice.
            let last = match fault::armed(Fault::FirstWriteWins) {
                true => slice.start,
                false => slice.end - 1,
            };
            let time = changes.change(last).time;
            // All rows that were inserted are published.
            let undo = |row: &[u8]| self.publication.correct(changes.key(key), row, time, -1);
            for write in slice.clone().filter(|write| *write != last) {
                inserted(changes, write).into_iter().for_each(undo);
            }
            let row = inserted(changes, last);
            if there && self.late.contain(&self.row, time) {
                self.late.drop_writes(slice.len());
                row.into_iter().for_each(undo);
                continue;
            }
            if there && row == Some(&self.row) {
                undo(&self.row);
                continue;
            }
            if there {
                output.push(&self.row, time, -1);
                undo(&self.row);
            }
            if let Some(row) = row {
                output.push(row, time, 1);
            }
            there = row.is_some();
            self.row.clear();
            self.row.extend_from_slice(row.unwrap_or_default());
        }
    }
}

/// The value of the row that a [write](Writes) inserts, if it does.
fn inserted(changes: &Changes, write: usize) -> Option<&[u8]> {
    let (inserts, row) = (changes.value(write)[8] != 0, &changes.value(write)[9..]);
    inserts.then_some(row)
}
