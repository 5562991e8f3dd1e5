//! Changes that come in time: a view without those that come too late.
//!
//! # Design
//!
//! The *waterline* of a view's column before an epoch is the greatest value in the rows that were inserted in earlier
//! epochs, on all workers, less the lateness. A change below it comes too late and is dropped, be it an insertion or a
//! deletion. So the waterlines of an epoch depend on the rows of earlier epochs only, and never fall.
//!
//! Unlike the rows of a table, those of a view are known only where they are computed:
//!
//! ```text
//! changes ─► exchange, arrange ─┬───────────────────────────────► filter ─►
//!                               └─► greatest ─► all workers ─► waterline ─┘
//! ```
//!
//! - Within an epoch, changes that cancel each other must not count. So equal rows meet, and are sorted and added up.
//! - `greatest` finds the greatest value that is inserted in each epoch, and tells all workers (`greatest.rs`).
//! - `waterline` keeps the greatest value so far, which is the only state: all workers keep the same.
//! - The filter (`filter.rs`) holds a batch until it knows the greatest values of all epochs before its last one. It says how
//!   far it has come once it knows those of the epoch itself, and has told the [`Waterlines`] of the dataflow. So a reader with
//!   all changes of an epoch finds the waterline after it.

mod filter;
mod greatest;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use alluvium_trace::memory::StateContext;
use alluvium_trace::{BoundColumn, Epoch, NullTrace};
use arrow::datatypes::SchemaRef;

use self::greatest::{greatest, greatest_layout};
use crate::movement::delta::DeltaStream;
use crate::movement::exchange::{exchange_by_key, exchange_by_value};
use crate::rows::codec::CodecError;
use crate::rows::layout::Layout;
use crate::state::arrangement::arrange;
use crate::time::waterlines::{TimeColumn, Waterlines};

/// How late the changes of a view may come.
#[derive(Clone, Debug)]
pub struct Spec {
    layout: Layout,
    columns: Vec<LateColumn>,
    /// Of the greatest values.
    greatest: Layout,
}

/// A column of a view that has a waterline.
#[derive(Clone, Debug)]
struct LateColumn {
    place: BoundColumn,
    /// How far a change may be below the greatest value.
    by: i64,
    waterline: TimeColumn,
}

impl LateColumn {
    /// The waterline where the greatest value is this.
    fn below(&self, greatest: i64) -> i64 {
        greatest.saturating_sub(self.by)
    }
}

impl Spec {
    /// The view `view` with columns `schema`, some of which have a waterline: their numbers in it and in the view's own
    /// columns, and how late changes may come by them. Fails if a column has a type that cannot be stored, or one of these a
    /// type that has no waterline.
    pub fn compile(
        schema: SchemaRef,
        view: &str,
        lateness: &[(usize, usize, i64)],
    ) -> Result<Self, CodecError> {
        let keys: Vec<usize> = lateness.iter().map(|(number, _, _)| *number).collect();
        let layout = Layout::keyed(schema, &keys)?;
        let column = |&(number, column, by): &(usize, usize, i64)| {
            let place = layout.bound_column(number).ok_or_else(|| {
                CodecError::Evaluation(format!("column {column} of {view} has no order of time"))
            })?;
            Ok(LateColumn { place, by, waterline: TimeColumn { table: view.to_owned(), column } })
        };
        let columns = lateness.iter().map(column).collect::<Result<_, CodecError>>()?;
        Ok(Self { layout, columns, greatest: greatest_layout()? })
    }

    /// How its changes are sorted.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }
}

/// The changes of `stream` that come in time. `late` counts the others, copies of rows one by one.
///
/// Raises the waterlines of the view in `waterlines`. Exchanges rows so that equal rows meet.
pub fn in_time<'scope>(
    spec: &Spec,
    stream: DeltaStream<'scope, Epoch>,
    waterlines: &Waterlines,
    late: Arc<AtomicU64>,
    context: &StateContext,
) -> DeltaStream<'scope, Epoch> {
    let layout = &spec.layout;
    // Changes of one time are on all workers, if something else tells them apart.
    let stream = match layout.value_columns() {
        [] => exchange_by_key(stream, layout, context),
        _ => exchange_by_value(stream, layout, context),
    };
    let changes = arrange::<Epoch, NullTrace<Epoch>>(stream, layout, "ArrangeChanges", context);
    let greatest = greatest(changes.stream.clone(), spec, context);
    filter::filter(changes.stream, greatest, spec, waterlines, late, context)
}
