//! Recursions: WITH RECURSIVE, and recursive views.

use std::fmt::{self, Write};
use std::sync::{Arc, OnceLock};

use alluvium_dataflow::movement::delta::DeltaStream;
use alluvium_dataflow::movement::delta::concatenated;
use alluvium_dataflow::recursion::variable::Limit;
use alluvium_dataflow::recursion::{Round, leave, settle, variable};
use alluvium_trace::Epoch;
use arrow::datatypes::SchemaRef;
use datafusion_common::{Result, plan_err};

use super::{Node, PlanNode};
use crate::expression::Expression;
use crate::fingerprint::Canonical;
use crate::physical::{CompileResult, Compiler, Operator, OperatorId, Place, Rendering, RoundPlan};
use crate::prune::prune_nothing;
use crate::{IncrementalPlan, LowerBounds, Properties, Reason, Retention};

/// Relations that are computed from themselves and from each other, until nothing changes.
///
/// The body of a relation has the rows of the round before as a [`Recurrence`](super::Recurrence), which has none in round 0.
/// The result is the first round after which nothing changes.
#[derive(Clone, Debug)]
pub struct Recursion {
    /// The relations that recur.
    pub members: Vec<Member>,
    /// The number of the relation whose rows these are.
    pub result: usize,
    /// The last round.
    pub limit: u64,
    /// Which rows are needed.
    pub retention: Retention,
}

/// A relation that recurs.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// Its columns.
    pub schema: SchemaRef,
    /// Its rows in each round.
    pub body: IncrementalPlan,
    /// Whether each row is there once.
    pub is_distinct: bool,
}

impl Member {
    /// The rows of `base`, and what `step` makes of those of the round before.
    pub(crate) fn of_union(
        name: String,
        base: IncrementalPlan,
        step: IncrementalPlan,
        is_distinct: bool,
    ) -> Result<Member> {
        for (one, other) in base.schema.fields().iter().zip(step.schema.fields()) {
            if one.data_type() != other.data_type() {
                return plan_err!(
                    "column \"{}\" of \"{name}\" is {} at first and {} in its step: add a CAST",
                    one.name(),
                    one.data_type(),
                    other.data_type()
                );
            }
        }
        let names = Arc::clone(&base.schema);
        let body = IncrementalPlan::union(vec![base, step], &names)?;
        Ok(Member { name, schema: Arc::clone(&body.schema), body, is_distinct })
    }
}

impl IncrementalPlan {
    /// The rows of one of several relations that recur.
    pub(crate) fn recursion(members: Vec<Member>, result: usize, limit: u64) -> IncrementalPlan {
        let of = &members[result];
        let schema = Arc::clone(&of.schema);
        let mut unique = of.body.properties.unique.clone();
        let all: Vec<usize> = (0..schema.fields().len()).collect();
        if of.is_distinct && !unique.contains(&all) {
            unique.push(all);
        }
        let append_only = members.iter().all(|member| member.body.properties.append_only);
        let properties = Properties::new(unique, append_only);
        let retention = Retention::default();
        let node = Recursion { members, result, limit, retention };
        IncrementalPlan::new(Node::Recursion(node), schema, properties)
    }

    /// Bounds the inputs that are the same in all rounds. Rows that recur have no bounds.
    fn bound_outside(&mut self) {
        if !self.recurs() {
            self.bound(&[]);
            return;
        }
        self.fingerprint = OnceLock::new();
        self.inputs_mut().into_iter().for_each(IncrementalPlan::bound_outside);
        match &mut self.node {
            Node::Join(join) => {
                join.retention = (Retention::All(any_round()), Retention::All(any_round()));
            }
            Node::Aggregate(aggregate) => aggregate.retention = Retention::All(any_round()),
            Node::Distinct(distinct) => distinct.retention = Retention::All(any_round()),
            _ => {}
        }
    }

