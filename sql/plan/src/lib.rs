//! The incremental plan: how a view is maintained, before it becomes a physical plan.
//!
//! - [`node`]: the nodes, one file each: columns, properties, pruning, explaining. A new plan node is one file
//!   there, with its `mod` and `pub use`, and one line in `nodes!`.
//! - [`view`]: all that is planned of a view: [`final_rows`] finds the column by which its rows are final, [`lateness`] those by
//!   which they may come late.
//! - [`properties`]: what holds for the rows of a plan.
//! - [`mod@build`]: from an optimized logical plan to nodes.
//! - [`prune`]: drops the columns that nothing needs, so that no state holds them.
//! - [`ranking_filter`]: turns a filter on `ROW_NUMBER` and its relatives into a top-k.
//! - [`clock_filter`]: turns comparisons with `NOW()` into temporal filters.
//! - [`range_filter`]: turns comparisons with values that move into range joins.
//! - [`bounds`]: says which rows of state are not needed any more.
//! - [`share`]: finds the indexes that several plans can share.
//! - [`fingerprint`]: identifies equal plans, and state across processes.
//! - [`constructs`]: finds in a view's text what operators of its plan stand for.
//! - [`mod@explain`]: prints a plan; [`mod@explain_state`] says what it keeps and why; [`names`] writes its columns and expressions.
//! - [`expression`]: the expressions that maps evaluate; [`failure`]: whether one fails.
pub mod bounds;
mod build;
mod clock_filter;
mod constructs;
mod explain;
mod explain_state;
mod expression;
mod failure;
pub mod fault;
mod final_rows;
mod fingerprint;
mod lateness;
mod names;
pub mod node;
pub mod physical;
mod properties;
mod prune;
mod range_filter;
mod ranking_filter;
mod share;
mod view;

use std::sync::OnceLock;

use arrow::datatypes::SchemaRef;

pub use self::bounds::{LowerBound, LowerBounds, Reason, Retention, Source};
pub use self::constructs::ViewText;
pub use self::explain::explain;
pub use self::explain_state::{Keeping, KeptBy, KeptState, LastRows, explain_state};
use self::expression::Expression;
pub(crate) use self::fingerprint::Canonical;
pub use self::fingerprint::Fingerprint;
pub use self::node::Node;
pub use self::properties::Properties;
pub use self::share::{Index, Shared, SharedIndex};
pub use self::view::PlannedView;

/// A plan: its topmost node, which owns its inputs, and what is known about its rows.
#[derive(Clone, Debug)]
pub struct IncrementalPlan {
    /// What computes the rows.
    pub node: Node,
    /// The output columns.
    pub schema: SchemaRef,
    /// What holds for the rows.
    pub properties: Properties,
    /// Computed when first needed. Whoever changes the node keeps its rows what they are.
    fingerprint: OnceLock<Fingerprint>,
}

impl IncrementalPlan {
    fn new(node: Node, schema: SchemaRef, properties: Properties) -> Self {
        Self { node, schema, properties, fingerprint: OnceLock::new() }
    }

    /// Calls `visit` with every relation that the plan reads.
    pub fn visit_relations(&self, visit: &mut impl FnMut(&str)) {
        if let Some(relation) = self.node.relation() {
            visit(relation);
        }
        for input in self.inputs() {
            input.visit_relations(visit);
        }
    }

    /// The plans right below.
    pub fn inputs(&self) -> Vec<&IncrementalPlan> {
        self.node.as_node().inputs()
    }

    /// As [`IncrementalPlan::inputs`], for changes that keep their rows.
    pub(crate) fn inputs_mut(&mut self) -> Vec<&mut IncrementalPlan> {
        self.node.as_node_mut().inputs_mut()
    }

    /// Decides which rows of the plan's state are not needed, and returns the lower bounds of its columns.
    ///
    /// Rows for which one of the `conditions` is not true are of no interest to anybody.
    pub(crate) fn bound(&mut self, conditions: &[Expression]) -> LowerBounds {
        self.fingerprint = OnceLock::new();
        let bounds = self.node.as_node_mut().bound(&self.schema, conditions);
        debug_assert_eq!(bounds.len(), self.width());
        bounds
    }

    /// For each column whether rows can be final by it, or why not.
    pub(crate) fn finality(mut self) -> Vec<Result<(), Reason>> {
        let (bounds, schema) = (self.bound(&[]), &self.schema);
        let by = |column| match Retention::by(&bounds, column, schema) {
            Retention::From { .. } => Ok(()),
            Retention::All(reason) => Err(reason),
        };
        (0..bounds.len()).map(by).collect()
    }

    /// The number of output columns.
    pub(crate) fn width(&self) -> usize {
        self.schema.fields().len()
    }
}
