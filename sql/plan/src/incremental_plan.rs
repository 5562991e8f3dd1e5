//! The plan that maintains the rows of a view.

use std::sync::OnceLock;

use arrow::datatypes::SchemaRef;

use crate::bounds::{LowerBounds, Reason, Retention};
use crate::expression::Expression;
use crate::fingerprint::Fingerprint;
use crate::node::Node;
use crate::properties::Properties;

/// A plan: its topmost node, which owns its inputs, and the properties of its rows.
#[derive(Clone, Debug)]
pub struct IncrementalPlan {
    /// The node that computes the rows.
    pub node: Node,
    /// The output columns.
    pub schema: SchemaRef,
    /// The properties of the rows.
    pub properties: Properties,
    /// Computed when first needed. Changes of the node must keep its rows the same.
    pub(crate) fingerprint: OnceLock<Fingerprint>,
}

impl IncrementalPlan {
    pub(crate) fn new(node: Node, schema: SchemaRef, properties: Properties) -> Self {
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
    /// Rows for which one of the `conditions` is not true are not needed.
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