    /// The inputs of a step whose rows enter it as a stream, in the order in which they are compiled.
    fn entering(&self) -> Vec<&IncrementalPlan> {
        if !self.recurs() {
            return vec![self];
        }
        let inputs = self.inputs().into_iter();
        let is_stream = |input: &&IncrementalPlan| match self.node {
            // Rows that recur are joined with arrangements.
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

impl Recursion {
    /// Whether rows can go from one round to the next while no input changes.
    fn takes_back(&self) -> bool {
        self.members.iter().any(|member| member.body.takes_back())
    }
}

impl PlanNode for Recursion {
    fn inputs(&self) -> Vec<&IncrementalPlan> {
        self.members.iter().map(|member| &member.body).collect()
    }

    fn inputs_mut(&mut self) -> Vec<&mut IncrementalPlan> {
        self.members.iter_mut().map(|member| &mut member.body).collect()
    }

    fn prune(self, _: &SchemaRef, _: Properties, required: &[usize]) -> Result<IncrementalPlan> {
        let Recursion { members, result, limit, .. } = self;
        let prune =
            |member: Member| Ok(Member { body: prune_nothing(member.body.clone())?, ..member });
        let members = members.into_iter().map(prune).collect::<Result<_>>()?;
        IncrementalPlan::columns(IncrementalPlan::recursion(members, result, limit), required)
    }

    fn bound(&mut self, schema: &SchemaRef, _: &[Expression]) -> LowerBounds {
        self.members.iter_mut().for_each(|member| member.body.bound_outside());
        self.retention = Retention::All(any_round());
        vec![Err(any_round()); schema.fields().len()]
    }

    fn encode(&self, canonical: &mut Canonical) {
        canonical.text("recursion");
        canonical.number(self.members.len());
        for member in &self.members {
            canonical.text(&member.name);
            canonical.flag(member.is_distinct);
        }
        canonical.number(self.result);
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
        let names: Vec<String> = self.members.iter().map(|member| member.name.clone()).collect();
        let bodies = self.members.iter().map(|member| (&member.body, &member.schema));
        let rounds = RoundPlan::compile(names, bodies, &id, compiler)?;
        let takes_back = self.takes_back();
        let members = self.members.iter().map(|Member { name, schema, is_distinct, .. }| {
            let settle = settle::Spec::compile(schema.clone(), *is_distinct, name)?;
            let taken_back = takes_back.then(|| settle.clone());
            let limit = Limit { name: name.as_str().into(), rounds: self.limit, taken_back };
            Ok((settle, limit))
        });
        let members = members.collect::<CompileResult<_>>()?;
        let places = rounds.places().collect();
        let reports = compiler.reports(0);
        let operator = RecursionRows { rounds, members, result: self.result, reports };
        Ok(compiler.add_stateful(plan, operator, places, Some(id)))
    }

    fn explain(&self, _: &SchemaRef, line: &mut String) -> fmt::Result {
        let names: Vec<&str> = self.members.iter().map(|member| member.name.as_str()).collect();
        let kind = match self.members.iter().all(|member| member.is_distinct) {
            true => "distinct rows",
            false => "all rows",
        };
        write!(line, "recursion {} of {kind}, at most {} rounds", names.join(", "), self.limit)?;
        match &names[..] {
            [_] => Ok(()),
            _ => write!(line, ": {}", names[self.result]),
        }
    }

    fn retained(&self) -> Vec<(&'static str, &SchemaRef, &Retention)> {
        let entering = self.members.iter().flat_map(|member| member.body.entering());
        let entering = entering.map(|input| ("rows that enter", &input.schema, &self.retention));
        let changes = ("changes of each round", &self.members[self.result].schema, &self.retention);
        entering.chain([changes]).collect()
    }

    fn state(&self, places: &[Place]) -> Option<String> {
        let places: Vec<String> = places.iter().map(Place::to_string).collect();
        Some(match places.split_last() {
            Some((rounds, [])) => format!("changes of each round {rounds}"),
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
    rounds: RoundPlan,
    /// How the rows of each relation settle, and where they end.
    members: Vec<(settle::Spec, Limit)>,
    result: usize,
    reports: bool,
}

impl Operator for RecursionRows {
    fn render<'scope>(&self, rendering: &mut Rendering<'scope, '_>) -> DeltaStream<'scope, Epoch> {
        let context = rendering.context();
        let inputs = self.rounds.inputs(rendering);
        let kept = inputs.kept.clone();
        let outer = rendering.scope();
        let outside = &*rendering;
        let (rows, errors) = outer.scoped::<Round, _, _>("Recursion", |rounds| {
            let (variables, before): (Vec<_>, Vec<_>) =
                self.members.iter().map(|_| variable(rounds)).unzip();
            let (bodies, mut errors) = self.rounds.render(inputs, before, rounds, outside);
            let settled = self.members.iter().zip(bodies).zip(variables).map(
                |(((spec, limit), body), variable)| {
                    let (rows, excess) = settle(spec, body, &context);
                    let endless = variable.set(rows.clone(), limit.clone(), &context);
                    errors.extend([excess, endless]);
                    rows
                },
            );
            let rows = settled.collect::<Vec<_>>().swap_remove(self.result);
            let errors = concatenated(errors).expect("a recursion has members");
            (leave(rows, kept, outer), leave(errors, Vec::new(), outer))
        });
        if self.reports {
            rendering.report(errors);
        }
        rows
    }
}

impl IncrementalPlan {
    /// Whether more rows that recur can take rows away.
    fn takes_back(&self) -> bool {
        let is_one = matches!(self.node, Node::Aggregate(_)) && self.recurs();
        is_one || self.inputs().into_iter().any(IncrementalPlan::takes_back)
    }
}
