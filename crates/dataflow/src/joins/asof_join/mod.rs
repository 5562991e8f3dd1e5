//! ASOF joins: each left row with the nearest right row under its key.
//!
//! Nearest in an order, as of time: of the right rows that come at or before a left row, or before it, the last one; or,
//! in the other direction, the first one at or after it. Of several right rows of that time the last one in the order of
//! their columns is chosen, so that the result depends on nothing but the rows.
//!
//! Both sides keep their rows sorted by time under their keys ([entries](crate::reductions::ranked::entry)). In the direction
//! *later* times sort in descending order, so that the match of a left row is always the last right row before a place.
//! A left row then needs one seek, and the change of a right row reaches the left rows between it and the next right row
//! (`sweep`). No output is kept.

mod matches;
mod sweep;
#[cfg(test)]
mod tests;

use alluvium_trace::memory::StateContext;
use alluvium_trace::{BoundColumn, Epoch, Spine};
use arrow::compute::SortOptions;
use arrow::datatypes::SchemaRef;

use self::sweep::{Sweep, TimeOrder};
pub use crate::joins::row_pairs::Contexts;
use crate::joins::row_pairs::RowPairs;
use crate::movement::delta::DeltaStream;
use crate::movement::exchange::exchange;
use crate::reductions::ranked::entry::{EntryEncoder, push_entries};
use crate::reductions::reduce::cogroup;
use crate::rows::codec::CodecError;
use crate::rows::key_columns::KeyColumns;
use crate::rows::layout::Layout;
use crate::state::arrangement::{Arrangement, Kept, arrange_encoded};

/// Which right row is the nearest to a left row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Nearest {
    /// Whether it is the first one after the left row, not the last one before it.
    pub later: bool,
    /// Whether it may have the time of the left row.
    pub or_equal: bool,
}

/// One side of a join.
#[derive(Clone, Debug)]
pub struct Side<'a> {
    /// The columns of its rows.
    pub schema: &'a SchemaRef,
    /// Those that are equal to others of the other side.
    pub keys: &'a [usize],
    /// The one by which rows are near.
    pub time: usize,
}

/// An ASOF join.
#[derive(Clone, Debug)]
pub struct Spec {
    left: Sorted,
    right: Sorted,
    time: TimeOrder,
    /// The column of right rows by which they are in ascending order, if they are.
    ascending: Option<usize>,
    keeps_left: bool,
    schema: SchemaRef,
}

/// How the rows of a side are sorted.
#[derive(Clone, Debug)]
struct Sorted {
    key: KeyColumns,
    entries: EntryEncoder,
}

impl Sorted {
    fn compile(side: &Side<'_>, order: &[(usize, SortOptions)]) -> Result<Self, CodecError> {
        let layout = Layout::keyed(side.schema.clone(), side.keys)?;
        Ok(Self {
            key: KeyColumns::new(side.schema, side.keys)?,
            entries: EntryEncoder::compile(layout, order, Vec::new())?,
        })
    }

    /// Exchanges rows by key and sorts them.
    fn arrange<'scope>(
        &self,
        rows: DeltaStream<'scope, Epoch>,
        name: &str,
        context: &StateContext,
    ) -> Kept<'scope> {
        let layout = self.entries.layout().clone();
        let rows = exchange(rows, &self.key, context);
        let rows = self.entries.clone().encode(rows, context);
        let key = layout.key_names();
        let arranged =
            arrange_encoded::<Epoch, Spine<Epoch>>(rows, name, key, context, push_entries);
        Arrangement::kept(arranged, layout)
    }
}

impl Spec {
    /// A join of two sides that have keys and times of the same types. Right rows of one time sort by the columns `ties` and
    /// then by their bytes. A left row without a match is kept, with NULLs on the right, if `keeps_left`. `schema` names the
    /// columns of both sides.
    ///
    /// The right side has no NULL among its keys and times.
    ///
    /// Fails if a key or one of `ties` cannot be a key, or the time is not of a fixed width.
    pub fn compile(
        left: &Side<'_>,
        right: &Side<'_>,
        ties: &[usize],
        nearest: Nearest,
        keeps_left: bool,
        schema: SchemaRef,
    ) -> Result<Self, CodecError> {
        let data_type = left.schema.field(left.time).data_type();
        let Some(width) = data_type.primitive_width() else {
            return Err(CodecError::Unsupported(data_type.clone()));
        };
        let by_time = SortOptions { descending: nearest.later, nulls_first: true };
        let ascending = SortOptions { descending: false, nulls_first: true };
        let mut order = vec![(right.time, by_time)];
        order.extend(ties.iter().map(|&column| (column, ascending)));
        Ok(Self {
            left: Sorted::compile(left, &[(left.time, by_time)])?,
            right: Sorted::compile(right, &order)?,
            time: TimeOrder { width: 1 + width, or_equal: nearest.or_equal },
            ascending: (!nearest.later).then_some(right.time),
            keeps_left,
            schema,
        })
    }

    /// Where a column lies in the bytes of every left row that is kept, as [`Layout::bound_column`] says it.
    pub fn left_column(&self, column: usize) -> Option<BoundColumn> {
        Some(match self.left.entries.layout().bound_column(column)? {
            // The value follows the time by which it sorts.
            BoundColumn::Value { at, width, null } => {
                let before = self.time.width;
                BoundColumn::Value { at: before + at, width, null: 8 * before + null }
            }
            in_key => in_key,
        })
    }

    /// As [`left_column`](Self::left_column), of right rows; only of columns of the key, and of the time in the direction
    /// *earlier*.
    pub fn right_column(&self, column: usize) -> Option<BoundColumn> {
        match self.right.entries.layout().bound_column(column)? {
            BoundColumn::Value { .. } if self.ascending == Some(column) => {
                self.right.entries.bound_of_order(false)
            }
            BoundColumn::Value { .. } => None,
            in_key => Some(in_key),
        }
    }
}

/// Each row of `left` with its nearest row of `right`. Exchanges both by key.
pub fn asof_join<'scope>(
    spec: &Spec,
    left: DeltaStream<'scope, Epoch>,
    right: DeltaStream<'scope, Epoch>,
    contexts: &Contexts,
) -> DeltaStream<'scope, Epoch> {
    let left = spec.left.arrange(left, "ArrangeLeft", &contexts.left);
    let right = spec.right.arrange(right, "ArrangeRight", &contexts.right);
    let layouts = (left.layout.clone(), right.layout.clone());
    let output = RowPairs::new(layouts, spec.schema.clone(), spec.keeps_left, &contexts.left);
    cogroup(left, right, "AsofJoin", &contexts.left, Sweep::new(spec.time), output)
}
