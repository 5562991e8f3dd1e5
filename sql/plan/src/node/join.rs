//! Inner joins and cross joins.

use std::fmt::{self, Write};
use std::sync::Arc;

use alluvium_dataflow::joins::join;
use alluvium_dataflow::movement::delta::DeltaStream;
use alluvium_dataflow::recursion::{self, Round};
use alluvium_trace::Epoch;
use arrow::datatypes::{Schema, SchemaRef};
use datafusion_common::Result;

use super::sides::{self, Side};
use super::{InRounds, Indexed, Node, PlanNode};
use crate::bounds::PairBounds;
use crate::constructs::Clause;
use crate::expression::Expression;
use crate::fault::{self, Fault};
use crate::fingerprint::Canonical;
use crate::names::{self, Names};
use crate::physical::{
    Arranged, CompileResult, Compiler, Operator, OperatorId, Place, Rendering, RoundCompiler,
    RoundId, RoundOperator, RoundRendering, RoundSide, SidePlacement,
};
use crate::properties::{Dependency, shifted, shifted_dependencies};
use crate::prune::{place, place_in_two, prune, prune_to};
use crate::{IncrementalPlan, LowerBounds, Properties, Retention, bounds};

/// Pairs of rows that agree on their keys; the output is all left columns, then all right ones.
///
/// NULL keys are equal here: for an `=` join the planner filters NULL keys out below. Without keys it is a
/// cross product. A residual condition is the filter of a map above.
#[derive(Clone, Debug)]
pub struct Join {
    /// The left rows.
    pub left: Box<IncrementalPlan>,
    /// The right rows.
    pub right: Box<IncrementalPlan>,
    /// Pairs of a left and a right column of the same type.
    pub on: Vec<(usize, usize)>,
    /// Which rows of the two sides are needed.
    pub retention: (Retention, Retention),
}

impl IncrementalPlan {
    /// Pairs of rows that agree on the pairs of columns `on`.
    pub(crate) fn join(
        left: IncrementalPlan,
        right: IncrementalPlan,
        on: Vec<(usize, usize)>,
    ) -> Result<IncrementalPlan> {
        sides::check_types(&left, &right, &on)?;
        let width = left.width();
        let (l, r) = (&left.properties, &right.properties);
        let mut unique = Vec::new();
        for of_left in &l.unique {
            for of_right in &r.unique {
                // It decides also the keys of the join.
                let mut rest = of_right.clone();
                rest.retain(|column| on.iter().all(|pair| pair.1 != *column));
                unique.push([of_left.clone(), shifted(&rest, width)].concat());
                if of_left.iter().all(|column| on.iter().any(|pair| pair.0 == *column)) {
                    unique.push(shifted(of_right, width));
                }
            }
        }
        let fields: Vec<_> =
            left.schema.fields().iter().chain(right.schema.fields()).cloned().collect();
        let equal = |by: usize, column: usize| Dependency {
            by: vec![by],
            columns: vec![column],
            promised: false,
        };
        let equal = on.iter().flat_map(|&(l, r)| [equal(l, width + r), equal(width + r, l)]);
        let of_right = shifted_dependencies(r.all_dependencies(right.width()), width);
        let dependencies = l.all_dependencies(width).into_iter().chain(of_right).chain(equal);
        let properties =
            Properties::new(unique, l.append_only && r.append_only).with(dependencies.collect());
        let schema = Arc::new(Schema::new(fields));
        let node = Node::Join(Join {
            left: Box::new(left),
            right: Box::new(right),
            on,
            retention: Default::default(),
        });
        Ok(IncrementalPlan::new(node, schema, properties))
    }
}

impl Join {
    /// The side that is broadcast, because the join has no keys and that side at most one row, while the other
    /// side stays where it is.
    pub(crate) fn broadcast(&self) -> Option<Side> {
        if !self.on.is_empty() {
            return None;
        }
        let left = self.left.properties.at_most_one_row().then_some(Side::Left);
        self.right.properties.at_most_one_row().then_some(Side::Right).or(left)
    }
}

