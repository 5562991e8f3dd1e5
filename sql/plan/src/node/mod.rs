//! The nodes of the incremental plan, one file each.
//!
//! Columns are numbers into the input's schema. Only [`Map`] evaluates expressions: what another node needs
//! computed, a map below it computes.
//!
//! A new node is one file, its `mod` and `pub use`, and one line in the list below. The file has the node, a constructor on
//! [`IncrementalPlan`] that derives its columns and properties, [`PlanNode`] with pruning, explaining and compiling, and
//! the operator that it compiles to, with its rendering.
mod aggregate;
mod asof_join;
mod constant;
mod distinct;
mod final_rows;
mod in_time;
mod index;
mod join;
mod map;
mod outer_join;
mod range_join;
mod recurrence;
mod recursion;
mod scan;
mod series;
mod session;
mod set_operation;
mod sides;
mod sorted;
mod stream;
mod temporal_filter;
mod top;
mod union;
mod unnest;
mod view;
mod window;

use std::fmt;

use crate::physical::{CompileResult, Compiler, OperatorId, Place, RoundCompiler, RoundId};

use arrow::datatypes::SchemaRef;
use datafusion_common::Result;

pub use self::aggregate::Aggregate;
pub use self::asof_join::AsofJoin;
pub use self::constant::Constant;
pub use self::distinct::Distinct;
pub use self::final_rows::FinalRows;
pub use self::in_time::{InTime, LateColumn};
pub use self::index::IndexScan;
pub use self::join::Join;
pub use self::map::Map;
pub(crate) use self::map::{RoundMap, RowMap};
pub use self::outer_join::OuterJoin;
pub(crate) use self::outer_join::joined_schema;
pub use self::range_join::RangeJoin;
pub use self::recurrence::Recurrence;
pub use self::recursion::{Member, Recursion};
pub use self::scan::{Scan, ViewRows};
pub use self::series::Series;
pub use self::session::Session;
pub use self::set_operation::SetOperation;
pub(crate) use self::sides::Side;
pub use self::stream::Stream;
pub use self::temporal_filter::TemporalFilter;
pub use self::top::Top;
pub use self::union::Union;
pub use self::unnest::Unnest;
pub use self::view::View;
pub use self::window::Window;
use super::expression::Expression;
use super::fingerprint::Canonical;
use super::{IncrementalPlan, LowerBounds, Properties, Retention};
use crate::constructs::Clause;

/// The operations of every plan node.
pub(crate) trait PlanNode {
    /// The plans that the node reads; none for a leaf.
    fn inputs(&self) -> Vec<&IncrementalPlan> {
        Vec::new()
    }

    /// As [`PlanNode::inputs`], for changes that keep their rows.
    fn inputs_mut(&mut self) -> Vec<&mut IncrementalPlan> {
        Vec::new()
    }

    /// The plan of this node reduced to the columns `required`, in this order; there is at least one.
    ///
    /// `schema` and `properties` are those of the node's output.
    fn prune(
        self,
        schema: &SchemaRef,
        properties: Properties,
        required: &[usize],
    ) -> Result<IncrementalPlan>
    where
        Self: Sized;

    /// Decides which rows of the node's state, and of its inputs', are not needed. Returns the lower bounds of its columns.
    ///
    /// `schema` is that of the node's output. No reader needs rows of it for which one of the `conditions` is not true.
    fn bound(&mut self, schema: &SchemaRef, conditions: &[Expression]) -> LowerBounds;

    /// Adds what the node does, without its inputs, to a canonical encoding.
    fn encode(&self, canonical: &mut Canonical);

    /// Writes what the node does, on one line; its output columns are `schema`.
    fn explain(&self, schema: &SchemaRef, line: &mut String) -> fmt::Result;

    /// The clause that the node stands for in the text of a view, if it keeps state.
    fn clause(&self) -> Option<Clause> {
        None
    }

