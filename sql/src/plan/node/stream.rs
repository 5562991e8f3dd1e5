//! Streams: the rows of a table that does not keep them, as they arrive.

use std::fmt::{self, Write};
use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use datafusion_common::Result;

use super::{Node, PlanNode};
use crate::plan::names::Names;
use crate::plan::{IncrementalPlan, Properties};

/// The rows of a table that does not keep them, as they arrive.
#[derive(Clone, Debug, PartialEq)]
pub struct Stream {
    /// The table's name in the catalog.
    pub relation: String,
    /// Which of its columns, in output order.
    pub columns: Vec<usize>,
}

impl IncrementalPlan {
    /// Some columns of a table that does not keep its rows and whose columns are `schema`. Unless the table is
    /// `append_only`, rows may be deleted, too.
    ///
    /// # Errors
    /// If there is no such column.
    pub fn stream(
        relation: String,
        schema: &Schema,
        columns: Vec<usize>,
        append_only: bool,
    ) -> Result<IncrementalPlan> {
        Ok(IncrementalPlan {
            schema: Arc::new(schema.project(&columns)?),
            node: Node::Stream(Stream { relation, columns }),
            properties: Properties { unique: Vec::new(), append_only },
        })
    }
}

impl PlanNode for Stream {
    fn inputs(&self) -> Vec<&IncrementalPlan> {
        Vec::new()
    }

    fn inputs_mut(&mut self) -> Vec<&mut IncrementalPlan> {
        Vec::new()
    }

    fn prune(
        self,
        schema: &SchemaRef,
        properties: Properties,
        required: &[usize],
    ) -> Result<IncrementalPlan> {
        let columns = required.iter().map(|&column| self.columns[column]).collect();
        let node = Node::Stream(Stream { relation: self.relation, columns });
        Ok(IncrementalPlan { node, schema: Arc::new(schema.project(required)?), properties })
    }

    fn explain(&self, schema: &SchemaRef, line: &mut String) -> fmt::Result {
        write!(line, "stream {} {}", self.relation, Names(schema).all())
    }

    fn relation(&self) -> Option<&str> {
        Some(&self.relation)
    }
}
