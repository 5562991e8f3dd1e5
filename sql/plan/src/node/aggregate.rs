//! GROUP BY.

use std::collections::BTreeSet;
use std::fmt::{self, Write};
use std::sync::Arc;

use alluvium_dataflow::KeyColumns;
use alluvium_dataflow::map::message;
use alluvium_dataflow::movement::delta::DeltaStream;
use alluvium_dataflow::recursion::{Round, aggregate as rounds};
use alluvium_dataflow::reductions::aggregate::{self, Fallback, Function};
use alluvium_dataflow::reductions::default::{self, or_default};
use alluvium_dataflow::rows::codec::CodecError;
use alluvium_dataflow::rows::layout::Layout;
use alluvium_sql_planner::one_row;
use alluvium_trace::Epoch;
use arrow::array::{ArrayRef, Int64Array, RecordBatch, new_null_array};
use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion_common::Result;
use timely::dataflow::operators::Concat;

use super::{InRounds, Node, PlanNode, RowMap};
use crate::constructs::Clause;
use crate::expression::Expression;
use crate::fingerprint::Canonical;
use crate::names;
use crate::names::{Names, function_name};
use crate::physical::{
    CompileResult, Compiler, Operator, OperatorId, Place, Rendering, RoundCompiler, RoundId,
    RoundOperator, RoundRendering, State,
};
use crate::prune::{place, prune_to};
use crate::{IncrementalPlan, LowerBounds, Properties, Reason, Retention, bounds};

/// One row per group: the keys, then the aggregates. Without keys there is always one row.
#[derive(Clone, Debug)]
pub struct Aggregate {
    /// The rows to aggregate.
    pub input: Box<IncrementalPlan>,
    /// The columns that identify the group.
    pub keys: Vec<usize>,
    /// A column that follows from them and says when a group is final, if none of them does.
    pub final_by: Option<usize>,
    /// The aggregates of each group.
    pub aggregates: Vec<aggregate::Aggregate>,
    /// Aggregates that are computed from all rows of the groups that change.
    pub fallbacks: Vec<Fallback>,
    /// Which groups are needed.
    pub retention: Retention,
}

impl IncrementalPlan {
    /// One row per group: the keys, the aggregates, and the fallbacks. A GROUP BY without either is a DISTINCT, and without keys
    /// one row.
    pub(crate) fn aggregate(
        input: IncrementalPlan,
        keys: Vec<usize>,
        aggregates: Vec<(aggregate::Aggregate, String)>,
        fallbacks: Vec<(Fallback, String)>,
    ) -> Result<IncrementalPlan> {
        if aggregates.is_empty() && fallbacks.is_empty() {
            return match keys.is_empty() {
                true => IncrementalPlan::columns(IncrementalPlan::constant(one_row()), &[]),
                false => Ok(IncrementalPlan::distinct(IncrementalPlan::columns(input, &keys)?)),
            };
        }
        let groups = keys.iter().map(|&key| input.schema.field(key).clone());
        let results = aggregates.iter().map(|(aggregate, name)| {
            Field::new(name, aggregate.result.clone(), aggregate.function != Function::Count)
        });
        let others = fallbacks
            .iter()
            .map(|(function, name)| Field::new(name, function.result.clone(), true));
        let fields: Vec<Field> = groups.chain(results).chain(others).collect();
        let (below, width) = (&input.properties, input.width());
        let Properties { mut unique, dependencies, .. } = below.of_columns(&keys, width);
        // A broken promise can make several groups of one.
        if !below.relies_on_promise(&keys, width) {
            unique.push((0..keys.len()).collect());
        }
        let properties = Properties::new(unique, false).with(dependencies);
        let schema = Arc::new(Schema::new(fields));
        let node = Node::Aggregate(Aggregate {
            input: Box::new(input),
            keys,
            final_by: None,
            aggregates: aggregates.into_iter().map(|(aggregate, _)| aggregate).collect(),
            fallbacks: fallbacks.into_iter().map(|(function, _)| function).collect(),
            retention: Retention::default(),
        });
        Ok(IncrementalPlan::new(node, schema, properties))
    }
}

