//! The rows that recur.

use std::fmt::{self, Write};

use alluvium_dataflow::movement::delta::DeltaStream;
use alluvium_dataflow::recursion::Round;
use arrow::datatypes::SchemaRef;
use datafusion_common::Result;

use super::{InRounds, Node, PlanNode};
use crate::expression::Expression;
use crate::fingerprint::Canonical;
use crate::names::Names;
use crate::physical::{
    CompileResult, Compiler, OperatorId, RoundCompiler, RoundId, RoundOperator, RoundRendering,
};
use crate::{Fingerprint, IncrementalPlan, LowerBounds, Properties, Reason};

/// The rows of a recursion, inside of its step: those of the round before.
#[derive(Clone, Debug)]
pub struct Recurrence {
    /// The relation that recurs.
    pub name: String,
    /// Distinguishes recursions with relations of one name.
    pub recursion: Fingerprint,
}

impl IncrementalPlan {
    /// The rows, of this schema, of a relation that recurs. If nothing else in the recursion takes rows back, neither does this.
    pub(crate) fn recurrence(
        name: &str,
        recursion: Fingerprint,
        schema: SchemaRef,
        is_distinct: bool,
    ) -> IncrementalPlan {
        let unique =
            if is_distinct { vec![(0..schema.fields().len()).collect()] } else { Vec::new() };
        let properties = Properties::new(unique, true);
        let node = Recurrence { name: name.to_owned(), recursion };
        IncrementalPlan::new(Node::Recurrence(node), schema, properties)
    }

    /// Whether the rows are made of those of a recursion around this plan.
    pub(crate) fn recurs(&self) -> bool {
        match &self.node {
            Node::Recurrence(_) => true,
            // The relations that it reads do not recur in another one.
            Node::Recursion(_) => false,
            _ => self.inputs().into_iter().any(IncrementalPlan::recurs),
        }
    }
}

impl PlanNode for Recurrence {
    fn prune(
        self,
        schema: &SchemaRef,
        properties: Properties,
        required: &[usize],
    ) -> Result<IncrementalPlan> {
        let all = IncrementalPlan::new(Node::Recurrence(self), schema.clone(), properties);
        IncrementalPlan::columns(all, required)
    }

    fn bound(&mut self, schema: &SchemaRef, _: &[Expression]) -> LowerBounds {
        vec![Err(Reason::new("a recursion goes back to all of its rows")); schema.fields().len()]
    }

    fn encode(&self, canonical: &mut Canonical) {
        canonical.text("recurrence");
        canonical.text(&self.name);
        canonical.other_plan(self.recursion);
    }

    /// # Panics
    ///
    /// Always: it is compiled inside of its recursion.
    fn compile(&self, _: &IncrementalPlan, _: &mut Compiler) -> CompileResult<OperatorId> {
        unreachable!("what recurs is compiled inside of its recursion")
    }

    fn in_rounds(&self) -> Option<&dyn InRounds> {
        Some(self)
    }

    fn explain(&self, schema: &SchemaRef, line: &mut String) -> fmt::Result {
        write!(line, "rows of {} {}", self.name, Names(schema).all())
    }
}

impl InRounds for Recurrence {
    fn compile_in_rounds(
        &self,
        _: &IncrementalPlan,
        compiler: &mut RoundCompiler<'_>,
    ) -> CompileResult<RoundId> {
        Ok(compiler.add(RowsBefore(compiler.member(&self.name))))
    }
}

/// The rows of a relation in the round before, by its number among those that recur, ready to be rendered.
#[derive(Debug)]
struct RowsBefore(usize);

impl RoundOperator for RowsBefore {
    fn render<'inner>(
        &self,
        rendering: &mut RoundRendering<'_, 'inner, '_>,
    ) -> DeltaStream<'inner, Round> {
        rendering.before(self.0)
    }
}
