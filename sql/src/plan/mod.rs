//! The incremental plan: what a view becomes before it becomes a dataflow.
//!
//! `build` makes one of an optimized logical plan (`aggregate` of GROUP BY), out of the nodes of
//! `construct`, which know their columns and unique keys; `prune` then drops the columns that nobody needs; `explain`
//! prints it. `outer_join` and `set_operation` have all of it for one node. `share` finds what several plans want kept. `expression` makes the expressions that maps
//! evaluate. `order` is what orders mean, `top` finds the first rows of groups behind LIMIT, DISTINCT ON and
//! numbers that are filtered, `window` is window functions.
mod aggregate;
mod build;
mod construct;
mod explain;
mod expression;
mod order;
mod outer_join;
mod prune;
mod set_operation;
mod share;
mod top;
mod unnest;
mod window;

use std::sync::Arc;

use alluvium_dataflow::aggregate::{Aggregate, Fallback};
use alluvium_dataflow::outer_join::OuterJoinKind;
use alluvium_dataflow::ranked::Top;
use alluvium_dataflow::sets::SetOperation;
use alluvium_dataflow::window::WindowFunction;
use arrow::array::RecordBatch;
use arrow::compute::SortOptions;
use arrow::datatypes::SchemaRef;
use datafusion_physical_expr::PhysicalExpr;

pub(crate) use self::build::build;
pub(crate) use self::explain::explain;
pub use self::expression::checked;
pub(crate) use self::expression::one_row;
pub(crate) use self::outer_join::Side;
pub use self::share::Index;

/// A node of an incremental plan, with what is known of its rows.
#[derive(Clone, Debug, PartialEq)]
pub struct IncrementalPlan {
    /// What it does.
    pub node: Node,
    /// The columns it puts out.
    pub schema: SchemaRef,
    /// Sets of output columns, each of which no two rows share (NULLs counted as equal).
    pub unique: Vec<Vec<usize>>,
    /// Whether rows only ever come: none is taken back.
    pub append_only: bool,
}

/// What a node of an incremental plan does.
///
/// Columns are numbers into the input's schema. Only [`Node::Map`] evaluates expressions; whatever
/// other nodes need computed, a map below them computes.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// The rows of a table or of a materialized view.
    Scan {
        /// Its name in the catalog.
        relation: String,
        /// Which of its columns, in output order.
        columns: Vec<usize>,
    },
    /// The rows of a table that keeps no contents, as they pass.
    Stream {
        /// The table's name in the catalog.
        relation: String,
        /// Which of its columns, in output order.
        columns: Vec<usize>,
    },
    /// The rows of an index.
    Index {
        /// The number it is known by.
        number: u64,
        /// The columns it is sorted by.
        keys: Vec<usize>,
    },
    /// Rows that never change.
    Constant {
        /// The rows.
        rows: RecordBatch,
    },
    /// A filter, then a projection, fused.
    Map {
        /// Where the rows come from.
        input: Box<IncrementalPlan>,
        /// Over the input's columns; keeps the rows for which it is true.
        filter: Option<Arc<dyn PhysicalExpr>>,
        /// Over the input's columns; one per output column.
        project: Vec<Arc<dyn PhysicalExpr>>,
    },
    /// Pairs of rows that agree on their keys; the output is all left columns, then all right ones.
    ///
    /// NULL keys are equal here: for an `=` join the planner filters NULL keys out below. No key at
    /// all makes a cross product. A residual condition is the filter of a map above.
    Join {
        /// The left rows.
        left: Box<IncrementalPlan>,
        /// The right rows.
        right: Box<IncrementalPlan>,
        /// Pairs of a left and a right column of the same type.
        on: Vec<(usize, usize)>,
    },
    /// Each row once for each element of its lists, which the elements take the place of.
    ///
    /// Lists are gone through side by side, with NULLs where one ends before another; a row without an
    /// element is dropped.
    Unnest {
        /// The rows.
        input: Box<IncrementalPlan>,
        /// The columns that are lists, in ascending order.
        lists: Vec<usize>,
    },
    /// Pairs of rows that agree on their keys, and rows by whether they are in one: outer, semi, anti and mark
    /// joins.
    ///
    /// The output is that of [`outer_join`](alluvium_dataflow::outer_join::outer_join). NULL keys are equal
    /// here: for an `=` join the planner sees to it that they do not meet.
    OuterJoin {
        /// The left rows.
        left: Box<IncrementalPlan>,
        /// The right rows.
        right: Box<IncrementalPlan>,
        /// Pairs of a left and a right column of the same type.
        on: Vec<(usize, usize)>,
        /// What comes out.
        kind: OuterJoinKind,
        /// Over the columns of both sides; true for pairs that count.
        residual: Option<Arc<dyn PhysicalExpr>>,
    },
    /// One row per group: the keys, then the aggregates. Without keys there is always one row.
    Aggregate {
        /// The rows to aggregate.
        input: Box<IncrementalPlan>,
        /// The columns that name the group.
        keys: Vec<usize>,
        /// What is computed for each group.
        aggregates: Vec<Aggregate>,
        /// What else is, by evaluating the groups that change anew.
        fallbacks: Vec<Fallback>,
    },
    /// The first rows of each group: all input columns, then the number if it is put out.
    Top {
        /// The rows to choose from.
        input: Box<IncrementalPlan>,
        /// The columns that name the group; without any, all rows are one group.
        keys: Vec<usize>,
        /// What the rows of a group are ordered by; rows equal in it are ordered by all of their columns.
        order: Vec<(usize, SortOptions)>,
        /// Which of them.
        which: Top,
    },
    /// All input columns, then what window functions say of each row among those of its partition.
    Window {
        /// The rows.
        input: Box<IncrementalPlan>,
        /// The columns that name the partition.
        keys: Vec<usize>,
        /// What the rows of a partition are ordered by, as the functions see it.
        order: Vec<(usize, SortOptions)>,
        /// Columns by which rows equal in that are ordered, so that no two are equal; `None` if it takes all.
        ties: Option<Vec<usize>>,
        /// What is computed, all over the same partitions and order.
        functions: Vec<WindowFunction>,
    },
    /// Each row once.
    Distinct {
        /// The rows.
        input: Box<IncrementalPlan>,
    },
    /// INTERSECT or EXCEPT of two inputs of the same column types, whole rows compared.
    SetOperation {
        /// The left rows.
        left: Box<IncrementalPlan>,
        /// The right rows.
        right: Box<IncrementalPlan>,
        /// Which.
        operation: SetOperation,
    },
    /// All rows of all inputs, whose column types agree.
    Union {
        /// The inputs.
        inputs: Vec<IncrementalPlan>,
    },
    /// A view that is not materialized, written out in place.
    ///
    /// Its rows are its input's; its errors are reported where the view itself is built.
    View {
        /// The view's name.
        name: String,
        /// What it selects.
        input: Box<IncrementalPlan>,
    },
}
