//! Index scans: the rows of an index that plans share.

use std::fmt::{self, Write};

use arrow::datatypes::SchemaRef;
use datafusion_common::Result;

use super::{Node, PlanNode};
use crate::plan::names::Names;
use crate::plan::{IncrementalPlan, Properties};

/// The rows of an index.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexScan {
    /// The number of the index.
    pub number: u64,
    /// The columns it is sorted by.
    pub keys: Vec<usize>,
}

impl PlanNode for IndexScan {
    fn inputs(&self) -> Vec<&IncrementalPlan> {
        Vec::new()
    }

    fn inputs_mut(&mut self) -> Vec<&mut IncrementalPlan> {
        Vec::new()
    }

    /// Indexes take the place of plans that are pruned already, so this only happens to plans that are pruned
    /// again.
    fn prune(
        self,
        schema: &SchemaRef,
        properties: Properties,
        required: &[usize],
    ) -> Result<IncrementalPlan> {
        let node = Node::IndexScan(self);
        let plan = IncrementalPlan { node, schema: schema.clone(), properties };
        IncrementalPlan::columns(plan, required)
    }

    fn explain(&self, schema: &SchemaRef, line: &mut String) -> fmt::Result {
        write!(line, "index {} {}", self.number, Names(schema).list(&self.keys))
    }
}
