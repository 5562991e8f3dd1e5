//! Recursions: WITH RECURSIVE, and recursive views.

use std::fmt::{self, Write};
use std::sync::{Arc, OnceLock};

use alluvium_dataflow::delta::DeltaStream;
use alluvium_dataflow::map::{MapStep, maps};
use alluvium_dataflow::recursion::variable::Limit;
use alluvium_dataflow::recursion::{Round, enter, leave, replay, settle, variable};
use alluvium_trace::Epoch;
use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion_common::{Result, plan_err};
use timely::dataflow::operators::Concatenate;

use super::map::relabeling;
use super::{Node, PlanNode};
use crate::physical::{
    Arranged, CompileResult, Compiler, Operator, OperatorId, Place, Rendering, RoundPlan,
};
use crate::plan::expression::Expression;
use crate::plan::fingerprint::Canonical;
use crate::plan::prune::prune_nothing;
use crate::plan::{IncrementalPlan, LowerBounds, Properties, Reason, Retention};

/// The rows of a base, and what a step makes of them, and of what it makes.
///
/// The step has the rows as a [`Recurrence`](super::Recurrence). The result is the first round after which nothing changes.
#[derive(Clone, Debug)]
pub struct Recursion {
    /// What recurs.
    pub name: String,
    /// The rows of round 0.
    pub base: Box<IncrementalPlan>,
    /// What the rows of a round add to the base in the next one.
    pub step: Box<IncrementalPlan>,
    /// Whether each row is there once.
    pub is_distinct: bool,
    /// The last round.
    pub limit: u64,
    /// Which rows are needed.
    pub retention: Retention,
}

impl IncrementalPlan {
    /// The rows of `base`, and what `step` makes of all that are there.
    pub(crate) fn recursion(
        name: String,
        base: IncrementalPlan,
        step: IncrementalPlan,
        is_distinct: bool,
        limit: u64,
    ) -> Result<IncrementalPlan> {
        let mut fields = Vec::with_capacity(base.width());
        for (one, other) in base.schema.fields().iter().zip(step.schema.fields()) {
            if one.data_type() != other.data_type() {
                return plan_err!(
                    "column \"{}\" of \"{name}\" is {} at first and {} in its step: add a CAST",
                    one.name(),
                    one.data_type(),
                    other.data_type()
                );
            }
            let nullable = one.is_nullable() || other.is_nullable();
            fields.push(Field::new(one.name(), one.data_type().clone(), nullable));
        }
        let unique = if is_distinct { vec![(0..base.width()).collect()] } else { Vec::new() };
        let append_only = base.properties.append_only && step.properties.append_only;
        let properties = Properties::new(unique, append_only);
        let (base, step) = (Box::new(base), Box::new(step));
        let retention = Retention::default();
        let node = Recursion { name, base, step, is_distinct, limit, retention };
        Ok(IncrementalPlan::new(Node::Recursion(node), Arc::new(Schema::new(fields)), properties))
    }

    /// Bounds the inputs that are the same in all rounds. What recurs has no bounds.
    fn bound_outside(&mut self) {
        if !self.recurs() {
            self.bound(&[]);
            return;
        }
        self.fingerprint = OnceLock::new();
        self.inputs_mut().into_iter().for_each(IncrementalPlan::bound_outside);
        if let Node::Join(join) = &mut self.node {
            join.retention = (Retention::All(any_round()), Retention::All(any_round()));
        }
    }

    /// The inputs of a step whose rows enter it as a stream, in the order in which they are compiled.
    fn entering(&self) -> Vec<&IncrementalPlan> {
        if !self.recurs() {
            return vec![self];
        }
        let inputs = self.inputs().into_iter();
        let is_stream = |input: &&IncrementalPlan| match self.node {
            // What recurs is joined with arrangements.
            Node::Join(_) => input.recurs(),
            _ => true,
        };
        inputs.filter(is_stream).flat_map(IncrementalPlan::entering).collect()
    }
}

/// Why all rows are kept.
fn any_round() -> Reason {
    Reason::new("the rows of a recursion follow from rows of any time")
}

impl PlanNode for Recursion {
    fn inputs(&self) -> Vec<&IncrementalPlan> {
        vec![&self.base, &self.step]
    }

    fn inputs_mut(&mut self) -> Vec<&mut IncrementalPlan> {
        vec![&mut self.base, &mut self.step]
    }

