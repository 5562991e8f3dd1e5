//! Series: the integers that `generate_series` and `range` list.

use std::fmt::{self, Write};
use std::sync::Arc;

use alluvium_dataflow::movement::delta::DeltaStream;
use alluvium_dataflow::series::{self, series};
use alluvium_trace::Epoch;
use arrow::datatypes::SchemaRef;
use datafusion_common::Result;

use super::{Node, PlanNode};
use crate::expression::Expression;
use crate::fingerprint::Canonical;
use crate::physical::{CompileResult, Compiler, Operator, OperatorId, Rendering};
use crate::{IncrementalPlan, LowerBound, LowerBounds, Properties};

/// The values of an arithmetic series, in one column.
#[derive(Clone, Debug)]
pub struct Series {
    /// The values.
    pub values: series::Series,
}

impl IncrementalPlan {
    /// The values of a series as the one column of `schema`.
    pub(crate) fn series(values: series::Series, schema: SchemaRef) -> IncrementalPlan {
        let unique = if values.length <= 1 { vec![Vec::new()] } else { vec![vec![0]] };
        let properties = Properties { unique, append_only: true, ..Properties::default() };
        IncrementalPlan::new(Node::Series(Series { values }), schema, properties)
    }
}

impl PlanNode for Series {
    fn prune(
        self,
        schema: &SchemaRef,
        _: Properties,
        required: &[usize],
    ) -> Result<IncrementalPlan> {
        let series = IncrementalPlan::series(self.values, Arc::clone(schema));
        IncrementalPlan::columns(series, required)
    }

    fn bound(&mut self, schema: &SchemaRef, _: &[Expression]) -> LowerBounds {
        vec![Ok(LowerBound::constant()); schema.fields().len()]
    }

    fn encode(&self, canonical: &mut Canonical) {
        let series::Series { first, step, length } = self.values;
        canonical.text("series");
        canonical.bytes(&first.to_le_bytes());
        canonical.bytes(&step.to_le_bytes());
        canonical.bytes(&length.to_le_bytes());
    }

    fn compile(
        &self,
        plan: &IncrementalPlan,
        compiler: &mut Compiler,
    ) -> CompileResult<OperatorId> {
        Ok(compiler.add(SeriesRows { values: self.values, schema: Arc::clone(&plan.schema) }))
    }

    fn explain(&self, _: &SchemaRef, line: &mut String) -> fmt::Result {
        let series::Series { first, step, length } = self.values;
        write!(line, "series: {length} rows from {first} in steps of {step}")
    }
}

/// A series, ready to be rendered.
#[derive(Debug)]
struct SeriesRows {
    values: series::Series,
    schema: SchemaRef,
}

impl Operator for SeriesRows {
    fn render<'scope>(&self, rendering: &mut Rendering<'scope, '_>) -> DeltaStream<'scope, Epoch> {
        let context = rendering.context();
        let schema = Arc::clone(&self.schema);
        series(rendering.scope(), self.values, schema, rendering.as_of(), &context)
    }
}
