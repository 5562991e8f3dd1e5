//! Streams: the rows of a table that does not keep them, as they arrive.

use std::fmt::{self, Write};
use std::sync::Arc;

use alluvium_dataflow::movement::delta::DeltaStream;
use alluvium_trace::Epoch;
use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion_common::Result;

use super::{Node, PlanNode, Scan};
use crate::expression::Expression;
use crate::fingerprint::Canonical;
use crate::names::Names;
use crate::physical::{CompileResult, Compiler, Operator, OperatorId, Rendering};
use crate::properties::Dependency;
use crate::{IncrementalPlan, LowerBound, LowerBounds, Properties, Reason};

/// The rows of a table that does not keep them, as they arrive.
#[derive(Clone, Debug)]
pub struct Stream {
    /// The table's name in the catalog.
    pub relation: String,
    /// Which of its columns, in output order.
    pub columns: Vec<usize>,
    /// Which of its columns have a waterline.
    pub waterlines: Vec<usize>,
}

impl IncrementalPlan {
    /// Some columns of a table that does not keep its rows and whose columns are `schema`. Unless the table is
    /// `append_only`, rows may be deleted, too. `waterlines` are those of its columns that have one.
    ///
    /// # Errors
    /// If there is no such column.
    pub fn stream(
        relation: String,
        schema: &Schema,
        columns: Vec<usize>,
        append_only: bool,
        waterlines: Vec<usize>,
    ) -> Result<IncrementalPlan> {
        let schema = Arc::new(schema.project(&columns)?);
        let node = Node::Stream(Stream { relation, columns, waterlines });
        let properties = Properties { append_only, ..Properties::default() };
        Ok(IncrementalPlan::new(node, schema, properties))
    }

    /// The same rows of a table, no two of which should agree on its columns `key`, though that is not enforced.
    pub(crate) fn with_promised_key(mut self, key: &[usize]) -> IncrementalPlan {
        let (Node::Stream(Stream { columns, .. }) | Node::Scan(Scan { columns, .. })) = &self.node
        else {
            return self;
        };
        let place = |key: &usize| columns.iter().position(|column| column == key);
        let by: Option<Vec<usize>> = key.iter().map(place).collect();
        if let Some(by) = by.filter(|by| !by.is_empty()) {
            let columns = (0..columns.len()).filter(|column| !by.contains(column)).collect();
            self.properties.dependencies.push(Dependency { by, columns, promised: true });
        }
        self
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
        let node = Node::Stream(Stream { columns, ..self });
        let properties = properties.of_columns(required, schema.fields().len());
        let schema = Arc::new(schema.project(required)?);
        Ok(IncrementalPlan::new(node, schema, properties))
    }

    fn bound(&mut self, schema: &SchemaRef, _: &[Expression]) -> LowerBounds {
        table_bounds(&self.relation, &self.columns, &self.waterlines, schema)
    }

    fn encode(&self, canonical: &mut Canonical) {
        canonical.text("stream");
        canonical.relation(&self.relation);
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

/// The lower bounds of the columns `columns` of a table, whose names are in `schema`.
pub(super) fn table_bounds(
    table: &str,
    columns: &[usize],
    waterlines: &[usize],
    schema: &SchemaRef,
) -> LowerBounds {
    let bound = |(&column, field): (&usize, &Arc<Field>)| {
        if waterlines.contains(&column) {
            return Ok(LowerBound::waterline(table, column, field));
        }
        Err(Reason::no_lateness(table, field.name()))
    };
    columns.iter().zip(schema.fields()).map(bound).collect()
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
