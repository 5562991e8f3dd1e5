//! Pairs of rows: the output of joins that read both sides in place.

use alluvium_trace::Epoch;
use alluvium_trace::memory::StateContext;
use arrow::array::{ArrayRef, UInt32Array, UInt32Builder, new_null_array};
use arrow::compute::take;
use arrow::datatypes::SchemaRef;

use crate::fault::{self, Fault};
use crate::movement::delta::{DELTA_ROWS, Delta, DeltaBuilder, delta_bytes};
use crate::reductions::reduce::PairOutput;
use crate::rows::codec::Encoded;
use crate::rows::layout::{Layout, all_columns, assemble};

/// The contexts that the states of such a join are made in.
#[derive(Clone, Debug)]
pub struct Contexts {
    /// The left rows.
    pub left: StateContext,
    /// The right rows, or their kept parts.
    pub right: StateContext,
}

/// Collects changes of left rows with their matches into deltas.
pub(crate) struct RowPairs {
    left: Rows,
    /// The matches of rows that follow each other are often the same.
    right: Rows,
    /// For each left row the number of its match.
    matches: UInt32Builder,
    schema: SchemaRef,
    keeps_left: bool,
    updates: DeltaBuilder<Epoch>,
    /// Deltas to be emitted.
    full: Vec<Delta<Epoch>>,
    /// The bytes of keys and values that make a delta full.
    most: usize,
}

/// Rows of one side.
struct Rows {
    layout: Layout,
    keys: Encoded,
    values: Encoded,
}

impl Rows {
    fn new(layout: Layout, context: &StateContext) -> Self {
        Self { layout, keys: Encoded::counted(context), values: Encoded::counted(context) }
    }

    fn bytes(&self) -> usize {
        self.keys.bytes().len() + self.values.bytes().len()
    }

    fn push(&mut self, key: &[u8], value: &[u8]) {
        self.keys.push(key);
        self.values.push(value);
    }

    /// Whether this is the last row.
    fn ends_with(&self, key: &[u8], value: &[u8]) -> bool {
        self.keys
            .len()
            .checked_sub(1)
            .is_some_and(|last| self.values.get(last) == value && self.keys.get(last) == key)
    }

    /// The columns of the rows, which are left out from now on.
    fn take(&mut self) -> Vec<ArrayRef> {
        let all = all_columns(self.layout.schema());
        let columns = self.layout.decode(self.keys.iter(), self.values.iter(), &all);
        self.keys.clear();
        self.values.clear();
        columns
    }
}

impl RowPairs {
    /// Of rows of these layouts. `schema` names the columns of both.
    pub(crate) fn new(
        (left, right): (Layout, Layout),
        schema: SchemaRef,
        keeps_left: bool,
        context: &StateContext,
    ) -> Self {
        Self {
            left: Rows::new(left, context),
            right: Rows::new(right, context),
            matches: UInt32Builder::new(),
            schema,
            keeps_left,
            updates: DeltaBuilder::default(),
            full: Vec::new(),
            most: delta_bytes(context),
        }
    }

    /// Whether there is a row for a left row with this match, or none.
    pub(crate) fn wants(&self, found: Option<&[u8]>) -> bool {
        found.is_some() || self.keeps_left && !fault::armed(Fault::NoLonelyRows)
    }

    /// Adds a change of a left row with this match, if there is a row for it. Both are values of their layouts, under `key`.
    pub(crate) fn push(
        &mut self,
        key: &[u8],
        row: &[u8],
        found: Option<&[u8]>,
        (time, weight): (Epoch, i64),
    ) {
        if weight == 0 || !self.wants(found) || weight < 0 && fault::armed(Fault::KeepOldAnswer) {
            return;
        }
        self.left.push(key, row);
        match found {
            Some(found) => {
                if !self.right.ends_with(key, found) {
                    self.right.push(key, found);
                }
                self.matches.append_value(self.right.keys.len() as u32 - 1);
            }
            None => self.matches.append_null(),
        }
        self.updates.push(time, weight);
        if self.updates.len() >= DELTA_ROWS || self.left.bytes() + self.right.bytes() >= self.most {
            self.flush();
        }
    }

    /// Whether a delta should be emitted before more is added.
    pub(crate) fn is_full(&self) -> bool {
        !self.full.is_empty()
    }
}

impl PairOutput for RowPairs {
    fn drain(&mut self) -> impl Iterator<Item = Delta<Epoch>> + '_ {
        self.full.drain(..)
    }

    fn flush(&mut self) {
        let rows = self.updates.len();
        if rows == 0 {
            return;
        }
        let matches: UInt32Array = self.matches.finish();
        let found = !self.right.keys.is_empty();
        let mut columns = self.left.take();
        let right = self.right.take();
        columns.extend(right.iter().map(|column| match found {
            true => take(column, &matches, None).expect("a match is one of the right rows"),
            false => new_null_array(column.data_type(), rows),
        }));
        self.full.push(self.updates.finish(assemble(self.schema.clone(), columns, rows)));
    }
}