impl PlanNode for Join {
    fn inputs(&self) -> Vec<&IncrementalPlan> {
        vec![&self.left, &self.right]
    }

    fn inputs_mut(&mut self) -> Vec<&mut IncrementalPlan> {
        vec![&mut self.left, &mut self.right]
    }

    fn prune(self, _: &SchemaRef, _: Properties, required: &[usize]) -> Result<IncrementalPlan> {
        let Join { left, right, on, .. } = self;
        let width = left.width();
        let has_one_row = |side: &IncrementalPlan| side.is_clock() || side.has_one_row();
        if on.is_empty() && has_one_row(&right) && required.iter().all(|&column| column < width) {
            return prune(*left, required);
        }
        if on.is_empty() && has_one_row(&left) && required.iter().all(|&column| column >= width) {
            let required: Vec<usize> = required.iter().map(|column| column - width).collect();
            return prune(*right, &required);
        }
        let (from_left, from_right): (Vec<usize>, Vec<usize>) =
            required.iter().partition(|&&column| column < width);
        let keys_left = on.iter().map(|&(l, _)| l);
        let keys_right = on.iter().map(|&(_, r)| r);
        let (left, used_left) = prune_to(*left, from_left.into_iter().chain(keys_left).collect())?;
        let from_right = from_right.into_iter().map(|column| column - width);
        let (right, used_right) = prune_to(*right, from_right.chain(keys_right).collect())?;
        let on = on.iter().map(|&(l, r)| (place(&used_left, l), place(&used_right, r))).collect();
        let joined = IncrementalPlan::join(left, right, on)?;
        let place = |&column: &usize| place_in_two((&used_left, &used_right), width, column);
        let columns: Vec<usize> = required.iter().map(place).collect();
        IncrementalPlan::columns(joined, &columns)
    }

    fn bound(&mut self, schema: &SchemaRef, conditions: &[Expression]) -> LowerBounds {
        let width = self.left.width();
        let (left, right) = (self.left.bound(&[]), self.right.bound(&[]));
        let pairs = PairBounds::new(left, right, &self.on, schema, conditions);
        // A row is needed for pairs with later rows of the other side.
        let (of_left, of_right) = match fault::armed(Fault::BoundOfOwnSide) {
            true => (&pairs.by_left, &pairs.by_right),
            false => (&pairs.by_right, &pairs.by_left),
        };
        let keys = self.on.iter().map(|pair| pair.0);
        let timeless = bounds::no_time_on_side;
        let left = Retention::by_first(of_left, keys.chain(0..width), schema, timeless);
        let keys = self.on.iter().map(|pair| width + pair.1).chain(width..schema.fields().len());
        let right = Retention::by_first(of_right, keys, schema, timeless);
        self.retention = (left, right.behind(width));
        // State is pruned at the least cost by the first column of its keys.
        let pruned = self.retention.0.column();
        if let Some(place) = self.on.iter().position(|pair| Some(pair.0) == pruned) {
            self.on[..=place].rotate_right(1);
        }
        pairs.of_all()
    }

    fn encode(&self, canonical: &mut Canonical) {
        canonical.text("join");
        canonical.pairs(&self.on);
        self.retention.0.encode(canonical);
        self.retention.1.encode(canonical);
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn compile(
        &self,
        plan: &IncrementalPlan,
        compiler: &mut Compiler,
    ) -> CompileResult<OperatorId> {
        let id = compiler.next_id("join");
        let inputs = (self.left.as_ref(), self.right.as_ref());
        let (left, right) =
            compiler.sides(inputs, &self.on, self.broadcast(), &self.retention, &id)?;
        let spec = join::Spec::new((&left.schema, &left.columns), (&right.schema, &right.columns));
        let places = vec![left.place(), right.place()];
        Ok(compiler.add_stateful(plan, JoinRows { left, right, spec }, places, None))
    }

    fn in_rounds(&self) -> Option<&dyn InRounds> {
        Some(self)
    }

    fn explain(&self, _: &SchemaRef, line: &mut String) -> fmt::Result {
        if self.on.is_empty() {
            line.push_str("cross join");
            return Ok(());
        }
        let (left, right) = (Names(&self.left.schema), Names(&self.right.schema));
        let pair = |&(l, r): &(usize, usize)| format!("{} = {}", left.column(l), right.column(r));
        let pairs: Vec<String> = self.on.iter().map(pair).collect();
        write!(line, "join on {}", pairs.join(" and "))
    }

    fn burden(&self) -> Option<&'static str> {
        self.on.is_empty().then_some(sides::WITHOUT_EQUALITY)
    }

