//! Constants: rows that never change.

use std::fmt::{self, Write};

use alluvium_dataflow::movement::constant::constant;
use alluvium_dataflow::movement::delta::DeltaStream;
use alluvium_trace::Epoch;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion_common::Result;

use super::{Node, PlanNode};
use crate::expression::Expression;
use crate::fingerprint::Canonical;
use crate::physical::{CompileResult, Compiler, Operator, OperatorId, Rendering};
use crate::{IncrementalPlan, LowerBound, LowerBounds, Properties};

/// Rows that never change.
#[derive(Clone, Debug)]
pub struct Constant {
    /// The rows.
    pub rows: RecordBatch,
}

impl IncrementalPlan {
    /// Rows that never change.
    pub(crate) fn constant(rows: RecordBatch) -> IncrementalPlan {
        let unique = if rows.num_rows() <= 1 { vec![Vec::new()] } else { Vec::new() };
        let schema = rows.schema();
        let node = Node::Constant(Constant { rows });
        let properties = Properties { unique, append_only: true, ..Properties::default() };
        IncrementalPlan::new(node, schema, properties)
    }
}

impl PlanNode for Constant {
    fn prune(self, _: &SchemaRef, _: Properties, required: &[usize]) -> Result<IncrementalPlan> {
        Ok(IncrementalPlan::constant(self.rows.project(required)?))
    }

    fn bound(&mut self, schema: &SchemaRef, _: &[Expression]) -> LowerBounds {
        vec![Ok(LowerBound::constant()); schema.fields().len()]
    }

    fn encode(&self, canonical: &mut Canonical) {
        canonical.text("constant");
        canonical.rows(&self.rows);
    }

    fn compile(&self, _: &IncrementalPlan, compiler: &mut Compiler) -> CompileResult<OperatorId> {
        Ok(compiler.add(ConstantRows { rows: self.rows.clone() }))
    }

    fn explain(&self, _: &SchemaRef, line: &mut String) -> fmt::Result {
        let rows = self.rows.num_rows();
        write!(line, "constant: {rows} row{}", if rows == 1 { "" } else { "s" })
    }
}

/// Constant rows, ready to be rendered.
#[derive(Debug)]
struct ConstantRows {
    rows: RecordBatch,
}

impl Operator for ConstantRows {
    fn render<'scope>(&self, rendering: &mut Rendering<'scope, '_>) -> DeltaStream<'scope, Epoch> {
        constant(rendering.scope(), self.rows.clone(), rendering.as_of())
    }
}