impl IncrementalPlan {
    /// Whether there is one row, whatever the tables hold.
    pub(crate) fn has_one_row(&self) -> bool {
        match &self.node {
            Node::Aggregate(aggregate) => aggregate.keys.is_empty(),
            Node::Map(map) => map.filter.is_none() && map.input.has_one_row(),
            Node::View(view) => view.input.has_one_row(),
            _ => false,
        }
    }
}

impl Aggregate {
    /// The columns by which groups are sorted: the one by which they are pruned comes first.
    fn sorted_by(&self) -> Vec<usize> {
        let mut sorted: Vec<usize> = self.final_by.into_iter().chain(self.keys.clone()).collect();
        if let Some(place) = sorted.iter().position(|key| Some(*key) == self.retention.column()) {
            sorted[..=place].rotate_right(1);
        }
        sorted
    }

    /// The aggregates of the groups by `keys`; `output` has the columns of these and of the results.
    fn spec(&self, keys: &[usize], output: &SchemaRef) -> CompileResult<aggregate::Spec> {
        let input = &self.input.schema;
        // Any kind of aggregate can sort its inputs, so their types must have an order.
        let inputs = self.aggregates.iter().filter_map(|aggregate| aggregate.input);
        let others = self.fallbacks.iter().flat_map(|function| function.columns());
        let used: Vec<usize> = keys.iter().copied().chain(inputs).chain(others).collect();
        KeyColumns::new(input, &used)?;
        let append_only = self.input.properties.append_only;
        let (own, others) = (&self.aggregates, &self.fallbacks);
        aggregate::Spec::compile(input, keys, own, others, append_only, output)
    }

    /// The results over no rows, of an aggregate without keys.
    fn empty_group(&self, plan: &IncrementalPlan) -> CompileResult<RecordBatch> {
        let own = self.aggregates.iter().map(|aggregate| match aggregate.function {
            Function::Count => Ok(Arc::new(Int64Array::from(vec![0])) as ArrayRef),
            _ => Ok(new_null_array(&aggregate.result, 1)),
        });
        let others =
            self.fallbacks.iter().map(|function| function.over_nothing(&self.input.schema));
        let columns = own
            .chain(others)
            .collect::<Result<Vec<_>>>()
            .map_err(|error| CodecError::Evaluation(message(&error)))?;
        Ok(RecordBatch::try_new(plan.schema.clone(), columns)?)
    }
}

impl PlanNode for Aggregate {
    fn inputs(&self) -> Vec<&IncrementalPlan> {
        vec![&self.input]
    }

    fn inputs_mut(&mut self) -> Vec<&mut IncrementalPlan> {
        vec![&mut self.input]
    }

    fn prune(
        self,
        schema: &SchemaRef,
        _: Properties,
        required: &[usize],
    ) -> Result<IncrementalPlan> {
        let Aggregate { input, keys, aggregates, fallbacks, .. } = self;
        let width = keys.len();
        let mut needed: Vec<usize> = (0..aggregates.len() + fallbacks.len())
            .filter(|number| required.contains(&(width + number)))
            .collect();
        if needed.is_empty() && keys.is_empty() {
            needed.push(0);
        }
        let (own, others): (Vec<usize>, Vec<usize>) =
            needed.iter().partition(|&&number| number < aggregates.len());
        let mut used: BTreeSet<usize> = keys.iter().copied().collect();
        used.extend(own.iter().flat_map(|&number| aggregates[number].columns()));
        for &number in &others {
            used.extend(fallbacks[number - aggregates.len()].columns());
        }
        let (input, used) = prune_to(*input, used)?;
        let name = |number: usize| schema.field(width + number).name().clone();
        let own = own.iter().map(|&number| {
            let aggregate = &aggregates[number];
            (aggregate.renumbered(|column| place(&used, column)), name(number))
        });
        let others = others.iter().map(|&number| {
            let function = &fallbacks[number - aggregates.len()];
            (function.renumbered(|column| place(&used, column)), name(number))
        });
        let columns: Vec<usize> = required
            .iter()
            .map(|&column| match column < width {
                true => column,
                false => width + place(&needed, column - width),
            })
            .collect();
        let keys = keys.iter().map(|&key| place(&used, key)).collect();
        let (own, others) = (own.collect(), others.collect());
        let aggregated = IncrementalPlan::aggregate(input, keys, own, others)?;
        IncrementalPlan::columns(aggregated, &columns)
    }

