//! Final rows: the rows of a view with `'emit_final'`.

use std::fmt::{self, Write};
use std::sync::Arc;

use alluvium_dataflow::movement::delta::DeltaStream;
use alluvium_dataflow::rows::codec::CodecError;
use alluvium_dataflow::time::final_rows::{self, final_rows};
use alluvium_trace::Epoch;
use arrow::datatypes::SchemaRef;
use datafusion_common::Result;

use super::{Node, PlanNode};
use crate::expression::{self, Expression};
use crate::fingerprint::Canonical;
use crate::names;
use crate::names::Names;
use crate::physical::Place;
use crate::physical::{CompileResult, Compiler, Operator, OperatorId, Rendering};
use crate::prune::{place, prune_with};
use crate::{IncrementalPlan, LowerBounds, Properties, Reason, Retention};

/// Each row once, when it can no longer change: when a column of it is below the column's lower bound.
#[derive(Clone, Debug)]
pub struct FinalRows {
    /// The rows, without those that have NULL in the column: these can always change.
    pub input: Box<IncrementalPlan>,
    /// The column.
    pub column: usize,
    /// Which rows still wait: those that the column's bound does not make final.
    pub retention: Retention,
}

impl IncrementalPlan {
    /// The rows that are final by a column.
    pub(crate) fn final_rows(input: IncrementalPlan, column: usize) -> Result<IncrementalPlan> {
        let input = match input.schema.field(column).is_nullable() {
            true => {
                let column = expression::column(&input.schema, column);
                IncrementalPlan::filter(input, expression::is_not_null(&column))?
            }
            false => input,
        };
        Ok(IncrementalPlan::waiting(input, column))
    }

    /// The same, of rows none of which has NULL in the column.
    fn waiting(input: IncrementalPlan, column: usize) -> IncrementalPlan {
        let properties = Properties { append_only: true, ..input.properties.clone() };
        let schema = Arc::clone(&input.schema);
        let retention = Retention::default();
        let node = Node::FinalRows(FinalRows { input: Box::new(input), column, retention });
        IncrementalPlan::new(node, schema, properties)
    }

    /// Why rows of the plan that wait to be final never are, if there are such.
    pub(crate) fn never_final(&self) -> Option<(&str, &Reason)> {
        if let Node::FinalRows(FinalRows { column, retention: Retention::All(reason), .. }) =
            &self.node
        {
            return Some((self.schema.field(*column).name(), reason));
        }
        self.inputs().into_iter().find_map(IncrementalPlan::never_final)
    }
}

impl PlanNode for FinalRows {
    fn inputs(&self) -> Vec<&IncrementalPlan> {
        vec![&self.input]
    }

    fn inputs_mut(&mut self) -> Vec<&mut IncrementalPlan> {
        vec![&mut self.input]
    }

    fn prune(self, _: &SchemaRef, _: Properties, required: &[usize]) -> Result<IncrementalPlan> {
        let (input, used, columns) = prune_with(*self.input, required, [self.column])?;
        let rows = IncrementalPlan::waiting(input, place(&used, self.column));
        IncrementalPlan::columns(rows, &columns)
    }

    /// A row comes once it is below the bound after its epoch, and none comes that was below before. The other columns are those
    /// of changes from long ago.
    fn bound(&mut self, schema: &SchemaRef, _: &[Expression]) -> LowerBounds {
        let below = self.input.bound(&[]);
        self.retention = Retention::by(&below, self.column, schema);
        let by = schema.field(self.column).name();
        let others = Reason::new(format!("rows come when they are final by \"{by}\""));
        let mut bounds = vec![Err(others); below.len()];
        bounds[self.column] = below[self.column].clone();
        bounds
    }

    fn encode(&self, canonical: &mut Canonical) {
        canonical.text("final");
        canonical.number(self.column);
        self.retention.encode(canonical);
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn compile(
        &self,
        plan: &IncrementalPlan,
        compiler: &mut Compiler,
    ) -> CompileResult<OperatorId> {
        if let Retention::All(reason) = &self.retention {
            return Err(CodecError::Evaluation(format!("rows that are never final: {reason}")));
        }
        let spec = final_rows::Spec::compile(plan.schema.clone(), self.column)?;
        let input = compiler.rows(&self.input)?;
        let id = compiler.next_id("final");
        let layout = spec.layout().clone();
        let rows = compiler.add_stateful(plan, WaitingRows { input, spec }, Vec::new(), Some(id));
        compiler.prune(&self.retention, &layout);
        Ok(rows)
    }

    fn explain(&self, schema: &SchemaRef, line: &mut String) -> fmt::Result {
        write!(line, "rows that are final by {}", Names(schema).column(self.column))
    }

    fn retained(&self) -> Vec<(&'static str, &SchemaRef, &Retention)> {
        vec![("rows that are not final", &self.input.schema, &self.retention)]
    }

    fn state(&self, places: &[Place]) -> Option<String> {
        Some(names::kept("rows that are not final", places))
    }

    fn needs_state(&self) -> bool {
        true
    }
}

/// Rows that wait to be final, ready to be rendered.
#[derive(Debug)]
struct WaitingRows {
    input: OperatorId,
    spec: final_rows::Spec,
}

impl Operator for WaitingRows {
    fn render<'scope>(&self, rendering: &mut Rendering<'scope, '_>) -> DeltaStream<'scope, Epoch> {
        final_rows(&self.spec, rendering.rows(self.input), &rendering.context())
    }
}