    fn clause(&self) -> Option<Clause> {
        Some(sides::clause(&self.left, &self.right, &self.on))
    }

    fn retained(&self) -> Vec<(&'static str, &SchemaRef, &Retention)> {
        sides::retained(&self.left, &self.right, &self.retention)
    }

    fn state(&self, places: &[Place]) -> Option<String> {
        Some(names::sides(&self.left, &self.right, &self.on, places))
    }

    /// A side that is not pruned is a table or an index.
    fn needs_state(&self) -> bool {
        let is_pruned = |retention: &Retention| retention.column().is_some();
        is_pruned(&self.retention.0) || is_pruned(&self.retention.1)
    }

    fn indexed(&mut self) -> Vec<Indexed<'_>> {
        match self.broadcast() {
            Some(_) => Vec::new(),
            None => {
                let (left, right) = (&mut *self.left, &mut *self.right);
                sides::keyed(left, right, &mut self.on, &self.retention, true, (false, false))
            }
        }
    }
}

impl InRounds for Join {
    fn compile_in_rounds(
        &self,
        plan: &IncrementalPlan,
        compiler: &mut RoundCompiler<'_>,
    ) -> CompileResult<RoundId> {
        let (left_keys, right_keys): (Vec<usize>, Vec<usize>) = self.on.iter().copied().unzip();
        // Of rows that differ by round there are too many to broadcast them.
        let placements = match self.broadcast() {
            Some(Side::Left) if !self.left.recurs() => (SidePlacement::All, SidePlacement::Stay),
            Some(Side::Right) if !self.right.recurs() => (SidePlacement::Stay, SidePlacement::All),
            _ => (SidePlacement::Key, SidePlacement::Key),
        };
        let left = compiler.side(&self.left, &left_keys, placements.0)?;
        let right = compiler.side(&self.right, &right_keys, placements.1)?;
        let spec = join::Spec::new((&left.schema, &left.columns), (&right.schema, &right.columns));
        compiler.keep(plan, vec![left.place.clone(), right.place.clone()]);
        Ok(compiler.add(RoundJoin { left, right, spec }))
    }
}

/// A join, ready to be rendered.
#[derive(Debug)]
struct JoinRows {
    left: Arranged,
    right: Arranged,
    spec: join::Spec,
}

impl Operator for JoinRows {
    fn render<'scope>(&self, rendering: &mut Rendering<'scope, '_>) -> DeltaStream<'scope, Epoch> {
        let (left, right) = (self.left.render(rendering), self.right.render(rendering));
        join::join(&self.spec, left, right, &rendering.context())
    }
}

/// A join inside of a recursion, ready to be rendered.
#[derive(Debug)]
struct RoundJoin {
    left: RoundSide,
    right: RoundSide,
    spec: join::Spec,
}

impl RoundOperator for RoundJoin {
    fn render<'inner>(
        &self,
        rendering: &mut RoundRendering<'_, 'inner, '_>,
    ) -> DeltaStream<'inner, Round> {
        let (left, right) = (self.left.render(rendering), self.right.render(rendering));
        recursion::join(&self.spec, left, right, rendering.rounds(), &rendering.context())
    }
}