    /// Why a change of the inputs costs the node's operator more than the change itself, and what would help.
    fn burden(&self) -> Option<&'static str> {
        None
    }

    /// For each state that the node's operator keeps, in the order of its places: what it is, the columns of its rows, and which of them are needed.
    fn retained(&self) -> Vec<(&'static str, &SchemaRef, &Retention)> {
        Vec::new()
    }

    /// The state of the node's operator, for EXPLAIN, and its `places`; `None` if it is stateless.
    fn state(&self, _places: &[Place]) -> Option<String> {
        None
    }

    /// Compiles the inputs, and the node to an operator of the physical plan. `plan` is the plan of this node.
    ///
    /// Fails if a column has a type that the operator cannot store, compare or compute.
    fn compile(&self, plan: &IncrementalPlan, compiler: &mut Compiler)
    -> CompileResult<OperatorId>;

    /// The node inside of a recursion, over rows that differ by round; `None` if it cannot be there.
    fn in_rounds(&self) -> Option<&dyn InRounds> {
        None
    }

    /// Whether equal nodes of a plan are compiled to one operator.
    fn is_shared(&self) -> bool {
        false
    }

    /// Whether knowing the rows takes state besides tables and indexes, here or in an input.
    fn needs_state(&self) -> bool {
        self.inputs().into_iter().any(IncrementalPlan::needs_state)
    }

    /// The inputs that the node reads sorted by some columns. They are replaced by indexes, which other plans can share.
    fn indexed(&mut self) -> Vec<Indexed<'_>> {
        Vec::new()
    }

    /// The relation that the node reads, if it reads one.
    fn relation(&self) -> Option<&str> {
        None
    }

    /// The node itself, if it reads an index.
    fn index(&self) -> Option<&IndexScan> {
        None
    }
}

/// An input that a node reads sorted by some of its columns.
pub(crate) struct Indexed<'a> {
    pub(crate) input: &'a mut IncrementalPlan,
    pub(crate) keys: Vec<usize>,
    /// Whether the rows can have other columns besides.
    pub(crate) may_be_wider: bool,
    /// Whether there can be other rows besides, with NULL in one of the keys: nothing meets them, and they do not stay alone.
    pub(crate) may_have_nulls: bool,
}

/// A node that can be inside of a recursion.
pub(crate) trait InRounds {
    /// Compiles the inputs, and the node to an operator inside of the recursion. `plan` is the plan of this node.
    fn compile_in_rounds(
        &self,
        plan: &IncrementalPlan,
        compiler: &mut RoundCompiler<'_>,
    ) -> CompileResult<RoundId>;
}

/// Defines the enum, and the only places that go through all of its variants.
macro_rules! nodes {
    ($($(#[$documentation:meta])* $node:ident),* $(,)?) => {
        /// How a plan gets its rows.
        #[derive(Clone, Debug)]
        pub enum Node {
            $($(#[$documentation])* $node($node),)*
        }

        impl Node {
            pub(crate) fn as_node(&self) -> &dyn PlanNode {
                match self {
                    $(Node::$node(node) => node,)*
                }
            }

            pub(crate) fn as_node_mut(&mut self) -> &mut dyn PlanNode {
                match self {
                    $(Node::$node(node) => node,)*
                }
            }

            pub(crate) fn prune(
                self,
                schema: &SchemaRef,
                properties: Properties,
                required: &[usize],
            ) -> Result<IncrementalPlan> {
                match self {
                    $(Node::$node(node) => node.prune(schema, properties, required),)*
                }
            }
        }
    };
}

nodes! {
    /// The rows of a table or of a materialized view.
    Scan,
    /// The rows of a table that does not keep them, as they arrive.
    Stream,
    /// The rows of an index.
    IndexScan,
    /// Rows that never change.
    Constant,
    /// The values of an arithmetic series.
    Series,
    /// A filter and a projection.
    Map,
    /// Inner and cross joins.
    Join,
    /// Outer, semi, anti and mark joins.
    OuterJoin,
    /// ASOF joins.
    AsofJoin,
    /// Comparisons of rows with values that move.
    RangeJoin,
    /// A row for each element of a row's lists.
    Unnest,
    /// GROUP BY.
    Aggregate,
    /// The first rows of each group.
    Top,
    /// Window functions.
    Window,
    /// Bounds of sessions.
    Session,
    /// Each row once.
    Distinct,
    /// Each row once, when it can no longer change.
    FinalRows,
    /// A comparison of rows with the time.
    TemporalFilter,
    /// The rows of a view without the changes that come too late.
    InTime,
    /// INTERSECT and EXCEPT.
    SetOperation,
    /// WITH RECURSIVE, and views that recur.
    Recursion,
    /// The rows of a recursion, inside of its step.
    Recurrence,
    /// UNION ALL.
    Union,
    /// A view that is not materialized, expanded in place.
    View,
}

impl Node {
    /// The relation that the node reads, if it reads one.
    pub(crate) fn relation(&self) -> Option<&str> {
        self.as_node().relation()
    }
}

impl IncrementalPlan {
    /// Whether knowing the rows takes state besides tables and indexes.
    pub(crate) fn needs_state(&self) -> bool {
        self.node.as_node().needs_state()
    }
}
