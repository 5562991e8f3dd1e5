//! UNION ALL.

use std::fmt;
use std::sync::Arc;

use alluvium_dataflow::movement::delta::{DeltaStream, concatenated};
use alluvium_dataflow::recursion::Round;
use alluvium_trace::Epoch;
use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion_common::{Result, plan_err};

use super::{InRounds, Node, PlanNode};
use crate::bounds::least;
use crate::expression::Expression;
use crate::fingerprint::Canonical;
use crate::physical::{
    CompileResult, Compiler, Operator, OperatorId, Rendering, RoundCompiler, RoundId,
    RoundOperator, RoundRendering,
};
use crate::prune::prune;
use crate::{IncrementalPlan, LowerBound, LowerBounds, Properties};

/// All rows of all inputs, whose column types agree.
#[derive(Clone, Debug)]
pub struct Union {
    /// The inputs.
    pub inputs: Vec<IncrementalPlan>,
}

impl IncrementalPlan {
    /// All rows of all inputs, under the names of `schema`.
    pub(crate) fn union(inputs: Vec<IncrementalPlan>, schema: &Schema) -> Result<IncrementalPlan> {
        let mut flat = Vec::with_capacity(inputs.len());
        for input in inputs {
            match input.node {
                Node::Union(union) => flat.extend(union.inputs),
                _ => flat.push(input),
            }
        }
        let mut fields = Vec::with_capacity(schema.fields().len());
        for (number, field) in schema.fields().iter().enumerate() {
            let mut types = flat.iter().map(|input| input.schema.field(number).data_type());
            if let Some(other) = types.find(|other| *other != field.data_type()) {
                return plan_err!(
                    "column \"{}\" of the UNION is {} here and {other} there",
                    field.name(),
                    field.data_type()
                );
            }
            let nullable = flat.iter().any(|input| input.schema.field(number).is_nullable());
            fields.push(Field::new(field.name(), field.data_type().clone(), nullable));
        }
        let append_only = flat.iter().all(|input| input.properties.append_only);
        let properties = Properties { append_only, ..Properties::default() };
        let schema = Arc::new(Schema::new(fields));
        let node = Node::Union(Union { inputs: flat });
        Ok(IncrementalPlan::new(node, schema, properties))
    }
}

impl PlanNode for Union {
    fn inputs(&self) -> Vec<&IncrementalPlan> {
        self.inputs.iter().collect()
    }

    fn inputs_mut(&mut self) -> Vec<&mut IncrementalPlan> {
        self.inputs.iter_mut().collect()
    }

    fn prune(
        self,
        schema: &SchemaRef,
        _: Properties,
        required: &[usize],
    ) -> Result<IncrementalPlan> {
        let schema = schema.project(required)?;
        let inputs: Result<Vec<_>> =
            self.inputs.into_iter().map(|input| prune(input, required)).collect();
        IncrementalPlan::union(inputs?, &schema)
    }

    fn bound(&mut self, schema: &SchemaRef, conditions: &[Expression]) -> LowerBounds {
        let none = vec![Ok(LowerBound::constant()); schema.fields().len()];
        self.inputs.iter_mut().fold(none, |bounds, input| {
            let others = input.bound(conditions);
            bounds.iter().zip(&others).map(|(one, other)| least(one, other)).collect()
        })
    }

    fn encode(&self, canonical: &mut Canonical) {
        canonical.text("union");
    }

    fn compile(
        &self,
        plan: &IncrementalPlan,
        compiler: &mut Compiler,
    ) -> CompileResult<OperatorId> {
        let inputs = self.inputs.iter().map(|input| compiler.rows_as(input, &plan.schema));
        let inputs = inputs.collect::<CompileResult<_>>()?;
        Ok(compiler.add(UnionRows { inputs }))
    }

    fn in_rounds(&self) -> Option<&dyn InRounds> {
        Some(self)
    }

    fn explain(&self, _: &SchemaRef, line: &mut String) -> fmt::Result {
        line.push_str("union");
        Ok(())
    }
}

impl InRounds for Union {
    fn compile_in_rounds(
        &self,
        plan: &IncrementalPlan,
        compiler: &mut RoundCompiler<'_>,
    ) -> CompileResult<RoundId> {
        let inputs = self.inputs.iter().map(|input| compiler.rows_as(input, &plan.schema));
        let inputs = inputs.collect::<CompileResult<_>>()?;
        Ok(compiler.add(RoundUnion { inputs }))
    }
}

/// A UNION ALL, ready to be rendered.
#[derive(Debug)]
struct UnionRows {
    inputs: Vec<OperatorId>,
}

impl Operator for UnionRows {
    fn render<'scope>(&self, rendering: &mut Rendering<'scope, '_>) -> DeltaStream<'scope, Epoch> {
        let inputs = self.inputs.iter().map(|&input| rendering.rows(input));
        let inputs: Vec<_> = inputs.collect();
        concatenated(inputs).expect("a union has inputs")
    }
}

/// A UNION ALL inside of a recursion, ready to be rendered.
#[derive(Debug)]
struct RoundUnion {
    inputs: Vec<RoundId>,
}

impl RoundOperator for RoundUnion {
    fn render<'inner>(
        &self,
        rendering: &mut RoundRendering<'_, 'inner, '_>,
    ) -> DeltaStream<'inner, Round> {
        let inputs: Vec<_> = self.inputs.iter().map(|&input| rendering.rows(input)).collect();
        concatenated(inputs).expect("a union has inputs")
    }
}
