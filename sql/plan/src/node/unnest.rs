//! UNNEST: a row for each element of a row's lists.

use std::fmt::{self, Write};
use std::sync::Arc;

use alluvium_dataflow::map::MapStep;
use alluvium_dataflow::movement::combine::{self, combine};
use alluvium_dataflow::movement::delta::DeltaStream;
use alluvium_dataflow::recursion::Round;
use alluvium_dataflow::unnest::unnest;
use alluvium_sql_planner::relations::time_window::hop::{self, TwoSteps};
use alluvium_trace::Epoch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion_common::{Result, plan_err};

use super::{InRounds, Map, Node, PlanNode, RowMap};
use crate::build::band::has_distinct_elements;
use crate::expression::{self, Expression};
use crate::fingerprint::Canonical;
use crate::names::Names;
use crate::physical::{
    CompileResult, Compiler, Operator, OperatorId, Rendering, RoundCompiler, RoundId,
    RoundOperator, RoundRendering,
};
use crate::prune::{place, prune_to};
use crate::{IncrementalPlan, LowerBounds, Properties, Reason};

/// Each row once for each element of its lists, with the element in the list's place.
///
/// Several lists are gone through side by side, with NULLs where one ends before another. A row without any
/// element is dropped, or kept with NULLs.
#[derive(Clone, Debug)]
pub struct Unnest {
    /// The rows.
    pub input: Box<IncrementalPlan>,
    /// The columns that are lists, in ascending order.
    pub lists: Vec<usize>,
    /// Whether rows without any element are kept.
    pub keeps_all: bool,
}

impl IncrementalPlan {
    /// Each row once for each element of its lists; `lists` are distinct columns of that type, in ascending
    /// order. With `keeps_all` also once if there is no element.
    pub(crate) fn unnest(
        input: IncrementalPlan,
        lists: Vec<usize>,
        keeps_all: bool,
    ) -> Result<IncrementalPlan> {
        let mut fields: Vec<_> = input.schema.fields().iter().cloned().collect();
        for &list in &lists {
            let DataType::List(element) = fields[list].data_type() else {
                return plan_err!(
                    "\"{}\" is {}, not a list",
                    fields[list].name(),
                    fields[list].data_type()
                );
            };
            fields[list] =
                Arc::new(Field::new(fields[list].name(), element.data_type().clone(), true));
        }
        let mut unique = Vec::new();
        if let (Node::Map(map), &[list]) = (&input.node, &lists[..])
            && has_distinct_elements(&map.project[list])
        {
            unique = input.properties.unique.clone();
            unique.iter_mut().for_each(|key| key.push(list));
        }
        let properties = Properties::new(unique, input.properties.append_only);
        let schema = Arc::new(Schema::new(fields));
        let node = Node::Unnest(Unnest { input: Box::new(input), lists, keeps_all });
        Ok(IncrementalPlan::new(node, schema, properties))
    }
}

impl PlanNode for Unnest {
    fn inputs(&self) -> Vec<&IncrementalPlan> {
        vec![&self.input]
    }

    fn inputs_mut(&mut self) -> Vec<&mut IncrementalPlan> {
        vec![&mut self.input]
    }

    fn prune(self, _: &SchemaRef, _: Properties, required: &[usize]) -> Result<IncrementalPlan> {
        let used = self.lists.iter().chain(required).copied().collect();
        let (input, used) = prune_to(*self.input, used)?;
        let lists = self.lists.iter().map(|&list| place(&used, list)).collect();
        let columns: Vec<usize> = required.iter().map(|&column| place(&used, column)).collect();
        IncrementalPlan::columns(IncrementalPlan::unnest(input, lists, self.keeps_all)?, &columns)
    }

    fn bound(&mut self, _: &SchemaRef, _: &[Expression]) -> LowerBounds {
        let mut bounds = self.input.bound(&[]);
        for &list in &self.lists {
            bounds[list] = bounds[list].as_ref().map_err(Reason::clone).and_then(|bound| {
                let reason = || Reason::new("the elements of a list can be anything");
                let element = bound.first_element().filter(|_| !self.keeps_all);
                element.ok_or_else(reason)
            });
        }
        bounds
    }

    fn encode(&self, canonical: &mut Canonical) {
        canonical.text(if self.keeps_all { "unnest_outer" } else { "unnest" });
        canonical.columns(&self.lists);
    }