    fn bound(&mut self, schema: &SchemaRef, _: &[Expression]) -> LowerBounds {
        let (below, retention) = bounds::by_keys(&mut self.input, &self.keys);
        self.final_by = bounds::final_by(&retention, &self.keys);
        self.retention = retention;
        let mut of_groups: LowerBounds = self.keys.iter().map(|&key| below[key].clone()).collect();
        of_groups.extend(schema.fields()[self.keys.len()..].iter().map(|field| {
            let name = field.name();
            Err(Reason::new(format!("{name} can change with any row of its group")).with_remedy(
                "group by a time that has LATENESS, or by DATE_TRUNC or DATE_BIN of it",
            ))
        }));
        of_groups
    }

    fn encode(&self, canonical: &mut Canonical) {
        canonical.text("aggregate");
        self.retention.encode(canonical);
        canonical.columns(&self.keys);
        canonical.number(self.aggregates.len());
        for aggregate in &self.aggregates {
            canonical.text(function_name(aggregate.function));
            canonical.optional(aggregate.input);
            canonical.flag(aggregate.distinct);
            if aggregate.filter.is_some() {
                canonical.text("filter");
                canonical.optional(aggregate.filter);
            }
            canonical.data_type(&aggregate.result);
        }
        canonical.number(self.fallbacks.len());
        for fallback in &self.fallbacks {
            canonical.text(fallback.function.name());
            canonical.arguments(&fallback.arguments);
            canonical.order(&fallback.order);
            canonical.optional(fallback.filter);
            canonical.flag(fallback.distinct);
            canonical.flag(fallback.ignore_nulls);
            canonical.data_type(&fallback.result);
        }
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn compile(
        &self,
        plan: &IncrementalPlan,
        compiler: &mut Compiler,
    ) -> CompileResult<OperatorId> {
        let keys = self.sorted_by();
        let results = &plan.schema.fields()[self.keys.len()..];
        let fields = keys.iter().map(|key| &self.input.schema.fields()[*key]).chain(results);
        let sorted: SchemaRef = Arc::new(Schema::new(fields.cloned().collect::<Vec<_>>()));
        let spec = self.spec(&keys, &sorted)?;
        let default = match self.keys.is_empty() {
            true => Some(default::Spec::compile(self.empty_group(plan)?)?),
            false => None,
        };
        let input = compiler.rows(&self.input)?;
        let id = compiler.next_id("aggregate");
        let groups = Groups { input, spec, default };
        let groups = compiler.add_stateful(plan, groups, Vec::new(), Some(id));
        compiler.prune(&self.retention, &Layout::keyed(self.input.schema.clone(), &keys)?);
        // Columns that change places can have one name and type.
        if keys == self.keys {
            return Ok(groups);
        }
        let places = self.keys.iter().map(|key| place(&keys, *key));
        let places: Vec<usize> = places.chain(keys.len()..sorted.fields().len()).collect();
        Ok(compiler.add(RowMap::columns(groups, &sorted, &places)))
    }

    fn in_rounds(&self) -> Option<&dyn InRounds> {
        let is_summed =
            |aggregate: &aggregate::Aggregate| !aggregate.distinct && aggregate.rank.is_none();
        let are_summed = self.fallbacks.is_empty() && self.aggregates.iter().all(is_summed);
        (are_summed && !self.keys.is_empty()).then_some(self)
    }

    fn explain(&self, _: &SchemaRef, line: &mut String) -> fmt::Result {
        let below = Names(&self.input.schema);
        let own = self.aggregates.iter().map(|aggregate| below.aggregate(aggregate));
        let others = self.fallbacks.iter().map(|function| below.fallback(function));
        let shown: Vec<String> = own.chain(others).collect();
        write!(line, "aggregate {}", shown.join(", "))?;
        if !self.keys.is_empty() {
            write!(line, " by {}", below.plain(&self.keys))?;
        }
        Ok(())
    }

    fn clause(&self) -> Option<Clause> {
        Some(Clause::Group(Names(&self.input.schema).each(&self.keys)))
    }

    fn retained(&self) -> Vec<(&'static str, &SchemaRef, &Retention)> {
        vec![("groups", &self.input.schema, &self.retention)]
    }

    fn state(&self, places: &[Place]) -> Option<String> {
        let append_only = self.input.properties.append_only;
        let mut kept = Vec::new();
        if self.aggregates.iter().any(|aggregate| aggregate.is_accumulated(append_only)) {
            kept.push("accumulators");
        }
        if self.aggregates.iter().any(|aggregate| aggregate.distinct) {
            kept.push("distinct values");
        }
        if !self.aggregates.iter().all(|aggregate| aggregate.is_accumulated(append_only)) {
            kept.push("ordered values");
        }
        if !self.fallbacks.is_empty() {
            kept.push("rows");
        }
        let kept = kept.join(" and ");
        let kept = match self.keys.is_empty() {
            true => format!("{kept} of one group"),
            false => format!("{kept} by {}", Names(&self.input.schema).list(&self.keys)),
        };
        Some(names::kept(&kept, places))
    }

    fn needs_state(&self) -> bool {
        true
    }
}

impl InRounds for Aggregate {
    fn compile_in_rounds(
        &self,
        plan: &IncrementalPlan,
        compiler: &mut RoundCompiler<'_>,
    ) -> CompileResult<RoundId> {
        let input = compiler.rows(&self.input)?;
        let (schema, output) = (&self.input.schema, plan.schema.clone());
        let spec = rounds::Spec::compile(schema, &self.keys, &self.aggregates, output)?;
        let (state, reports) = (compiler.state(plan, &self.keys), compiler.reports());
        Ok(compiler.add(RoundGroups { input, spec, state, reports }))
    }
}

/// A GROUP BY inside of a recursion, ready to be rendered.
#[derive(Debug)]
struct RoundGroups {
    input: RoundId,
    spec: rounds::Spec,
    state: State,
    reports: bool,
}

impl RoundOperator for RoundGroups {
    fn render<'inner>(
        &self,
        rendering: &mut RoundRendering<'_, 'inner, '_>,
    ) -> DeltaStream<'inner, Round> {
        let (rows, context) = (rendering.rows(self.input), rendering.context_of(&self.state));
        let (groups, errors) = rounds::aggregate(&self.spec, rows, &context);
        if self.reports {
            rendering.report(errors);
        }
        groups
    }
}

/// A GROUP BY, ready to be rendered.
#[derive(Debug)]
struct Groups {
    input: OperatorId,
    spec: aggregate::Spec,
    /// The result over no rows, if there is always one row.
    default: Option<default::Spec>,
}

impl Operator for Groups {
    fn render<'scope>(&self, rendering: &mut Rendering<'scope, '_>) -> DeltaStream<'scope, Epoch> {
        let context = rendering.context();
        let groups = aggregate::aggregate(&self.spec, rendering.rows(self.input), &context);
        let mut answered = groups.rows.clone();
        if let Some(errors) = groups.errors {
            // An error takes the place of the row, and of the default too.
            answered = answered.concat(errors.clone());
            rendering.report(errors);
        }
        match &self.default {
            Some(spec) => or_default(spec, groups.rows, answered, rendering.as_of(), &context),
            None => groups.rows,
        }
    }
}
