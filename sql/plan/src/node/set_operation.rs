//! INTERSECT and EXCEPT.

use std::fmt;
use std::sync::Arc;

use alluvium_dataflow::movement::delta::DeltaStream;
use alluvium_dataflow::reductions::sets;
use alluvium_sql_planner::statements::set_operation;
use alluvium_trace::Epoch;
use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion_common::{Result, plan_err};

use super::{Node, PlanNode, sorted};
use crate::bounds::least;
use crate::constructs::Clause;
use crate::expression::Expression;
use crate::fingerprint::Canonical;
use crate::names;
use crate::physical::Place;
use crate::physical::{CompileResult, Compiler, Operator, OperatorId, Rendering};
use crate::prune::prune_nothing;
use crate::{IncrementalPlan, LowerBounds, Properties, Retention, bounds};

/// INTERSECT or EXCEPT of two inputs of the same column types; whole rows are compared.
#[derive(Clone, Debug)]
pub struct SetOperation {
    /// The left rows.
    pub left: Box<IncrementalPlan>,
    /// The right rows.
    pub right: Box<IncrementalPlan>,
    /// Which operation.
    pub operation: sets::SetOperation,
    /// Which rows of both sides are needed.
    pub retention: Retention,
}

impl IncrementalPlan {
    /// The result of `operation` on the rows of both inputs, under the names of `schema`.
    pub(crate) fn set_operation(
        left: IncrementalPlan,
        right: IncrementalPlan,
        operation: sets::SetOperation,
        schema: &Schema,
    ) -> Result<IncrementalPlan> {
        use sets::SetOperation::{Except, ExceptAll, Intersect, IntersectAll};

        let mut fields = Vec::with_capacity(schema.fields().len());
        let sides = left.schema.fields().iter().zip(right.schema.fields());
        for (field, (left, right)) in schema.fields().iter().zip(sides) {
            if left.data_type() != right.data_type() {
                return plan_err!(
                    "column \"{}\" of the {} is {} here and {} there",
                    field.name(),
                    set_operation::name(operation),
                    left.data_type(),
                    right.data_type()
                );
            }
            let nullable = left.is_nullable() || right.is_nullable();
            fields.push(Field::new(field.name(), left.data_type().clone(), nullable));
        }
        let has_distinct_rows = |plan: &IncrementalPlan| !plan.properties.unique.is_empty();
        let distinct = match operation {
            Intersect | Except => true,
            IntersectAll => has_distinct_rows(&left) || has_distinct_rows(&right),
            ExceptAll => has_distinct_rows(&left),
        };
        let unique = if distinct { vec![(0..fields.len()).collect()] } else { Vec::new() };
        let append_only = left.properties.append_only
            && right.properties.append_only
            && matches!(operation, Intersect | IntersectAll);
        let (left, right) = (Box::new(left), Box::new(right));
        let node = Node::SetOperation(SetOperation {
            left,
            right,
            operation,
            retention: Retention::default(),
        });
        let schema = Arc::new(Schema::new(fields));
        let properties = Properties { unique, append_only, ..Properties::default() };
        Ok(IncrementalPlan::new(node, schema, properties))
    }
}

impl PlanNode for SetOperation {
    fn inputs(&self) -> Vec<&IncrementalPlan> {
        vec![&self.left, &self.right]
    }

    fn inputs_mut(&mut self) -> Vec<&mut IncrementalPlan> {
        vec![&mut self.left, &mut self.right]
    }

    fn prune(
        self,
        schema: &SchemaRef,
        _: Properties,
        required: &[usize],
    ) -> Result<IncrementalPlan> {
        let (left, right) = (prune_nothing(*self.left)?, prune_nothing(*self.right)?);
        let plan = IncrementalPlan::set_operation(left, right, self.operation, schema)?;
        IncrementalPlan::columns(plan, required)
    }

    fn bound(&mut self, schema: &SchemaRef, conditions: &[Expression]) -> LowerBounds {
        let (left, right) = (self.left.bound(conditions), self.right.bound(conditions));
        let of_rows: LowerBounds = left.iter().zip(&right).map(|(l, r)| least(l, r)).collect();
        self.retention =
            Retention::by_first(&of_rows, 0..of_rows.len(), schema, bounds::no_time_in_rows);
        of_rows
    }

    fn encode(&self, canonical: &mut Canonical) {
        canonical.text(set_operation::name(self.operation));
        sorted::encode(&self.retention, self.left.width(), canonical);
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn compile(
        &self,
        plan: &IncrementalPlan,
        compiler: &mut Compiler,
    ) -> CompileResult<OperatorId> {
        let left = compiler.rows_as(&self.left, &plan.schema)?;
        let right = compiler.rows_as(&self.right, &plan.schema)?;
        let (id, sides) = ("set_operation", [left, right]);
        sorted::compile(id, plan, sides, &self.retention, compiler, |[left, right], schema| {
            let spec = sets::Spec::compile(self.operation, schema)?;
            let layout = spec.layout().clone();
            Ok((SetOperationRows { left, right, spec }, layout))
        })
    }

    fn explain(&self, _: &SchemaRef, line: &mut String) -> fmt::Result {
        line.push_str(&set_operation::name(self.operation).to_lowercase());
        Ok(())
    }

    fn clause(&self) -> Option<Clause> {
        Some(Clause::Set(set_operation::name(self.operation)))
    }

    fn retained(&self) -> Vec<(&'static str, &SchemaRef, &Retention)> {
        vec![("rows of both sides", &self.left.schema, &self.retention)]
    }

    fn state(&self, places: &[Place]) -> Option<String> {
        Some(names::kept("rows of both sides", places))
    }

    fn needs_state(&self) -> bool {
        true
    }
}

/// A set operation, ready to be rendered.
#[derive(Debug)]
struct SetOperationRows {
    left: OperatorId,
    right: OperatorId,
    spec: sets::Spec,
}

impl Operator for SetOperationRows {
    fn render<'scope>(&self, rendering: &mut Rendering<'scope, '_>) -> DeltaStream<'scope, Epoch> {
        let (left, right) = (rendering.rows(self.left), rendering.rows(self.right));
        sets::set_operation(&self.spec, left, right, &rendering.context())
    }
}
