//! DISTINCT.

use std::fmt;
use std::sync::Arc;

use alluvium_dataflow::movement::delta::DeltaStream;
use alluvium_dataflow::recursion::{Round, settle};
use alluvium_dataflow::reductions::distinct::{self, distinct};
use alluvium_trace::Epoch;
use arrow::datatypes::SchemaRef;
use datafusion_common::Result;

use super::{InRounds, Node, PlanNode, sorted};
use crate::constructs::Clause;
use crate::expression::Expression;
use crate::fingerprint::Canonical;
use crate::names;
use crate::physical::{
    CompileResult, Compiler, Operator, OperatorId, Place, Rendering, RoundCompiler, RoundId,
    RoundOperator, RoundRendering, State,
};
use crate::prune::prune_nothing;
use crate::{IncrementalPlan, LowerBounds, Properties, Retention, bounds};

/// Each row once.
#[derive(Clone, Debug)]
pub struct Distinct {
    /// The rows.
    pub input: Box<IncrementalPlan>,
    /// Which rows are needed.
    pub retention: Retention,
}

impl IncrementalPlan {
    /// Each row once; the input itself if its rows are distinct already.
    pub(crate) fn distinct(input: IncrementalPlan) -> IncrementalPlan {
        if !input.properties.unique.is_empty() {
            return input;
        }
        let properties =
            Properties { unique: vec![(0..input.width()).collect()], ..input.properties.clone() };
        let schema = Arc::clone(&input.schema);
        let node =
            Node::Distinct(Distinct { input: Box::new(input), retention: Retention::default() });
        IncrementalPlan::new(node, schema, properties)
    }
}

impl PlanNode for Distinct {
    fn inputs(&self) -> Vec<&IncrementalPlan> {
        vec![&self.input]
    }

    fn inputs_mut(&mut self) -> Vec<&mut IncrementalPlan> {
        vec![&mut self.input]
    }

    fn prune(self, _: &SchemaRef, _: Properties, required: &[usize]) -> Result<IncrementalPlan> {
        let distinct = IncrementalPlan::distinct(prune_nothing(*self.input)?);
        IncrementalPlan::columns(distinct, required)
    }

    fn bound(&mut self, schema: &SchemaRef, conditions: &[Expression]) -> LowerBounds {
        let of_rows = self.input.bound(conditions);
        self.retention =
            Retention::by_first(&of_rows, 0..of_rows.len(), schema, bounds::no_time_in_rows);
        of_rows
    }

    fn encode(&self, canonical: &mut Canonical) {
        canonical.text("distinct");
        sorted::encode(&self.retention, self.input.width(), canonical);
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn compile(
        &self,
        plan: &IncrementalPlan,
        compiler: &mut Compiler,
    ) -> CompileResult<OperatorId> {
        let input = compiler.rows(&self.input)?;
        sorted::compile("distinct", plan, [input], &self.retention, compiler, |[input], schema| {
            let spec = distinct::Spec::compile(schema)?;
            let layout = spec.layout().clone();
            Ok((DistinctRows { input, spec }, layout))
        })
    }

    fn in_rounds(&self) -> Option<&dyn InRounds> {
        Some(self)
    }

    fn explain(&self, _: &SchemaRef, line: &mut String) -> fmt::Result {
        line.push_str("distinct");
        Ok(())
    }

    fn clause(&self) -> Option<Clause> {
        Some(Clause::Distinct)
    }

    fn retained(&self) -> Vec<(&'static str, &SchemaRef, &Retention)> {
        vec![("rows", &self.input.schema, &self.retention)]
    }

    fn state(&self, places: &[Place]) -> Option<String> {
        Some(names::kept("rows", places))
    }

    fn needs_state(&self) -> bool {
        true
    }
}

impl InRounds for Distinct {
    fn compile_in_rounds(
        &self,
        plan: &IncrementalPlan,
        compiler: &mut RoundCompiler<'_>,
    ) -> CompileResult<RoundId> {
        let input = compiler.rows_as(&self.input, &plan.schema)?;
        let spec = settle::Spec::compile(plan.schema.clone(), true, "DISTINCT")?;
        let state = compiler.state(plan, &[]);
        Ok(compiler.add(RoundDistinct { input, spec, state }))
    }
}

/// A DISTINCT inside of a recursion, ready to be rendered.
#[derive(Debug)]
struct RoundDistinct {
    input: RoundId,
    spec: settle::Spec,
    state: State,
}

impl RoundOperator for RoundDistinct {
    fn render<'inner>(
        &self,
        rendering: &mut RoundRendering<'_, 'inner, '_>,
    ) -> DeltaStream<'inner, Round> {
        // None of distinct rows has too many copies.
        let context = rendering.context_of(&self.state);
        settle(&self.spec, rendering.rows(self.input), &context).0
    }
}

/// A DISTINCT, ready to be rendered.
#[derive(Debug)]
struct DistinctRows {
    input: OperatorId,
    spec: distinct::Spec,
}

impl Operator for DistinctRows {
    fn render<'scope>(&self, rendering: &mut Rendering<'scope, '_>) -> DeltaStream<'scope, Epoch> {
        distinct(&self.spec, rendering.rows(self.input), &rendering.context())
    }
}
