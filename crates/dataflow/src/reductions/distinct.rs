//! DISTINCT: each row once, however many copies there are.
//!
//! Rows may have *marks*, columns of booleans that do not tell rows apart: a row has a mark if one of its copies does. With a
//! mark for each condition, one state has the distinct values of a column under several conditions.

use std::mem;

use alluvium_trace::memory::StateContext;
use alluvium_trace::{Cursors, Epoch, NullTrace, Spine};
use arrow::datatypes::SchemaRef;

use crate::fault::{self, Fault};
use crate::movement::combine::{self, combine};
use crate::movement::delta::{DeltaStream, EncodedDelta};
use crate::movement::exchange::exchange;
use crate::movement::fuel::Produced;
use crate::reductions::reduce::{Changes, Logic, Output, Prior, reduce_decoded};
use crate::rows::codec::CodecError;
use crate::rows::columns::Columns;
use crate::rows::key_columns::KeyColumns;
use crate::rows::layout::{Layout, all_columns};
use crate::rows::weight::{add, weight_of};
use crate::state::arrangement::arrange;

/// How rows are compared.
#[derive(Clone, Debug)]
pub struct Spec {
    key: KeyColumns,
    layout: Layout,
    combined: combine::Spec,
}

impl Spec {
    /// DISTINCT of rows of `schema`. Fails if a column cannot be a key.
    pub fn compile(schema: SchemaRef) -> Result<Self, CodecError> {
        let combined = combine::Spec::compile(&schema)?;
        Self::of_combined(combined, schema, 0)
    }

    /// As [`Spec::compile`], of these columns of the rows. The last `marks` of them are marks: booleans that are never NULL.
    pub(crate) fn marked(columns: Columns, marks: usize) -> Result<Self, CodecError> {
        let schema = columns.schema().clone();
        Self::of_combined(combine::Spec::of_columns(columns)?, schema, marks)
    }

    fn of_combined(
        combined: combine::Spec,
        schema: SchemaRef,
        marks: usize,
    ) -> Result<Self, CodecError> {
        let keys: Vec<usize> = (0..schema.fields().len() - marks).collect();
        let key = KeyColumns::new(&schema, &keys)?;
        Ok(Self { key, layout: Layout::grouped(schema, &keys)?, combined })
    }

    /// The layout of the rows that are kept.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }
}

/// The rows of `stream` with a positive weight, each with weight one.
///
/// Exchanges rows by all columns that are not marks. Floats come out canonical.
pub fn distinct<'scope>(
    spec: &Spec,
    stream: DeltaStream<'scope, Epoch>,
    context: &StateContext,
) -> DeltaStream<'scope, Epoch> {
    let layout = &spec.layout;
    let stream = exchange(combine(&spec.combined, stream, context), &spec.key, context);
    let input = arrange::<Epoch, Spine<Epoch>>(stream, layout, "ArrangeDistinct", context);
    let key = layout.key_names();
    let logic = Presence::default();
    let (layout, columns) = (layout.clone(), all_columns(layout.schema()));
    let decode = move |encoded: &mut EncodedDelta<Epoch>| {
        Produced::from(encoded.finish(|keys, values| layout.decode_batch(keys, values, &columns)))
    };
    reduce_decoded::<NullTrace<Epoch>, _>(input, "Distinct", key, context, logic, decode).0
}

/// Weight one while the weight of the input is positive, with the marks of the input.
#[derive(Default)]
struct Presence {
    copies: Copies,
    before: Vec<u8>,
    after: Vec<u8>,
}

/// The copies of a row.
#[derive(Default)]
struct Copies {
    count: i64,
    /// How many copies have the byte that is not zero at each place of their value. A mark is a byte of its own.
    marked: Vec<i64>,
}

impl Copies {
    fn clear(&mut self) {
        self.count = 0;
        self.marked.clear();
    }

    fn add(&mut self, value: &[u8], weight: i64) {
        self.count = add(self.count, weight);
        self.marked.resize(value.len(), 0);
        for (marked, _) in self.marked.iter_mut().zip(value).filter(|(_, byte)| **byte != 0) {
            *marked = add(*marked, weight);
        }
    }

    fn add_all(&mut self, rows: &mut Cursors<Epoch>) {
        while let Some(value) = rows.val() {
            self.add(value, weight_of(rows));
            rows.step_val();
        }
    }

    /// The value of the one row, if there are copies.
    fn one(&self, value: &mut Vec<u8>) -> bool {
        value.clear();
        value.extend(self.marked.iter().map(|marked| u8::from(*marked > 0)));
        self.count > 0
    }
}

impl Logic for Presence {
    fn reduce(
        &mut self,
        changes: &Changes,
        key: usize,
        prior: &mut Prior<'_>,
        output: &mut Output,
    ) {
        let Self { copies, before, after } = self;
        copies.clear();
        if let Some(rows) = prior.input(changes.key(key)) {
            copies.add_all(rows);
        }
        let mut was_there = copies.one(before);
        for slice in changes.time_slices(key) {
            let time = changes.change(slice.start).time;
            for row in slice {
                copies.add(changes.value(row), changes.change(row).weight);
            }
            let is_there =
                copies.one(after) && !(fault::armed(Fault::LeaveEarly) && copies.count == 1);
            if fault::armed(Fault::KeepMarks) && was_there {
                after.iter_mut().zip(&*before).for_each(|(after, before)| *after |= before);
            }
            if was_there.then_some(&*before) == is_there.then_some(&*after) {
                continue;
            }
            if was_there {
                output.push(before, time, -1);
            }
            if is_there {
                output.push(after, time, 1);
            }
            mem::swap(before, after);
            was_there = is_there;
        }
    }
}