    fn compile(
        &self,
        plan: &IncrementalPlan,
        compiler: &mut Compiler,
    ) -> CompileResult<OperatorId> {
        let input = match &self.input.node {
            // Lists that are computed to be unnested are never stored.
            Node::Map(map) => match self.combined(map, compiler)? {
                Some(rows) => rows,
                None => compiler.passing_rows(&self.input)?,
            },
            _ => compiler.rows(&self.input)?,
        };
        let (lists, schema) = (self.lists.clone(), plan.schema.clone());
        Ok(compiler.add(UnnestRows { input, lists, keeps_all: self.keeps_all, schema }))
    }

    fn in_rounds(&self) -> Option<&dyn InRounds> {
        Some(self)
    }

    fn explain(&self, _: &SchemaRef, line: &mut String) -> fmt::Result {
        let name = if self.keeps_all { "unnest_outer" } else { "unnest" };
        write!(line, "{name} {}", Names(&self.input.schema).list(&self.lists))
    }
}

impl Unnest {
    /// The rows of `map`, of which fewer need be unnested if its list is one of windows: those equal in the last window, and in all
    /// that is read of them, are one.
    fn combined(&self, map: &Map, compiler: &mut Compiler) -> CompileResult<Option<OperatorId>> {
        let [list] = self.lists[..] else { return Ok(None) };
        let schema = &self.input.schema;
        let steps = hop::two_steps(&map.project[list], &map.input.schema, list);
        let Some(TwoSteps { last, time, all }) = steps else { return Ok(None) };
        let mut fields = schema.fields().to_vec();
        fields[list] = Arc::new(Field::new(fields[list].name(), time, true));
        let with_last: SchemaRef = Arc::new(Schema::new(fields));
        let columns = 0..schema.fields().len();
        let mut above: Vec<Expression> =
            columns.map(|column| expression::column(&with_last, column)).collect();
        above[list] = all;
        let mut below = map.project.clone();
        below[list] = last;

        let spec = combine::Spec::compile(&with_last)?;
        let input = map.compile_as(below, with_last, compiler)?;
        let combined = compiler.add(CombinedRows { input, spec });
        let step = MapStep {
            filter: None,
            project: above,
            schema: Arc::clone(schema),
            reports: compiler.reports(0),
        };
        Ok(Some(compiler.add(RowMap::step(combined, step))))
    }
}

/// Rows of which equal ones are one, ready to be rendered.
#[derive(Debug)]
struct CombinedRows {
    input: OperatorId,
    spec: combine::Spec,
}

impl Operator for CombinedRows {
    fn render<'scope>(&self, rendering: &mut Rendering<'scope, '_>) -> DeltaStream<'scope, Epoch> {
        combine(&self.spec, rendering.rows(self.input), &rendering.context())
    }
}

impl InRounds for Unnest {
    fn compile_in_rounds(
        &self,
        plan: &IncrementalPlan,
        compiler: &mut RoundCompiler<'_>,
    ) -> CompileResult<RoundId> {
        let input = compiler.rows(&self.input)?;
        let (lists, schema) = (self.lists.clone(), plan.schema.clone());
        Ok(compiler.add(RoundUnnest { input, lists, keeps_all: self.keeps_all, schema }))
    }
}

/// An unnesting, ready to be rendered.
#[derive(Debug)]
struct UnnestRows {
    input: OperatorId,
    lists: Vec<usize>,
    keeps_all: bool,
    schema: SchemaRef,
}

impl Operator for UnnestRows {
    fn render<'scope>(&self, rendering: &mut Rendering<'scope, '_>) -> DeltaStream<'scope, Epoch> {
        let (lists, schema) = (self.lists.clone(), self.schema.clone());
        unnest(rendering.rows(self.input), lists, self.keeps_all, schema, &rendering.context())
    }
}

/// An unnesting inside of a recursion, ready to be rendered.
#[derive(Debug)]
struct RoundUnnest {
    input: RoundId,
    lists: Vec<usize>,
    keeps_all: bool,
    schema: SchemaRef,
}

impl RoundOperator for RoundUnnest {
    fn render<'inner>(
        &self,
        rendering: &mut RoundRendering<'_, 'inner, '_>,
    ) -> DeltaStream<'inner, Round> {
        let (lists, schema) = (self.lists.clone(), self.schema.clone());
        unnest(rendering.rows(self.input), lists, self.keeps_all, schema, &rendering.context())
    }
}
