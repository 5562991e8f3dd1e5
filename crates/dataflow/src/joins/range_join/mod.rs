//! Range joins: pairs of rows of which one has a value between two ends that the other one has.
//!
//! ```sql
//! SELECT id FROM t WHERE v > (SELECT AVG(v) FROM t)
//! SELECT t.id, limits.name FROM t JOIN limits ON t.g = limits.g AND t.v BETWEEN limits.low AND limits.high
//! ```
//!
//! # Design
//!
//! A pair has all columns of its left row, but of its right row only those that are read: its *payload*. So a left row
//! is paired with a payload as often as right rows with this payload have it within their ends. Along the values that is a
//! function of steps: it rises at the low end of each right row and falls after its high end.
//!
//! Left rows are sorted by their value under their key, right rows are kept as their [`steps`], sorted by payload and
//! place. When an end moves, one step goes and another comes, and the sum of the two changes is zero everywhere but between
//! them: only the left rows there are read, and come or go (`sweep`). That is what RisingWave calls a dynamic filter, for ends that
//! are one row without a payload. A left row that changes reads the steps of its key up to its value. No output is kept.
//!
//! Without keys every worker has all steps, and left rows stay where they are.

mod steps;
mod sweep;
#[cfg(test)]
mod tests;

use alluvium_trace::memory::StateContext;
use alluvium_trace::{Epoch, Spine};
use arrow::compute::SortOptions;
use arrow::datatypes::SchemaRef;

use self::steps::StepEncoder;
use self::sweep::Sweep;
pub use crate::joins::row_pairs::Contexts;
use crate::joins::row_pairs::RowPairs;
use crate::movement::delta::DeltaStream;
use crate::movement::exchange::{broadcast, exchange, exchange_by_bytes};
use crate::reductions::ranked::entry::{ENTRY, EntryEncoder, push_entries};
use crate::reductions::reduce::cogroup;
use crate::rows::codec::CodecError;
use crate::rows::key_columns::KeyColumns;
use crate::rows::layout::Layout;
use crate::state::arrangement::{Arrangement, Kept, arrange_encoded};
use crate::state::states::{self, Placement};

/// An end of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct End {
    /// The column of right rows that has it.
    pub column: usize,
    /// Whether it is in the range itself.
    pub is_included: bool,
}

/// The ends of a range, at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ends {
    /// The least value.
    pub low: Option<End>,
    /// The greatest value.
    pub high: Option<End>,
}

/// The left side of a join.
#[derive(Clone, Debug)]
pub struct Left<'a> {
    /// The columns of its rows.
    pub schema: &'a SchemaRef,
    /// Those that are equal to others of the other side.
    pub keys: &'a [usize],
    /// The one that is within the range.
    pub value: usize,
}

/// The right side of a join.
#[derive(Clone, Debug)]
pub struct Right<'a> {
    /// The columns of its rows.
    pub schema: &'a SchemaRef,
    /// Those that are equal to others of the other side.
    pub keys: &'a [usize],
    /// The ends of the range.
    pub ends: Ends,
    /// The columns that pairs have.
    pub payload: &'a [usize],
}

/// A range join.
#[derive(Clone, Debug)]
pub struct Spec {
    left_key: KeyColumns,
    entries: EntryEncoder,
    right_key: KeyColumns,
    steps: StepEncoder,
    schema: SchemaRef,
}

impl Spec {
    /// A join of two sides that have keys, and a value and ends, of the same types. `schema` names the columns of the left side and
    /// then those of the payload.
    ///
    /// A right row that has NULL as all of its ends is paired with all left rows, and these alone with those that have NULL as their
    /// value. With another right row no end is NULL, and the low one is not above the high one; they are not equal unless both are in
    /// the range.
    ///
    /// Fails if a key, or the value, cannot be a key, or a column cannot be stored.
    pub fn compile(
        left: &Left<'_>,
        right: &Right<'_>,
        schema: SchemaRef,
    ) -> Result<Self, CodecError> {
        let layout = Layout::keyed(left.schema.clone(), left.keys)?;
        let ascending = SortOptions { descending: false, nulls_first: true };
        Ok(Self {
            left_key: KeyColumns::new(left.schema, left.keys)?,
            entries: EntryEncoder::compile(layout, &[(left.value, ascending)], Vec::new())?,
            right_key: KeyColumns::new(right.schema, right.keys)?,
            steps: StepEncoder::compile(right)?,
            schema,
        })
    }

    fn has_keys(&self) -> bool {
        !self.left_key.columns().is_empty()
    }

    /// Sorts left rows by their value under their key.
    fn arrange_left<'scope>(
        &self,
        rows: DeltaStream<'scope, Epoch>,
        context: &StateContext,
    ) -> Kept<'scope> {
        let layout = self.entries.layout().clone();
        let key = layout.key_names();
        let encode = |rows| self.entries.clone().encode(rows, context);
        let (rows, placement) = match self.has_keys() {
            true => (encode(exchange(rows, &self.left_key, context)), Placement::Key),
            // Repartitioned rows are on the worker of their state.
            false if states::is_dealt() => {
                (exchange_by_bytes(encode(rows), ENTRY, context), Placement::Value)
            }
            false => (encode(rows), Placement::Value),
        };
        let arranged = states::placed(placement, || {
            arrange_encoded::<Epoch, Spine<Epoch>>(rows, "ArrangeLeft", key, context, push_entries)
        });
        Arrangement::kept(arranged, layout)
    }

    /// Sorts the steps of right rows under their key.
    fn arrange_right<'scope>(
        &self,
        rows: DeltaStream<'scope, Epoch>,
        context: &StateContext,
    ) -> Kept<'scope> {
        let (rows, placement) = match self.has_keys() {
            true => (exchange(rows, &self.right_key, context), Placement::Key),
            false => (broadcast(rows, context), Placement::All),
        };
        let (layout, key) = (self.steps.payload().clone(), self.steps.key_names());
        let encode = self.steps.clone().encode(context);
        let arranged = states::placed(placement, || {
            arrange_encoded::<Epoch, Spine<Epoch>>(rows, "ArrangeSteps", key, context, encode)
        });
        Arrangement::kept(arranged, layout)
    }
}

/// The pairs of a row of `left` and the payload of a row of `right` that agree on their keys, and of which the left one has its value
/// between the ends of the right one. Exchanges both by key, or sends right rows to all workers.
pub fn range_join<'scope>(
    spec: &Spec,
    left: DeltaStream<'scope, Epoch>,
    right: DeltaStream<'scope, Epoch>,
    contexts: &Contexts,
) -> DeltaStream<'scope, Epoch> {
    let left = spec.arrange_left(left, &contexts.left);
    let right = spec.arrange_right(right, &contexts.right);
    let layouts = (left.layout.clone(), right.layout.clone());
    let output = RowPairs::new(layouts, spec.schema.clone(), false, &contexts.left);
    cogroup(left, right, "RangeJoin", &contexts.left, Sweep::default(), output)
}
