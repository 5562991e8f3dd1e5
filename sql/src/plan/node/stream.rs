//! Streams: the rows of a table that does not keep them, as they arrive.

use crate::physical::{CompileResult, Compiler, Operator, OperatorId, Rendering};
use alluvium_dataflow::delta::DeltaStream;
use alluvium_trace::Epoch;
use std::fmt::{self, Write};
use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use datafusion_common::Result;

use super::{Node, PlanNode};
use crate::plan::fingerprint::Canonical;
use crate::plan::names::Names;
use crate::plan::{IncrementalPlan, Properties};

/// The rows of a table that does not keep them, as they arrive.
#[derive(Clone, Debug)]
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
        let schema = Arc::new(schema.project(&columns)?);
        let node = Node::Stream(Stream { relation, columns });
        let properties = Properties { unique: Vec::new(), append_only };
        Ok(IncrementalPlan::new(node, schema, properties))
    }
}

impl PlanNode for Stream {
    fn prune(
        self,
        schema: &SchemaRef,
        properties: Properties,
        required: &[usize],
    ) -> Result<IncrementalPlan> {
        let columns = required.iter().map(|&column| self.columns[column]).collect();
        let node = Node::Stream(Stream { relation: self.relation, columns });
        let schema = Arc::new(schema.project(required)?);
        Ok(IncrementalPlan::new(node, schema, properties))
    }

    fn encode(&self, canonical: &mut Canonical) {
        canonical.text("stream");
        canonical.text(&self.relation);
        canonical.columns(&self.columns);
    }

    fn compile(&self, _: &IncrementalPlan, compiler: &mut Compiler) -> CompileResult<OperatorId> {
        let (relation, columns) = (self.relation.clone(), self.columns.clone());
        compiler.read_stream(&relation);
        Ok(compiler.add(StreamRows { relation, columns }))
    }

    fn explain(&self, schema: &SchemaRef, line: &mut String) -> fmt::Result {
        write!(line, "stream {} {}", self.relation, Names(schema).all())
    }

    fn relation(&self) -> Option<&str> {
        Some(&self.relation)
    }
}

/// A stream, ready to be rendered.
#[derive(Debug)]
struct StreamRows {
    relation: String,
    columns: Vec<usize>,
}

impl Operator for StreamRows {
    fn render<'scope>(&self, rendering: &mut Rendering<'scope, '_>) -> DeltaStream<'scope, Epoch> {
        rendering.stream(&self.relation, &self.columns)
    }
}