    fn prune(self, _: &SchemaRef, _: Properties, required: &[usize]) -> Result<IncrementalPlan> {
        let Recursion { name, base, step, is_distinct, limit, .. } = self;
        let (base, step) = (prune_nothing(*base)?, prune_nothing(*step)?);
        let recursion = IncrementalPlan::recursion(name, base, step, is_distinct, limit)?;
        IncrementalPlan::columns(recursion, required)
    }

    fn bound(&mut self, schema: &SchemaRef, _: &[Expression]) -> LowerBounds {
        self.base.bound(&[]);
        self.step.bound_outside();
        self.retention = Retention::All(any_round());
        vec![Err(any_round()); schema.fields().len()]
    }

    fn encode(&self, canonical: &mut Canonical) {
        canonical.text("recursion");
        canonical.flag(self.is_distinct);
        canonical.number(self.limit as usize);
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn compile(
        &self,
        plan: &IncrementalPlan,
        compiler: &mut Compiler,
    ) -> CompileResult<OperatorId> {
        let id = compiler.next_id("recursion");
        let everything = Retention::default();
        let base_id = format!("{id}.base");
        let base = Arranged::without_keys(&self.base, false, &everything, &base_id, compiler)?;
        let step = RoundPlan::compile(&self.step, &plan.schema, &id, compiler)?;
        let is_relabeled = self.base.schema != plan.schema;
        let relabel = is_relabeled.then(|| relabeling(&self.base.schema, plan.schema.clone()));
        let limit = Limit { name: self.name.as_str().into(), rounds: self.limit };
        let settle = settle::Spec::compile(plan.schema.clone(), self.is_distinct, &self.name)?;
        let places = std::iter::once(base.place()).chain(step.places()).collect();
        let reports = compiler.reports(0);
        let operator = RecursionRows { base, relabel, step, settle, limit, reports };
        Ok(compiler.add_stateful(plan, operator, places, Some(id)))
    }

    fn explain(&self, _: &SchemaRef, line: &mut String) -> fmt::Result {
        let kind = if self.is_distinct { "union" } else { "union all" };
        write!(line, "recursion {} by {kind}, at most {} rounds", self.name, self.limit)
    }

    fn retained(&self) -> Vec<(&'static str, &SchemaRef, &Retention)> {
        let entering = self.step.entering().into_iter();
        let entering = entering.map(|input| ("rows that enter", &input.schema, &self.retention));
        let mut retained = vec![("base rows", &self.base.schema, &self.retention)];
        retained.extend(entering);
        retained.push(("changes of each round", &self.base.schema, &self.retention));
        retained
    }

    fn state(&self, places: &[Place]) -> Option<String> {
        let places: Vec<String> = places.iter().map(Place::to_string).collect();
        Some(match places.split_last() {
            Some((rounds, inputs)) => {
                format!("inputs {}, changes of each round {rounds}", inputs.join(" and "))
            }
            None => "inputs, changes of each round".to_owned(),
        })
    }

    fn needs_state(&self) -> bool {
        true
    }
}

/// A recursion, ready to be rendered.
#[derive(Debug)]
struct RecursionRows {
    base: Arranged,
    /// Gives the base the names and the NULLs of the recursion.
    relabel: Option<MapStep>,
    step: RoundPlan,
    settle: settle::Spec,
    limit: Limit,
    reports: bool,
}

impl Operator for RecursionRows {
    fn render<'scope>(&self, rendering: &mut Rendering<'scope, '_>) -> DeltaStream<'scope, Epoch> {
        let context = rendering.context();
        let (base, base_rows) = replay(self.base.render(rendering), &context);
        let inputs = self.step.inputs(rendering);
        let mut kept = inputs.kept.clone();
        kept.push(base_rows);
        let outer = rendering.scope();
        let outside = &*rendering;
        let (rows, errors) = outer.scoped::<Round, _, _>("Recursion", |rounds| {
            let mut base = enter(base, rounds);
            if let Some(relabel) = &self.relabel {
                base = maps(base, vec![relabel.clone()], &context).0;
            }
            let (variable, before) = variable(rounds);
            let (made, mut errors) = self.step.render(inputs, before, rounds, outside);
            let all = rounds.concatenate([base, made]);
            let (rows, excess) = settle(&self.settle, all, &context);
            let endless = variable.set(rows.clone(), self.limit.clone(), &context);
            errors.extend([excess, endless]);
            let errors = rounds.concatenate(errors);
            (leave(rows, kept, outer), leave(errors, Vec::new(), outer))
        });
        if self.reports {
            rendering.report(errors);
        }
        rows
    }
}
